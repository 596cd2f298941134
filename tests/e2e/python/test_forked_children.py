"""Children that a trainer forks have its connections, and end without a word to the servers."""

import sys

from fleetrun_job import find_fleetrun
from flow import LIMIT

TRAIN = """
import os, sys
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
fleet.init()
ids = paddle.static.data("ids", [-1, 1], "int64")
loss = paddle.mean(paddle.static.nn.sparse_embedding(ids, [100, 4]))
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
if fleet.worker_index() == 0:
    child = os.fork()
    if child == 0:
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
print("trainers", fleet.util.all_gather(1))
for step in range(3):
    exe.run(feed={"ids": numpy.full((4, 1), fleet.worker_index(), numpy.int64)}, fetch_list=[loss])
    fleet.barrier_worker()
print("trained")
fleet.stop_worker()
"""


def test_a_child_that_ends_says_no_goodbye_for_its_trainer(tmp_path, start):
    (tmp_path / "train.py").write_text(TRAIN)
    job = start([find_fleetrun(), "--server_num=1", "--trainer_num=2", "--timeout=60",
                 f"--python={sys.executable}", "--log_dir=logs", "train.py"])
    said = job.communicate(timeout=LIMIT)[0]
    logs = [(tmp_path / f"logs/workerlog.{rank}").read_text() for rank in (0, 1)]
    assert job.returncode == 0, (said, logs)
    assert all("trainers [1, 1]" in log and "trained" in log for log in logs), logs
