"""The batch that a trainer could not train on, in the report of its job, and run again elsewhere.

Each kind of them is in a campaign, tests/campaigns/replays.py.
"""

import base64
import json
import os
import subprocess
import sys

import pytest

from fleetrun_job import clean_environment, find_fleetrun

BAD_LINE = """
import fleetrun as paddle, fleetrun.nn.functional as F
from fleetrun import static
paddle.enable_static()
x, y = static.data("x", [None, 2]), static.data("y", [None, 1], "int64")
loss = paddle.mean(F.cross_entropy(static.nn.fc(x, 3), y))
paddle.optimizer.SGD(0.1).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
open("part", "w").write("2 1 2 1 0\\n2 1 three 1 0\\n")
data = paddle.distributed.QueueDataset()
data.init(use_var=[x, y], batch_size=2)
data.set_filelist(["part"])
exe.train_from_dataset(dataset=data)
"""


def tool(folder, *arguments):
    environment = clean_environment()
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
    return subprocess.run([find_fleetrun(), *arguments], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=120)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    (folder / "t.py").write_text(BAD_LINE)
    assert tool(folder, "t.py").returncode == 1
    assert tool(folder, "report", "-o", "report.json").returncode == 0
    without = tool(folder, "report", "-o", "-", "--without_batches")
    assert json.loads(without.stdout)["batches"] == {}
    return json.loads((folder / "report.json").read_text())


def replay(folder, report, batch=None):
    """The replay of the report, with other bytes as its batch where they are given."""
    if batch is not None:
        report = report | {"batches": {"trainer 0": base64.b64encode(batch).decode()}}
    (folder / "report.json").write_text(json.dumps(report))
    return tool(folder, "replay", "-q", "report.json")


def test_the_line_that_ended_an_epoch_is_read_again(tmp_path, report):
    done = replay(tmp_path, report)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the batch that trainer 0 could not train on\n  line: \"2 1 three 1 0\"\n" in done.stdout
    assert "  then: part:2:5: slot 'x': 'three' is not a number\n  now: the same\n" in done.stdout


def test_a_batch_that_fails_no_more_is_told(tmp_path, report):
    batch = base64.b64decode(report["batches"]["trainer 0"])
    done = replay(tmp_path, report, batch.replace(b"2 1 three 1 0", b"2 1 3     1 0"))
    assert done.returncode == 1 and "  differs: now nothing fails\n" in done.stdout, done.stdout + done.stderr


def test_a_batch_that_cannot_be_read_is_refused(tmp_path, report):
    batch = base64.b64decode(report["batches"]["trainer 0"])
    for bytes_ in (b"", b"fleetrun batch 2\n", batch[:-1], batch + b"x", batch.replace(b"\0", b"\xff")):
        done = replay(tmp_path, report, bytes_)
        assert done.returncode == 1 and "fleetrun replay: error: " in done.stderr, done.stderr
