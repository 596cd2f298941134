"""`fleetrun export`: what a job has left as TensorBoard's files, and sent to a collector of OpenTelemetry.

The libraries are in an environment of their own (scripts/bench setup-peers export)."""

import json
import os
import pathlib
import subprocess

import pytest
from fleetrun_job import ROOT, clean_environment, find_fleetrun, wait_until

PEER = pathlib.Path(os.environ.get("FLEETRUN_PEERS_EXPORT", ROOT / ".cache" / "peers-export"))
PYTHON = PEER / "bin" / "python"
TRAINS = """import os
if os.environ["FLEETRUN_ATTEMPT"] == "0" and os.environ["PADDLE_TRAINER_ID"] == "1":
    raise ValueError("it is 7 instead of 8")
if os.environ["FLEETRUN_ATTEMPT"] == "1":
    for i in (1, 2, 1):
        print(f"time: [2026-11-24 11:27:{26 + i}], batch: [{100 * i}], loss[1]:[{i / 4}], auc[1]:[nan]")
"""
READ = """import json, sys
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
found = EventMultiplexer().AddRunsFromDirectory(sys.argv[1]).Reload()
print(json.dumps({run: {"scalars": {tag: [(e.step, e.value) for e in found.Scalars(run, tag)] for tag in tags["scalars"]},
                        "texts": [found.Tensors(run, tag)[0].tensor_proto.string_val[0].decode() for tag in tags["tensors"]]}
                  for run, tags in found.Runs().items()}))
"""

needs_libraries = pytest.mark.skipif(not PYTHON.exists(), reason=f"no environment with TensorBoard at {PEER}")


@pytest.fixture
def environment(tmp_path):
    """Where the other interpreter finds the package, and nothing else of this one's."""
    import fleetrun
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "fleetrun").symlink_to(pathlib.Path(fleetrun.__file__).parent)
    return clean_environment(PYTHONPATH=str(tmp_path / "path"))


@pytest.fixture
def job(work):
    work.script("t.py", TRAINS)
    done = work.run("--nproc_per_node=2", "--max_restart=1", "--restart_backoff=0", "--job_id=night", "t.py")
    assert done.status == 0, done.err
    return work


def export(work, *arguments, environment=None):
    return subprocess.run([find_fleetrun(), "export", *arguments], cwd=work.directory, capture_output=True,
                          text=True, env=environment or clean_environment(), timeout=60)


class Collected:
    """A collector, and what has come to it."""

    def __init__(self, folder):
        self.path = folder / "collected"
        with self.path.open("wb") as file:
            self.process = subprocess.Popen([PYTHON, ROOT / "tests/support/otlp_collector.py"], stdout=file)
        self.port = int(wait_until(lambda: self.path.read_text().partition("\n")[0], "the collector's port"))

    def requests(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()[1:]]

    def metrics(self):
        """{name: [point]}"""
        found = {}
        for kind, message in self.requests():
            for metric in (message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
                           if kind == "metrics" else []):
                found.setdefault(metric["name"], []).extend(
                    metric.get("gauge", metric.get("sum"))["dataPoints"])
        return found

    def spans(self):
        return [span for kind, message in self.requests() if kind == "traces"
                for span in message["resourceSpans"][0]["scopeSpans"][0]["spans"]]


@pytest.fixture
def collector(tmp_path):
    collected = Collected(tmp_path)
    yield collected
    collected.process.kill()
    collected.process.wait()


@needs_libraries
def test_tensorboard_reads_curves_and_events(job, environment):
    done = export(job, "--tensorboard=runs", f"--python={PYTHON}", environment=environment)
    assert done.returncode == 0, done.stderr
    read = subprocess.run([PYTHON, "-c", READ, "runs"], cwd=job.directory, capture_output=True, text=True)
    runs = json.loads(read.stdout)
    pod = next(job.directory.glob("log/*/events.jsonl")).parent.name
    # The third value is of a second pass, whose count begins anew. What is no number is left out.
    for rank in (0, 1):
        assert runs[f"night-{pod}/trainer-{rank}.attempt-1"]["scalars"] == {
            "loss": [[100, 0.25], [200, 0.5], [300, 0.25]]}
    scalars = runs[f"night-{pod}/job"]["scalars"]
    assert [value for _, value in scalars["attempt"]] == [0, 1]
    running = [value for _, value in scalars["processes_running"]]
    assert max(running) == 2 and running[-1] == 0
    assert runs[f"night-{pod}/job"]["texts"][0].startswith("**")


