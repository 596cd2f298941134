"""fleet.util.get_dynamic_files: trainers of a job share files, and whoever is done takes the next one."""

import json
import os
import signal
import subprocess
import sys

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

FILES = 12
ROWS = 40

# Trainer 1 takes a file and then waits until trainer 0 has taken all the others: its first line and its last
# one come through pipes, so that nobody's speed matters.
TRAIN = """
import json, os, sys
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=False)
x = paddle.static.data(name="x", shape=[None, 2], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
out = paddle.nn.Linear(2, 1)(x)
loss = paddle.mean((out - y) * (out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] != "sync"
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.01), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
rank = fleet.worker_index()
dataset = paddle.distributed.QueueDataset()
dataset.init(batch_size=8, thread_num=1, use_var=[x, y])
files = [f"part-{i}" for i in range(12)]
taken = []
for turn in range(2):
    mine = []
    if turn == 0 and rank == 0:
        open("taken").read()                # until trainer 1 has a file
    for file in fleet.util.get_dynamic_files(files):
        mine.append(file)
        dataset.set_filelist([file])
        exe.train_from_dataset(paddle.static.default_main_program(), dataset)
        if turn == 0 and rank == 1 and len(mine) == 1:
            open("taken", "w").close()
            open("done").read()             # until trainer 0 has the last one
        if turn == 0 and rank == 0 and len(mine) == len(files) - 1:
            open("done", "w").close()
    taken.append(mine)
with open(f"taken-{rank}", "w") as file:
    json.dump(taken, file)
fleet.stop_worker()
"""


def job(directory, mode):
    (directory / "train.py").write_text(TRAIN)
    for name in ("taken", "done"):
        os.mkfifo(directory / name)
    for i in range(FILES):
        (directory / f"part-{i}").write_text("".join(f"2 0.{i} 0.{row} 1 0.5\n" for row in range(ROWS)))
    command = [find_fleetrun(), "--server_num=1", "--trainer_num=2", f"--python={sys.executable}", "train.py",
               mode]
    return subprocess.run(command, cwd=directory, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True,
                          text=True, timeout=LIMIT)


def test_the_fast_trainer_takes_more_files_and_each_file_is_read_once_a_pass(tmp_path):
    done = job(tmp_path, "async")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (json.loads((tmp_path / f"taken-{rank}").read_text()) for rank in (0, 1))
    assert (len(first[0]), len(second[0])) == (FILES - 1, 1)
    for turn in range(2):
        assert sorted(first[turn] + second[turn]) == sorted(f"part-{i}" for i in range(FILES))


def test_sync_mode_says_why_not(tmp_path):
    done = job(tmp_path, "sync")
    assert done.returncode != 0
    assert ("get_dynamic_files in sync mode, where all trainers begin each pass together" in done.stdout +
            done.stderr)


ONE = """
import os, signal, sys
from fleetrun import _native
queue = _native.shared_file_queue(["a", "b", "c"], "claims")
print(queue.next(), flush=True)
if sys.argv[1] == "dies":
    print(queue.next(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
while (file := queue.next()) is not None:
    print(file, flush=True)
"""


def test_a_file_whose_reader_is_killed_is_given_to_another_and_those_that_are_done_are_not(tmp_path):
    def one(what):
        return subprocess.run([sys.executable, "-c", ONE, what], cwd=tmp_path, env=environment(),
                              capture_output=True,
                              text=True, timeout=LIMIT)

    killed = one("dies")
    assert killed.returncode == -signal.SIGKILL and killed.stdout.split() == ["a", "b"]
    other = one("reads on")
    assert other.returncode == 0, other.stderr
    assert other.stdout.split() == ["b", "c"]


def test_trainers_that_fleetrun_did_not_start_are_told_so(tmp_path):
    script = """
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed.fleet import UserDefinedRoleMaker, Role
fleet.init(UserDefinedRoleMaker(current_id=0, role=Role.WORKER, worker_num=2, server_endpoints=["127.0.0.1:1"]))
try:
    fleet.util.get_dynamic_files(["a"])
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment(),
                          capture_output=True, text=True,
                          timeout=LIMIT)
    assert "get_dynamic_files with 2 trainers that fleetrun did not start" in done.stdout, done.stderr
