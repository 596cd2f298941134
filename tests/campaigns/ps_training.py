"""What the scripts of the campaigns of parameter servers have in common: the servers' part, and where
trainers begin. job: the choices of the file job.json."""

import sys
import time

import paddle
import paddle.distributed.fleet as fleet


class Slow:
    """What is printed takes a while, so that processes can be killed and moved meanwhile."""

    def __init__(self, seconds):
        self.seconds = seconds

    def write(self, text):
        time.sleep(self.seconds)
        sys.stderr.write(text)

    def flush(self):
        pass


def begin(job):
    """A server serves, and does not come back; a trainer gets (executor, rank), and loads what the job
    says."""
    mode = job.get("load_mode", 0)
    if fleet.is_server():
        if job["init_model"]:
            fleet.init_server(job["init_model"], mode=mode)
        else:
            fleet.init_server()
        fleet.run_server()
        raise SystemExit
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    if "slow" in job:
        sys.stdout = Slow(job["slow"])
    if job["load"]:
        if fleet.is_first_worker():
            fleet.load_model(job["load"], mode=mode)
        fleet.barrier_worker()
    return executor, fleet.worker_index()
