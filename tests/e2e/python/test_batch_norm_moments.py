"""Running moments of batch norm under parameter servers:
each trainer's own, in no save of tables, in an inference model."""

import pathlib
import sys

from flow import LIMIT

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"

TRAIN = """
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
fleet.init()
x = paddle.static.data("x", [None, 2])
normal = paddle.static.nn.batch_norm(x, moving_mean_name="running_mean", moving_variance_name="running_variance")
out = paddle.nn.Linear(2, 1)(normal)
loss = paddle.mean(paddle.square(out))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    raise SystemExit
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
tables = sorted(entry.parameter for entry in fleet.fleet.training.plan.entries())
assert len(tables) == 4 and not any("running" in name for name in tables), tables
rank = fleet.worker_index()
exe.run(feed={"x": np.array([[1.0, 2.0], [3.0, 4.0]], "float32") * (rank + 1)}, fetch_list=[loss])

def moments():
    scope = paddle.static.global_scope()
    return [round(float(value), 5) for name in ("running_mean", "running_variance") for value in np.array(scope.find_var(name))]

assert moments()[:2] == [[0.2, 0.3], [0.4, 0.6]][rank], moments()
fleet.barrier_worker()
if rank == 1:
    fleet.save_persistables(exe, "tables")
    fleet.save_inference_model(exe, "model", ["x"], [out])
    kept = moments()
    for name in ("running_mean", "running_variance"):
        paddle.static.global_scope().find_var(name).get_tensor().set(np.full(2, 7, "float32"), None)
    fleet.load_model("tables")
    assert moments() == [7.0] * 4, moments()
    paddle.distributed.io.load_inference_model_distributed("model", exe)
    assert moments() == kept, (moments(), kept)
fleet.barrier_worker()
fleet.stop_worker()
print("done")
"""


def test_each_trainer_has_the_moments_of_its_own_batches(tmp_path, start):
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    job = start([FLEETRUN, "--server_num=1", "--trainer_num=2", "--log_dir=log", "train.py"])
    told = job.communicate(timeout=LIMIT)[0]
    logs = [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(2)]
    assert job.returncode == 0, told + "".join(logs)
    assert all("done" in log for log in logs), logs
