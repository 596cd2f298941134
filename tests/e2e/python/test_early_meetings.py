"""Trainers that meet before they have servers: fleet.util, fleet.metrics and barriers at the head of a
script, as scripts of Paddle use them to wait for a download or to count their files."""

import sys

from fleetrun_job import find_fleetrun
from flow import LIMIT

TRAIN = """
import os, signal, sys
import numpy
import paddle
import paddle.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=False)
if fleet.is_worker():
    rank = fleet.worker_index()
    again = os.path.exists(f"began-{rank}")
    open(f"began-{rank}", "w").close()
    if rank == 0:
        open("downloaded", "w").close()
    fleet.barrier_worker()
    assert os.path.exists("downloaded")
    if again:
        try:
            fleet.util.all_gather(1)
        except paddle.Error as error:
            print("again:", error)
    else:
        print("early", fleet.util.all_gather(rank + 5), fleet.metrics.max(numpy.array([1.5, rank])).tolist())
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64")
loss = paddle.mean(paddle.static.nn.sparse_embedding(ids, [30, 4]))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=1.0), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
fleet.barrier_worker() if not again else None
if KILLED and rank == 1 and not again:
    os.kill(os.getpid(), signal.SIGKILL)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
print("late", fleet.util.all_gather(rank + 7))
fleet.stop_worker()
"""


def run(tmp_path, start, trainers, killed, *flags):
    (tmp_path / "train.py").write_text(f"KILLED = {killed}\n" + TRAIN)
    job = start([find_fleetrun(), "--compat=paddle", "--server_num=1", f"--trainer_num={trainers}", *flags,
                 f"--python={sys.executable}", "--log_dir=logs", "train.py"])
    said = job.communicate(timeout=LIMIT)[0]
    logs = [(tmp_path / f"logs/workerlog.{rank}").read_text() for rank in range(trainers)]
    assert job.returncode == 0, (said, logs)
    return logs


def test_trainers_meet_before_they_have_servers(tmp_path, start):
    for log in run(tmp_path, start, 2, False):
        assert "early [5, 6] [1.5, 1.0]" in log and "late [7, 8]" in log


def test_one_trainer_meets_nobody(tmp_path, start):
    assert "early [5] [1.5, 0.0]" in run(tmp_path, start, 1, False)[0]


def test_who_is_started_again_alone_waits_for_nobody(tmp_path, start):
    logs = run(tmp_path, start, 2, True, "--max_restart=1", "--restart_backoff=0")
    assert "late [7, 8]" in logs[0] and "late [7, 8]" in logs[1]
    told = "again: fleet.util before fleet.init_worker(), in a trainer that was started again alone"
    assert told in logs[1]


BARRIERS = """
import paddle
import paddle.distributed.fleet as fleet

paddle.enable_static()
fleet.init()
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64")
loss = paddle.mean(paddle.static.nn.sparse_embedding(ids, [30, 4]))
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=1.0), fleet.DistributedStrategy()).minimize(loss)
fleet.util.barrier("server" if fleet.is_server() else "worker")
fleet.util.barrier("all")
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    paddle.static.Executor().run(paddle.static.default_startup_program())
    fleet.init_worker()
    fleet.stop_worker()
fleet.util.barrier()
fleet.barrier_worker()
print("behind the barriers")
"""


def test_barriers_that_all_roles_call_let_servers_go_on(tmp_path, start):
    (tmp_path / "train.py").write_text(BARRIERS)
    job = start([find_fleetrun(), "--compat=paddle", "--server_num=1", "--trainer_num=2",
                 f"--python={sys.executable}", "--log_dir=logs", "train.py"])
    said = job.communicate(timeout=LIMIT)[0]
    names = ("serverlog.0", "workerlog.0", "workerlog.1")
    logs = {name: (tmp_path / "logs" / name).read_text() for name in names}
    assert job.returncode == 0, (said, logs)
    assert all("behind the barriers" in log for log in logs.values())
    assert "fleet.util.barrier(comm_world='server'): servers wait for nobody" in logs["serverlog.0"]
