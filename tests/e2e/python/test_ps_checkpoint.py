"""Jobs whose parameter servers are killed, and go on: --ps_checkpoint, --max_restart."""

import json
import os
import signal
import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun, wait_until

TRAIN = """
import json, os, sys, time
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
paddle.seed(1)
fleet.init(is_collective=False)
x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
out = paddle.nn.Linear(4, 1)(x)
loss = paddle.mean((out - y) * (out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] == "async"
fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)
if fleet.is_server():
    with open("server.new", "w") as file:
        file.write(str(os.getpid()))
    os.replace("server.new", "server")
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
losses = []
for step in range(40):
    # The first trainer waits for the test; the others wait for it, in whatever they do.
    if fleet.worker_index() == 0 and step in (10, 25):
        open(f"at-{step}", "w").close()
        while not os.path.exists(f"go-{step}"):
            time.sleep(0.01)
    a = numpy.random.RandomState(100 * step + fleet.worker_index()).rand(8, 4).astype("float32")
    result = exe.run(paddle.static.default_main_program(), feed={"x": a, "y": a.sum(axis=1, keepdims=True)},
                     fetch_list=[loss])
    losses.append(float(result[0]).hex())
with open(f"losses-{fleet.worker_index()}", "w") as file:
    json.dump(losses, file)
fleet.stop_worker()
"""


def train(directory, kills, trainers, mode, *flags):
    """The losses of all trainers, as they wrote them, and what fleetrun said."""
    (directory / "train.py").write_text(TRAIN)
    if not kills:
        for step in (10, 25):
            (directory / f"go-{step}").touch()
    command = [find_fleetrun(), "--server_num=1", f"--trainer_num={trainers}", f"--python={sys.executable}", *flags,
               "train.py", mode]
    killed = set()
    with open(directory / "said", "wb") as said:
        job = subprocess.Popen(command, cwd=directory, env=environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        for step in (10, 25) if kills else ():
            wait_until((directory / f"at-{step}").exists, f"step {step}", LIMIT)
            wait_until(lambda: int((directory / "server").read_text()) not in killed, "another server", LIMIT)
            killed.add(int((directory / "server").read_text()))
            os.kill(int((directory / "server").read_text()), signal.SIGKILL)
            (directory / f"go-{step}").touch()
        status = job.wait(LIMIT)
    finally:
        job.kill()
        job.wait()
    text = (directory / "said").read_text(errors="replace")
    assert status == 0, text
    return [json.loads((directory / f"losses-{rank}").read_text()) for rank in range(trainers)], text


@pytest.mark.parametrize("mode,trainers", [("sync", 2), ("async", 1)])
def test_a_server_that_is_killed_twice_changes_nothing(tmp_path, mode, trainers):
    for name in ("calm", "killed"):
        (tmp_path / name).mkdir()
    calm, _ = train(tmp_path / "calm", False, trainers, mode, "--ps_checkpoint=kept")
    killed, said = train(tmp_path / "killed", True, trainers, mode, "--ps_checkpoint=kept", "--ps_checkpoint_interval=1")
    assert killed == calm
    logs = "".join(log.read_text(errors="replace") for log in (tmp_path / "killed").glob("**/serverlog.0*"))
    assert logs.count("goes on from checkpoint") >= 2, said
    assert (tmp_path / "killed" / "kept" / "server-00000" / "manifest").exists()


def test_with_max_restart_checkpoints_lie_beside_the_logs(tmp_path):
    losses, _ = train(tmp_path, True, 2, "sync", "--max_restart=3", "--log_dir=logs")
    assert len(losses[1]) == 40
    assert list((tmp_path / "logs").glob(".ps-*/server-00000/manifest"))


def test_what_an_earlier_run_has_kept_is_not_gone_on_with(tmp_path):
    first, _ = train(tmp_path, False, 1, "async", "--ps_checkpoint=kept")
    again, _ = train(tmp_path, False, 1, "async", "--ps_checkpoint=kept")
    assert first == again


@pytest.mark.parametrize("flag,says", [
    ("--ps_checkpoint=", "--ps_checkpoint"),
    ("--ps_log_sync=maybe", "--ps_log_sync"),
    ("--ps_checkpoint_interval=soon", "--ps_checkpoint_interval"),
])
def test_flags_that_mean_nothing_are_refused(tmp_path, flag, says):
    (tmp_path / "train.py").write_text(TRAIN)
    done = subprocess.run([find_fleetrun(), "--server_num=1", "--trainer_num=1", flag, "train.py"], cwd=tmp_path,
                          env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 125
    assert says in done.stderr.splitlines()[0]
