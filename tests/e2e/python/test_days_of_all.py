"""Days of jobs in which all trainers shrink and save, as Paddle's scripts do: a day counts once."""

import gzip
import subprocess
import sys

import numpy as np
from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

TRAIN = """
import sys
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
paddle.seed(1)
fleet.init()
show, click, ids = (paddle.static.data(name, [None, 1], "int64") for name in ("show", "click", "ids"))
entry = paddle.distributed.ShowClickEntry("show", "click")
rows = paddle.static.nn.sparse_embedding(ids, [100, 2], entry=entry, param_attr=paddle.ParamAttr(name="rows"))
loss = paddle.mean(rows)
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
strategy.sparse_table_configs = {"rows": {
    "table_parameters.rows.accessor.ctr_accessor_param.show_click_decay_rate": 0.5,
    "table_parameters.rows.accessor.ctr_accessor_param.delta_threshold": 0.1,
    "table_parameters.rows.accessor.ctr_accessor_param.base_threshold": 0.1}}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
mine = np.arange(12)[fleet.worker_index()::fleet.worker_num()].reshape(-1, 1)
ones = np.ones_like(mine)
for day in range(2):
    exe.run(paddle.static.default_main_program(), feed={"ids": mine, "show": 8 * ones, "click": 4 * ones})
    fleet.barrier_worker()
    fleet.save_inference_model(exe, "serve", ["ids"], [rows], mode=1)
    fleet.barrier_worker()
    fleet.shrink()
    fleet.save_persistables(exe, "day", mode=3)
    fleet.barrier_worker()
if fleet.is_first_worker():
    fleet.save_persistables(exe, "text", format="paddle")
fleet.barrier_worker()
fleet.stop_worker()
"""


def rows_after(folder, trainers):
    """What a job's rows have of their statistics, by key; and the keys of the newest changes it served."""
    from fleetrun import _native

    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    command = [find_fleetrun(), "--server_num=1", f"--trainer_num={trainers}", f"--python={sys.executable}"]
    done = subprocess.run([*command, "train.py"], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = "".join(file.read_text() for file in (folder / "log").rglob("workerlog.*"))
    said = {line for line in logs.splitlines() if "has no effect on trainer" in line}
    assert len(said) == 3 * (trainers - 1), said
    lines = [line.split() for file in (folder / "text").rglob("part*")
             for line in gzip.open(file, "rt") if len(line.split()) > 6]
    keys, values = _native.saved_values(str(folder / "serve" / "tables"))["rows"]
    served = dict(zip(np.asarray(keys).tolist(), np.asarray(values).tolist()))
    return {line[0]: line[1:6] for line in lines}, served


def test_a_day_of_three_trainers_is_one_day(tmp_path):
    alone, served = rows_after(tmp_path / "one", 1)
    assert len(alone) == 12 and {row[1] for row in alone.values()} == {"1"}, alone
    together, served_together = rows_after(tmp_path / "three", 3)
    assert together == alone
    assert len(served) == 12 and served_together.keys() == served.keys()
