"""Servers that start from a save (fleet.init_server(DIR)): nobody is let in before it is loaded."""

import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

TRAIN = """
import os, signal, socket, sys
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun import _native


class Watched(_native.RpcServer):
    def load(self, directory):
        rank = int(os.environ["FLEETRUN_RANK"])
        host, _, port = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")[rank].rpartition(":")
        with socket.socket() as probe:
            assert probe.connect_ex((host, int(port))) != 0, "trainers come before the load"
        if "killed" in sys.argv and rank == 1 and os.environ["FLEETRUN_ATTEMPT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(directory)


paddle.enable_static()
paddle.seed(1)
fleet.init()
ids = paddle.static.data("ids", [None, 1], "int64")
rows = paddle.static.nn.sparse_embedding(ids, [100, 4], param_attr=paddle.ParamAttr(name="rows"))
predicted = paddle.nn.Linear(4, 1)(paddle.reshape(rows, [-1, 4]))
loss = paddle.mean((predicted - 3) * (predicted - 3))
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), strategy).minimize(loss)
if fleet.is_server():
    _native.RpcServer = Watched
    fleet.init_server("model" if os.path.isdir("model") else None)
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
begins_with = os.path.isdir("model")
for step in range(8):
    feed = {"ids": numpy.arange(20).reshape(-1, 1)}
    print("LOSS", float(exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[loss])[0]).hex())
if not begins_with:
    fleet.save_persistables(exe, "model")
fleet.stop_worker()
"""


@pytest.mark.parametrize("flags", [[], ["--ps_replicas=1"]])
def test_a_server_that_is_killed_while_it_loads_loads_it_then(tmp_path, flags):
    (tmp_path / "train.py").write_text(TRAIN)

    def losses(*words):
        command = [find_fleetrun(), "--server_num=2", "--trainer_num=1", "--max_restart=2", *flags]
        done = subprocess.run([*command, f"--python={sys.executable}", "train.py", *words], cwd=tmp_path,
                              env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if line.startswith("LOSS")], done.stderr

    first, _ = losses()
    calm, _ = losses()
    killed, said = losses("killed")
    assert "server 1 is started again" in said
    assert len(first) == len(calm) == 8
    assert calm[0] != first[0]  # it goes on from the save
    assert killed == calm


DIRECT = """
import os, socket, sys
import numpy as np
from fleetrun import ps, _native

tables = [ps.SparseTable("emb", 1, rule="sum")]
if ps.is_server():
    server = ps.Server(tables)
    if "goes on" in sys.argv:
        with socket.socket() as probe:
            host, port = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(":")
            assert probe.connect_ex((host, int(port))) != 0, "trainers come before the load"
        server.load("model")
    server.wait()
    sys.exit(0)
with ps.Client(tables) as client:
    client.push("emb", [7], [[1.0]])
    print("SUM", client.pull("emb", [7]).item())
    if not os.path.isdir("model"):
        client.save("model")
"""


def test_a_server_of_ones_own_lets_trainers_in_once_it_has_loaded(tmp_path):
    (tmp_path / "train.py").write_text(DIRECT)
    for words, expected in (([], "SUM 1.0"), (["goes on"], "SUM 2.0")):
        command = [find_fleetrun(), "--server_num=1", "--trainer_num=1", f"--python={sys.executable}",
                   "train.py"]
        done = subprocess.run([*command, *words], cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout


def test_a_load_after_trainers_have_come_is_refused_and_theirs_stays(tmp_path):
    done = subprocess.run([sys.executable, "-c", """
import warnings
from fleetrun import Error, ps
tables = [ps.SparseTable("emb", 1, rule="sum")]
first = ps.Client(tables)
first.push("emb", [7], [[5.0]])
first.save("model")
server = ps.Server(tables, endpoint="127.0.0.1:0", load="model")
with ps.Client(tables, endpoints=[server.endpoint]) as client:
    client.push("emb", [7], [[1.0]])
    try:
        server.load("model")
    except Error as error:
        print(error)
    print("SUM", client.pull("emb", [7]).item())
"""], cwd=tmp_path, env=environment(FLEETRUN_INSECURE=1), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trainers have come to the server already, so it does not load model" in done.stdout
    assert "SUM 6.0" in done.stdout


ALONE = """
import sys
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

is_alone = sys.argv[1] == "alone"
ids, y = fluid.layers.data("ids", [1], dtype="int64"), fluid.layers.data("y", [1])
rows = fluid.layers.embedding(ids, [8, 3], is_sparse=True, param_attr=fluid.ParamAttr(name="rows"))
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(rows, 1), y))
exe, optimizer = fluid.Executor(fluid.CPUPlace()), fluid.optimizer.SGD(0.2)
if is_alone:
    optimizer.minimize(loss)
    exe.run(fluid.default_startup_program())
else:
    fleet.init(role_maker.PaddleCloudRoleMaker())
    fleet.distributed_optimizer(optimizer, StrategyFactory.create_sync_strategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server(sys.argv[2])
        fleet.run_server()
        sys.exit()
    exe.run(fleet.startup_program)
    fleet.init_worker()
feed = {"ids": np.arange(8).reshape(8, 1), "y": np.arange(8, dtype="float32").reshape(8, 1)}
for step in range(6):
    if is_alone and step == 3:
        fluid.io.save_persistables(exe, "alone")
    value, = exe.run(fluid.default_main_program(), feed=feed, fetch_list=[loss])
    print("LOSS %.5f" % float(value))
if not is_alone:
    fleet.stop_worker()
"""


def test_servers_start_from_what_a_process_alone_saved(run, package, tmp_path):
    alone = run("import sys\nsys.argv[1:] = ['alone']\n" + ALONE, PYTHONPATH=f"{package}/_compat")
    (tmp_path / "train.py").write_text(ALONE)

    def on_servers(directory):
        command = [find_fleetrun(), "--compat=paddle", "--server_num=2", "--trainer_num=1",
                   f"--python={sys.executable}", "train.py", "servers", directory]
        return subprocess.run(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT)

    done = on_servers("alone")
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(line.split()[1]) for line in alone.stdout.splitlines() if line.startswith("LOSS")]
    gone_on = [float(line.split()[-1]) for line in done.stdout.splitlines() if "LOSS" in line]
    assert gone_on[:3] == pytest.approx(losses[3:], abs=2e-5)
    assert "begins anew" in (tmp_path / "log" / "serverlog.0").read_text()
    (tmp_path / "alone" / "fc_0.b_0").write_bytes((tmp_path / "alone" / "rows").read_bytes())
    wrong = on_servers("alone")
    assert wrong.returncode == 1
    said = wrong.stdout + wrong.stderr
    assert "alone: fc_0.b_0 has the shape [8, 3] there, and is [1] in the program" in said
