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
    assert len(panels) == 10 and len(rules) == 5
    assert {name.removesuffix("_bucket") for name in asked} <= served_names()


@pytest.mark.skipif(not PROMTOOL, reason="no promtool; Debian's package prometheus has it")
def test_prometheus_accepts_the_rules_and_the_metrics_of_a_job(work):
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run([PROMTOOL, *words], cwd=FOLDER, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    work.script("t.py", "import time; print('up', flush=True); time.sleep(60)")
    job = work.start("--metrics=0", "--job_id=watched", "t.py")
    job.wait_for_log("workerlog.0", "up")
    address = wait_until(lambda: metrics_address(work), "the job is listed")
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read()
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True)
    assert checked.returncode == 0 and not checked.stdout + checked.stderr
    assert set(NAME.findall(text.decode())) <= served_names()


def metrics_address(work):
    jobs = [json.loads(line) for line in work.run("list", "--json").out.splitlines()]
    own = (job for job in jobs if job["log_dir"] == str(work.directory / "log"))
    return next((job["metrics"] for job in own), None)
