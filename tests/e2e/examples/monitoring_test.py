"""examples/monitoring: it asks for metrics that there are, and Prometheus's own tool takes it."""

import json
import re
import shutil
import subprocess
import urllib.request

import pytest
from fleetrun_job import ROOT, wait_until

FOLDER = ROOT / "examples" / "monitoring"
PROMTOOL = shutil.which("promtool")
NAME = re.compile(r"\bfleetrun_[a-z_]+")


def served_names():
    """Of families, as the sources have them: those of servers are there only where servers are."""
    return set(re.findall(r'"(fleetrun_[a-z_]+)"', (ROOT / "launcher/status/metrics.cc").read_text()))


def test_dashboard_and_alerts_ask_for_metrics_that_are_served():
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in NAME.findall(target["expr"])}
    rules = re.findall(r"^ +expr: (.*)$", (FOLDER / "alerts.yml").read_text(), re.M)
    asked |= {name for rule in rules for name in NAME.findall(rule)}
    assert len(panels) == 12 and len(rules) == 7
    assert {name.removesuffix("_bucket") for name in asked} <= served_names()


@pytest.mark.skipif(not PROMTOOL, reason="no promtool; Debian's package prometheus has it")
def test_prometheus_accepts_the_rules_and_the_metrics_of_a_job(work):
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run([PROMTOOL, *words], cwd=FOLDER, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    work.script("t.py", SPEAKER)
    job = work.start("--metrics=0", "--job_id=watched", "t.py")
    job.wait_for_log("workerlog.0", "up")
    text = metrics_of(work)
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True)
    assert checked.returncode == 0 and not checked.stdout + checked.stderr
    assert set(NAME.findall(text.decode())) <= served_names()


def test_what_programs_say_of_themselves_is_served(work):
    work.script("t.py", SPEAKER)
    job = work.start("--metrics=0", "--nproc_per_node=2", "--job_id=said", "t.py")
    for log in ("workerlog.0", "workerlog.1"):
        job.wait_for_log(log, "up")
    lines = metrics_of(work).decode().splitlines()
    for rank in (0, 1):
        labels = f'role="trainer",rank="{rank}"'
        assert f"fleetrun_training_step{{{labels}}} 12{rank}" in lines
        for name, value in (("auc", "0.75"), ("loss", "NaN"), ("损失", "2"), ("a_b", "3")):
            assert f'fleetrun_training_value{{{labels},name="{name}"}} {value}' in lines


# One line by hand, as any language can, and one by the package.
SPEAKER = """
import os, time
rank = os.environ["PADDLE_TRAINER_ID"]
os.write(int(os.environ["FLEETRUN_HEARTBEAT_FD"]), f"step 12{rank} loss=nan auc=0.5\\n".encode())
import fleetrun
fleetrun.heartbeat(**{"损失": 2, "a b": 3})
fleetrun.heartbeat(auc=0.25)
fleetrun.heartbeat(auc=0.75)
while time.monotonic() < fleetrun.heartbeat.__self__._values_due:
    pass
fleetrun.heartbeat()
print("up", flush=True)
time.sleep(60)
"""


def test_training_from_files_says_its_values_without_being_asked(work):
    for source in (ROOT / "examples" / "fluid_ctr").glob("*.py"):
        shutil.copy(source, work.directory)
    work.script("t.py", """
import runpy, signal
for name in ("make_data.py", "train_dataset.py"):
    runpy.run_path(name, run_name="__main__")
print("up", flush=True)
signal.pause()
""")
    job = work.start("--metrics=0", "--compat=paddle", "--nproc_per_node=1", "--job_id=trains", "t.py")
    job.wait_for_log("workerlog.0", "up")
    said = dict(re.findall(r'training_value\{role="trainer",rank="0",name="(\w+)"\} (\S+)',
                           metrics_of(work).decode()))
    assert set(said) == {"batch", "cost", "examples_per_second"}
    assert 0 < float(said["cost"]) < 1 and float(said["examples_per_second"]) > 100
    assert 1 <= float(said["batch"]) <= 157


def metrics_of(work):
    address = wait_until(lambda: metrics_address(work), "the job is listed")
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return answer.read()


def metrics_address(work):
    jobs = [json.loads(line) for line in work.run("list", "--json").out.splitlines()]
    own = (job for job in jobs if job["log_dir"] == str(work.directory / "log"))
    return next((job["metrics"] for job in own), None)