@needs_libraries
def test_a_collector_decodes_every_metric_and_span(job, environment, collector):
    done = export(job, f"--otlp=http://127.0.0.1:{collector.port}/", f"--python={PYTHON}",
                  environment=environment)
    assert done.returncode == 0, done.stderr
    metrics = collector.metrics()
    assert set(metrics) == {"fleetrun.job.restarts", "fleetrun.process.up", "fleetrun.training.loss",
                            "fleetrun.training.batch"}
    assert [point["asDouble"] for point in metrics["fleetrun.training.loss"]] == [0.25, 0.5, 0.25] * 2
    assert [point.get("asInt") for point in metrics["fleetrun.training.batch"]] == ["100", "200", "300"] * 2
    assert metrics["fleetrun.job.restarts"][-1]["asInt"] == "1"
    spans = collector.spans()
    by_id = {span["spanId"]: span for span in spans}
    parents = sorted((span["name"], by_id[span["parentSpanId"]]["name"] if "parentSpanId" in span else "")
                     for span in spans)
    assert parents == [("attempt 0", "job night"), ("attempt 1", "job night"), ("job night", ""),
                       *((f"trainer {rank}", f"attempt {attempt}") for rank in (0, 1) for attempt in (0, 1))]
    failed = next(span for span in spans if span["name"] == "attempt 0")
    assert failed["status"] == {"code": "STATUS_CODE_ERROR",
                                "message": "trainer 1 exited with 1: ValueError: it is 7 instead of 8"}
    events = json.loads(next(job.directory.glob("log/*/verdict.json")).read_text())
    assert len({span["traceId"] for span in spans}) == 1 and events["restarts"] == 1
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) for span in spans)


@needs_libraries
def test_a_job_that_runs_is_followed_to_its_end(work, environment, collector):
    work.script("t.py", """import os, time
print("time: [2026-11-24 11:27:27], batch: [1], loss[1]:[0.5]", flush=True)
while not os.path.exists("go"): time.sleep(0.02)
print("time: [2026-11-24 11:27:28], batch: [2], loss[1]:[0.4]", flush=True)
""")
    job = work.start("t.py")
    job.wait_for_log("workerlog.0", "loss")
    following = subprocess.Popen([find_fleetrun(), "export", "-f", f"--otlp=http://127.0.0.1:{collector.port}",
                                  f"--python={PYTHON}"], cwd=work.directory, env=environment)
    values = lambda: [point["asDouble"] for point in collector.metrics().get("fleetrun.training.loss", [])]
    wait_until(lambda: values() == [0.5], "the first value")
    (work.directory / "go").touch()
    assert following.wait(30) == 0 and job.finish().status == 0
    assert values() == [0.5, 0.4] and len(collector.spans()) == 3


@needs_libraries
def test_a_collector_that_is_not_there_is_an_error(job, environment):
    done = export(job, "--otlp=http://127.0.0.1:9", f"--python={PYTHON}", environment=environment)
    assert done.returncode == 125
    assert "http://127.0.0.1:9/v1/metrics does not take what it is sent" in done.stderr


def test_a_package_that_is_missing_is_named_with_its_command(job):
    for flag, package in (("--tensorboard=runs", "tensorboard"),
                          ("--otlp=http://h:1", "opentelemetry-exporter-otlp-proto-http")):
        done = export(job, flag, environment=clean_environment(PYTHONPATH=blocked(job, package)))
        assert done.returncode == 125 and "Traceback" not in done.stderr
        assert f"needs the package {package}" in done.stderr
        assert done.stderr.strip().endswith(f"-m pip install {package}")


def blocked(work, package):
    """A folder that hides the package, where this environment has it."""
    folder = work.directory / f"without-{package}"
    folder.mkdir()
    (folder / f"{package.split('-')[0]}.py").write_text("raise ImportError('it is hidden')")
    return str(folder)


def test_what_cannot_be_exported_is_refused(job):
    nowhere = export(job)
    assert nowhere.returncode == 125 and "give --tensorboard=DIR, --otlp=URL or both" in nowhere.stderr
    assert "there are no logs of job no-such-job" in export(job, "--tensorboard=x", "no-such-job").stderr
    assert not (job.directory / "x").exists()


def test_examples_a_second_come_from_files_of_events(tmp_path):
    from fleetrun._export.records import Job
    lines = [json.dumps({"time": 100 + i, "batches": 10, "examples": 640,
                         "values": {"loss": 0.5, "nan": None}})
             for i in range(3)]
    (tmp_path / "trainer-3.jsonl").write_text("\n".join([*lines, '{"time": 104']))
    job = Job(tmp_path, tmp_path)
    samples = job.new_samples()
    rates = [(each.rank, each.batch, each.value) for each in samples if each.name == "examples_per_second"]
    assert rates == [(3, 20, 640.0), (3, 30, 640.0)]
    assert {each.name for each in samples} == {"loss", "examples_per_second"}
    with (tmp_path / "trainer-3.jsonl").open("a") as file:
        file.write(', "batches": 10, "examples": 64, "values": {"loss": 0.25}}\n')
    assert [each.value for each in job.new_samples()] == [0.25, 32.0], "a line is read once, when it is whole"
