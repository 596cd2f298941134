"""A model that was trained on servers and is tested in one process, as PaddleRec 1.8 does."""

import os
import pathlib
import sys

import pytest

from flow import LIMIT

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"

MODEL = """
import sys
import numpy as np
import paddle.fluid as fluid

def net(rows=20):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=0)
    found = fluid.embedding(ids, [rows, 3], is_sparse=True, param_attr=fluid.ParamAttr(
        name="rows", initializer=fluid.initializer.Constant(0.25)))
    predicted = fluid.layers.fc(fluid.layers.reshape(found, [-1, 3]), 1, name="fc")
    loss = fluid.layers.mean(fluid.layers.square(predicted - fluid.layers.cast(ids, "float32")))
    auc = fluid.layers.auc(fluid.layers.sigmoid(fluid.layers.concat([predicted, predicted], 1)), ids)[0]
    return predicted, loss

exe = fluid.Executor(fluid.CPUPlace())
feed = {"ids": np.arange(12, dtype="int64").reshape(-1, 1)}
"""
TRAIN = """
from model import *
from paddle.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

fleet.init(PaddleCloudRoleMaker())
predicted, loss = net()
strategy = StrategyFactory.create_sync_strategy()
fleet.distributed_optimizer(fluid.optimizer.Adam(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server("")
    fleet.run_server()
else:
    exe.run(fleet.startup_program)
    fleet.init_worker()
    copy = fleet.main_program.clone()  # which trains, too
    for step in range(5):
        exe.run(copy, feed=feed, fetch_list=[loss])
    if fleet.worker_index() == 0:
        fleet.save_persistables(exe, "kept")
    test = fleet.main_program.clone(for_test=True)
    print("predicted", *exe.run(test, feed=feed, fetch_list=[predicted])[0].ravel())
fleet.stop_worker()  # by servers, too
"""
TEST = """
from model import *

predicted, loss = net({rows})
exe.run(fluid.default_startup_program())
fluid.io.load_persistables(exe, "kept", fluid.default_main_program())
print("predicted", *exe.run(feed=feed, fetch_list=[predicted])[0].ravel())
rows = np.array(fluid.global_scope().find_var("rows").get_tensor())
assert np.array_equal(rows[12:], np.full((8, 3), 0.25, "float32")) and not np.any(rows[:12] == 0.25)
"""


@pytest.mark.parametrize("servers", [1, 2])
def test_what_servers_saved_is_loaded_into_one_process(tmp_path, start, servers):
    def run(script, *flags):
        (tmp_path / "script.py").write_text(script, encoding="utf-8")
        logs = tmp_path / "log"
        job = start([FLEETRUN, "--compat=paddle", *flags, f"--log_dir={logs}", "script.py"])
        told = job.communicate(timeout=LIMIT)[0]
        said = (logs / "workerlog.0").read_text()
        lines = [line.split()[1:] for line in said.splitlines() if line.startswith("predicted")]
        return job.returncode, told, said, [float(word) for line in lines for word in line]

    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    code, told, _, trained = run(TRAIN, f"--server_num={servers}", "--trainer_num=1")
    assert code == 0 and len(trained) == 12, told
    code, told, said, tested = run(TEST.format(rows=20))
    assert code == 0, told
    assert tested == pytest.approx(trained, rel=1e-5)
    assert "kept is of servers, which save parameters" in said
    code, told, _, tested = run(TEST.format(rows=20).replace("exe.run(fluid.default_startup_program())", ""))
    assert code == 0 and tested == pytest.approx(trained, rel=1e-5), told
    code, told, said, _ = run(TEST.format(rows=8))
    assert code != 0 and "kept: rows has a row 11 there, and is [8, 3] in the program" in told + said
    (piece,) = [name for name in sorted(os.listdir(tmp_path / "kept")) if name.startswith("part-")][:1]
    content = bytearray((tmp_path / "kept" / piece).read_bytes())
    content[-20] ^= 1
    (tmp_path / "kept" / piece).write_bytes(content)
    code, told, said, _ = run(TEST.format(rows=20))
    assert code != 0 and piece in told + said
