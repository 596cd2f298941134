"""Jobs whose parameter servers move between processes while they train: --server_num=N:MOST, ps resize."""

import json
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
word = paddle.static.data(name="word", shape=[None, 1], dtype="int64")
row = paddle.static.nn.sparse_embedding(input=word, size=[1000, 4], param_attr="rows")
out = paddle.nn.Linear(4, 1)(x + paddle.reshape(row, [-1, 4]))
loss = paddle.mean((out - 1) * (out - 1))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] == "async"
fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
losses = []
moved = len(sys.argv) > 2
for step in range(200):
    # The first trainer waits for the test once; from then on servers move under it.
    if moved and fleet.worker_index() == 0 and step == 10:
        open("at-10", "w").close()
        while not os.path.exists("go-10"):
            time.sleep(0.01)
    if moved and step == 199:
        while not os.path.exists("go-199"):
            time.sleep(0.01)
    random = numpy.random.RandomState(1000 * step + fleet.worker_index())
    feed = {"x": random.rand(8, 4).astype("float32"), "word": random.randint(0, 1000, [8, 1])}
    losses.append(float(exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[loss])[0]).hex())
with open(f"losses-{fleet.worker_index()}", "w") as file:
    json.dump(losses, file)
fleet.stop_worker()
"""


def started(directory, servers, trainers, *words, flags=()):
    (directory / "train.py").write_text(TRAIN)
    command = [find_fleetrun(), f"--server_num={servers}", f"--trainer_num={trainers}", *flags,
               f"--python={sys.executable}", "train.py", *words]
    with open(directory / "said", "wb") as said:
        return subprocess.Popen(command, cwd=directory, env=surroundings(directory), stdin=subprocess.DEVNULL,
                                stdout=said, stderr=said)


def surroundings(directory):
    return environment(FLEETRUN_RUN_DIR=str(directory / "run"))


def resize(directory, *words):
    return subprocess.run([find_fleetrun(), "ps", "resize", *words], cwd=directory,
                          env=surroundings(directory), capture_output=True, text=True, timeout=LIMIT)


def losses_of(directory, job, trainers):
    try:
        status = job.wait(LIMIT)
    finally:
        job.kill()
        job.wait()
    assert status == 0, (directory / "said").read_text(errors="replace")
    return [json.loads((directory / f"losses-{rank}").read_text()) for rank in range(trainers)]


@pytest.mark.parametrize("mode,trainers,flags", [("sync", 2, []), ("async", 1, ["--ps_replicas=1"])])
def test_servers_that_move_change_nothing(tmp_path, mode, trainers, flags):
    (still := tmp_path / "still").mkdir()
    (moving := tmp_path / "moving").mkdir()
    expected = losses_of(still, started(still, 5, trainers, mode), trainers)
    job = started(moving, "2:5", trainers, mode, "moved", flags=flags)
    try:
        wait_until((moving / "at-10").exists, "step 10", LIMIT)
        (moving / "go-10").touch()
        for processes in ("5", "3", "1"):
            done = resize(moving, processes)
            assert done.returncode == 0 and ", done in " in done.stdout, done.stdout + done.stderr
        refused = resize(moving, "6")
        assert refused.returncode != 0 and "5" in refused.stderr, refused.stderr
        (moving / "go-199").touch()
    except BaseException:
        job.kill()
        raise
    assert losses_of(moving, job, trainers) == expected
