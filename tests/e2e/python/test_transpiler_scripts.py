"""Scripts of Paddle 1.x for servers: a DistributeTranspilerConfig is the strategy, a FetchHandler sees
values, a schedule of fluid.layers counts the batches of a dataset, another program infers with the tables.
"""

import json
import re
import sys

import pytest

from flow import LIMIT

NET = """
import paddle.fluid as fluid

def net(is_train):
    ids = fluid.layers.data(name="ids", shape=[1], lod_level=1, dtype="int64")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    rows = fluid.layers.embedding(ids, [100, 4], is_sparse=True, param_attr=fluid.ParamAttr(name="rows"))
    wide = fluid.layers.sequence_pool(rows, "sum")
    predict = fluid.layers.fc(wide, 2, act="softmax", param_attr=fluid.ParamAttr(name="dense"))
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
    return [ids, label], loss
"""

TRAIN = NET + """
import numpy
from paddle.distributed.fleet.utils.ps_util import DistributedInfer
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

fleet.init(role_maker.PaddleCloudRoleMaker())
config = DistributeTranspilerConfig()
config.sync_mode = False
config.runtime_split_send_recv = True
inputs, loss = net(True)
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), config).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    dataset = fluid.DatasetFactory().create_dataset()
    dataset.set_use_var(inputs)
    dataset.set_batch_size(5)
    files = fleet.split_files(["part0", "part1"])
    dataset.set_filelist(files)

    class Handler(fluid.executor.FetchHandler):
        def handler(self, values):
            print("handled", files, sorted(values), values["loss"].shape)

    handler = Handler({"loss": loss}, period_secs=100)
    exe.train_from_dataset(fleet.main_program, dataset, fetch_handler=handler)
    feed = {"ids": fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]], None), "label": numpy.array([[0], [1]])}
    rows, = exe.run(fleet.main_program, feed=feed, fetch_list=["rows"])
    print("fetched", rows.shape, numpy.unique(rows).size > 300)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        _, other = net(False)
    program = DistributedInfer(main, startup).get_dist_infer_program()
    print("moved", [op.type for op in program.ops][0])
    value, = exe.run(program, feed=feed, fetch_list=[other.name])
    print("inferred", float(value) > 0)
    fleet.stop_worker()
"""


def lines(path, count):
    """`count` examples: one to three ids, and a label."""
    path.write_text("".join(f"{1 + i % 3} " + " ".join(str((i * 7 + k) % 100) for k in range(1 + i % 3))
                            + f" 1 {i % 2}\n" for i in range(count)))


# Fleet's own quick start of before Paddle 2 neither connects nor says goodbye.
@pytest.mark.parametrize("calls", [(), ("fleet.init_worker()", "fleet.stop_worker()")])
def test_a_transpiler_config_is_a_strategy_and_another_program_infers(tmp_path, start, calls):
    from fleetrun_job import find_fleetrun

    for part in range(2):
        lines(tmp_path / f"part{part}", 20)
    script = "\n".join(line for line in TRAIN.split("\n") if line.strip() not in calls)
    (tmp_path / "train.py").write_text(script)
    job = start([find_fleetrun(), "--compat=paddle", "--server_num=1", "--trainer_num=2", "--python",
                 sys.executable, "train.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    logs = "".join((tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(2))
    assert sorted(re.findall(r"handled (.*)", logs)) == ["['part0'] ['loss'] (1,)", "['part1'] ['loss'] (1,)"]
    assert logs.count("moved sparse_embedding") == 2 and logs.count("inferred True") == 2
    assert logs.count("fetched (100, 4) True") == 2, logs


def test_the_flags_of_a_config_say_the_mode_as_in_paddle(run, package):
    done = run("""
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig
from fleetrun.distributed.fleet._transpiler_strategy import exchange_of

for flags in ({}, {"sync_mode": False}, {"sync_mode": False, "runtime_split_send_recv": True},
              {"sync_mode": False, "runtime_split_send_recv": True, "half_async": True},
              {"sync_mode": False, "runtime_split_send_recv": True, "geo_sgd_mode": True,
               "geo_sgd_need_push_nums": 7}):
    config = DistributeTranspilerConfig()
    for name, value in flags.items():
        setattr(config, name, value)
    exchange = exchange_of(config)
    print(exchange.mode, exchange.geo_steps)
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines() == ["sync 100", "half_async 100", "async 100", "half_async 100", "geo 7"]


def test_a_schedule_of_layers_counts_the_batches_of_a_dataset(run, package, tmp_path):
    lines(tmp_path / "part0", 20)
    done = run(NET + """
import json
import numpy
main, startup = fluid.Program(), fluid.Program()
startup.random_seed = 3
with fluid.program_guard(main, startup):
    inputs, loss = net(True)
    rate = fluid.layers.exponential_decay(0.5, decay_steps=1, decay_rate=0.5, staircase=True)
    fluid.optimizer.SGD(rate).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())

def weights(train):
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        train()
        return numpy.array(fluid.global_scope().find_var("dense").get_tensor()).tolist()

def by_dataset():
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(inputs)
    dataset.set_batch_size(5)
    dataset.set_filelist(["part0"])
    exe.train_from_dataset(main, dataset, fetch_list=[loss], print_period=3)

def by_run():
    for batch in range(4):
        picked = [[(i * 7 + k) % 100 for k in range(1 + i % 3)] for i in range(batch * 5, batch * 5 + 5)]
        ids = fluid.create_lod_tensor(picked, [[len(one) for one in picked]], None)
        label = numpy.array([[i % 2] for i in range(batch * 5, batch * 5 + 5)])
        exe.run(main, feed={"ids": ids, "label": label})

started = weights(lambda: None)
# The schedule counts on from pass to pass: one of the two, each in a process of its own.
print(json.dumps([started, weights(by_dataset)]))
""", PYTHONPATH=f"{package}/_compat")
    assert len(re.findall(r"batch: \[3\], mean", done.stdout)) == 1, done.stdout
    assert "batch: [1]" not in done.stdout
    started, by_dataset = json.loads(done.stdout.splitlines()[-1])
    script = (tmp_path / "script.py").read_text().replace("weights(by_dataset)", "weights(by_run)")
    again = run(script, PYTHONPATH=f"{package}/_compat")
    assert json.loads(again.stdout.splitlines()[-1]) == [started, by_dataset]
    assert started != by_dataset


def test_document_004_s_words_for_local_sgd(run, package):
    done = run("""
from paddle.fluid.incubate.fleet.collective import DistributedStrategy
strategy = DistributedStrategy()
strategy.use_local_sgd = True
strategy.local_sgd_is_warm_steps = 5
strategy.local_sgd_steps = 2
print(strategy.today().localsgd, sorted(strategy.today().localsgd_configs.items()))
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout == "True [('begin_step', 5), ('k_steps', 2)]\n"


def test_messages_of_paddle_are_imported_and_refused_when_used(run, package):
    done = run("""
import paddle.fluid.proto.framework_pb2 as framework_pb2
from paddle.distributed.fleet.proto import index_dataset_pb2
try:
    framework_pb2.ProgramDesc()
except AttributeError as error:
    print(error)
""", PYTHONPATH=f"{package}/_compat")
    assert "no message ProgramDesc: it is a part of Paddle's own machinery" in done.stdout


TAKEN_APART = """
import os
import numpy
import paddle.fluid as fluid

def values(seed, *shape):
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(
        numpy.random.RandomState(seed).randn(*shape).astype("float32")))

ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
y = fluid.layers.data("y", [1], dtype="float32")
rows = fluid.layers.embedding(ids, [20, 4], is_sparse=True, param_attr=values(1, 20, 4))
hidden = fluid.layers.fc(fluid.layers.sequence_pool(rows, "sum"), 5, act="tanh", param_attr=values(2, 4, 5))
predict = fluid.layers.fc(hidden, 1, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.2)))
loss = fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
test = fluid.default_main_program().clone(for_test=True)
fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(0.3))
fluid.optimizer.SGD(0.5).minimize(loss)
role, rank = os.environ["TRAINING_ROLE"], int(os.environ.get("PADDLE_TRAINER_ID", 0))
transpiler = fluid.DistributeTranspiler()
transpiler.transpile(rank, pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"], trainers=2)
exe = fluid.Executor(fluid.CPUPlace())
if role == "PSERVER":
    here = os.environ["POD_IP"] + ":" + os.environ["PADDLE_PORT"]
    program = transpiler.get_pserver_program(here)
    exe.run(transpiler.get_startup_program(here, program))
    exe.run(program)
    print("served")
else:
    def feed(step):
        draw = numpy.random.RandomState(100 * rank + step)
        lengths = draw.randint(1, 4, 6)
        drawn = draw.randint(0, 20, (lengths.sum(), 1)).astype("int64")
        return {"ids": fluid.create_lod_tensor(drawn, [lengths.tolist()], fluid.CPUPlace()),
                "y": draw.randn(6, 1).astype("float32")}

    exe.run(fluid.default_startup_program())
    program = transpiler.get_trainer_program()
    losses = [exe.run(program, feed=feed(step), fetch_list=[loss])[0][0] for step in range(8)]
    if rank == 0:
        fluid.io.save_inference_model("model", ["ids"], [predict], exe, main_program=test)
        fluid.io.save_persistables(exe, "values", program)
        with fluid.scope_guard(fluid.Scope()):
            model, _, fetched = fluid.io.load_inference_model("model", exe)
            losses.extend(exe.run(model, feed={"ids": feed(50)["ids"]}, fetch_list=fetched)[0].ravel())
        assert sorted(os.listdir("values")) == sorted(each.name for each in program.all_parameters())
    print("losses", [float(each) for each in losses])
    exe.close()
"""

# Trainer 0 of Paddle 1.8.5: eight losses, which clip each trainer's gradients, and what the saved model says.
OF_PADDLE = [
    0.7404430, 3.0738080, 0.6491342, 1.1464630, 0.4436162, 0.3065723, 0.7958902, 1.0040869,
    0.0366073, 0.1022555, 0.2781507, -0.0227980, 0.0217090, -0.1577450,
]  # fmt: skip


def test_a_minimized_program_is_taken_apart_for_servers(tmp_path, start):
    from fleetrun_job import find_fleetrun

    (tmp_path / "train.py").write_text(TAKEN_APART)
    job = start([find_fleetrun(), "--compat=paddle", "--server_num=2", "--trainer_num=2", "--python",
                 sys.executable, "train.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    found = json.loads(re.search(r"losses (.*)", (tmp_path / "log" / "workerlog.0").read_text()).group(1))
    assert len(found) == len(OF_PADDLE)
    assert all(abs(one - other) < 2e-6 for one, other in zip(found, OF_PADDLE)), found


def test_what_a_transpiler_cannot_do_is_said(run, package):
    done = run("""
import paddle.fluid as fluid

def said(call, *arguments, **more):
    try:
        call(*arguments, **more)
    except Exception as error:
        print(str(error).splitlines()[0])

transpiler = fluid.DistributeTranspiler()
said(transpiler.get_trainer_program)
said(transpiler.transpile, 0)
said(transpiler.transpile, 0, trainers="127.0.0.1:1,127.0.0.1:2")
fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1)))
transpiler.transpile(0, pservers="127.0.0.1:7001")
said(transpiler.get_pserver_program, "127.0.0.1:7002")
said(fluid.io.load_persistables, None, ".", transpiler.get_pserver_program("127.0.0.1:7001"))
said(transpiler.transpile, 0)
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines() == [
        "fluid.DistributeTranspiler.get_trainer_program before transpile()",
        "fluid.DistributeTranspiler.transpile: no optimizer has minimized the program",
        "fluid.DistributeTranspiler: mode 'pserver' with trainers='127.0.0.1:1,127.0.0.1:2'",
        "fluid.DistributeTranspiler.get_pserver_program('127.0.0.1:7002'): transpile() was given "
        "pservers='127.0.0.1:7001'",
        "a server's program of fluid.DistributeTranspiler has no variables",
        "fluid.DistributeTranspiler.transpile: no optimizer has minimized the program",
    ]

INFER = NET + """
import sys

import pytest
import numpy
exe = fluid.Executor(fluid.CPUPlace())
for folder in sys.argv[1:]:
    program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
    feed = {"ids": fluid.create_lod_tensor([[1, 2], [3, 99]], [[2, 2]], None), "label": numpy.array([[0], [1]])}
    values, = exe.run(program, feed=feed, fetch_list=fetches)
    print(folder, feeds, [f"{value:.6f}" for value in numpy.ravel(values)])
"""

SAVE = NET.replace("return [ids, label], loss", "return [ids, label], loss, predict") + """
import numpy
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

fleet.init(role_maker.PaddleCloudRoleMaker())
other, start = fluid.Program(), fluid.Program()
with fluid.program_guard(other, start), fluid.unique_name.guard():
    _, _, foreseen = net(False)
inputs, loss, predict = net(True)
fleet.distributed_optimizer(fluid.optimizer.SGD(0.5)).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(start)
    exe.run(fleet.startup_program)
    fleet.init_worker()
    feed = {"ids": fluid.create_lod_tensor([[1, 2], [3, 4]], [[2, 2]], None), "label": numpy.array([[0], [1]])}
    for step in range(5):
        exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
    fleet.barrier_worker()
    asked = {"ids": fluid.create_lod_tensor([[1, 2], [3, 99]], [[2, 2]], None), "label": numpy.array([[0], [1]])}
    values, = exe.run(other, feed=asked, fetch_list=[foreseen])
    print("asked", [f"{value:.6f}" for value in numpy.ravel(values)])
    rank = fleet.worker_index()
    fleet.save_inference_model(exe, "fleet", ["ids", "label"], [predict])
    fluid.io.save_inference_model(f"main{rank}", ["ids"], [predict], exe)
    fluid.io.save_inference_model(f"other{rank}", ["ids"], [foreseen], exe, other)
    fleet.stop_worker()
"""


def test_a_model_of_servers_infers_in_one_process_and_beside_training(tmp_path, start, run, package):
    from fleetrun_job import find_fleetrun

    (tmp_path / "save.py").write_text(SAVE)
    job = start([find_fleetrun(), "--compat=paddle", "--server_num=2", "--trainer_num=2", "--python",
                 sys.executable, "save.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    logs = "".join((tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(2))
    asked = set(re.findall("asked (.*)", logs))
    assert len(asked) == 1, logs
    folders = ["fleet", "main0", "main1", "other0", "other1"]
    done = run(INFER.replace("sys.argv[1:]", repr(folders)), PYTHONPATH=f"{package}/_compat")
    expected = asked.pop()
    assert done.stdout.splitlines() == [
        f"{folder} {['ids', 'label'] if folder == 'fleet' else ['ids']} {expected}" for folder in folders]


ADAM = """
import sys

import pytest
import numpy as np
import paddle.fluid as fluid

role, rank, end = sys.argv[1], int(sys.argv[2]), sys.argv[3]
C = fluid.initializer.Constant
ids, y = fluid.layers.data("ids", [1], dtype="int64"), fluid.layers.data("y", [1])
rows = fluid.layers.embedding(ids, [4, 2], is_sparse=True, param_attr=fluid.ParamAttr(name="rows", initializer=C(0.5)))
out = fluid.layers.fc(rows, 1, param_attr=fluid.ParamAttr(name="w", initializer=C(0.3)), bias_attr=False)
loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
decay = fluid.regularizer.L2Decay(DECAY) if DECAY else None
fluid.optimizer.Adam(0.1, regularization=decay).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
transpiler = fluid.DistributeTranspiler()
transpiler.transpile(rank, pservers=end, trainers=2, sync_mode=True)
if role == "server":
    program, startup = transpiler.get_pserver_programs(end)
    exe.run(startup)
    exe.run(program)
else:
    exe.run(fluid.default_startup_program())
    for i in range(6):
        feed = {"ids": np.array([[i % 3], [1]], "int64"), "y": np.array([[1.0], [0.5]], "float32")}
        print("%.6f" % float(exe.run(transpiler.get_trainer_program(), feed=feed, fetch_list=[loss])[0]))
    exe.close()
"""


@pytest.mark.parametrize("decay, losses", [
    (0, [0.265000, 0.146873, 0.136913, 0.070018, 0.085317, 0.087967]),
    (0.1, [0.265000, 0.135401, 0.260617, 0.073426, 0.065241, 0.144692]),
])  # fmt: skip
def test_adam_corrects_gradients_of_rows_by_the_next_step(start, ports, package, tmp_path, decay, losses):
    """On servers, too, where every trainer has the parameter whole: losses of Paddle 1.8.5. It makes all rows
    of gradients that decay."""
    (tmp_path / "train.py").write_text(ADAM.replace("DECAY", str(decay)))
    end, compat = f"127.0.0.1:{ports(1)[0]}", f"{package}/_compat"
    roles = [("server", 0), ("trainer", 0), ("trainer", 1)]
    processes = [start([sys.executable, "train.py", *role, end], PYTHONPATH=compat) for role in roles]
    outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    for output in outputs[1:]:
        made = [float(line) for line in output.splitlines() if re.fullmatch(r"\d\.\d{6}", line)]
        assert made == pytest.approx(losses, rel=0, abs=1e-5), outputs


BEFORE_FLEET = """
import os
import numpy as np
import paddle.fluid as fluid

x, y = fluid.layers.data("x", [1]), fluid.layers.data("y", [1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fluid.optimizer.SGD(0.1).minimize(loss)
port = os.environ["PADDLE_PSERVER_PORT"]
transpiler = fluid.DistributeTranspiler()
transpiler.transpile(int(os.environ["PADDLE_TRAINER_ID"]), trainers=int(os.environ["PADDLE_TRAINERS"]),
                     pservers=",".join(f"{ip}:{port}" for ip in os.environ["PADDLE_PSERVER_IPS"].split(",")))
exe = fluid.Executor(fluid.CPUPlace())
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    program, startup = transpiler.get_pserver_programs(os.environ["PADDLE_CURRENT_IP"] + ":" + port)
    exe.run(startup)
    exe.run(program)
else:
    exe.run(fluid.default_startup_program())
    for _ in range(30):
        feed = {"x": np.ones((4, 1), "float32"), "y": np.ones((4, 1), "float32")}
        value, = exe.run(transpiler.get_trainer_program(), feed=feed, fetch_list=[loss])
    print("trained", float(value) < 0.01)
    exe.close()
"""


def test_scripts_of_before_fleet_find_their_variables(start, ports, tmp_path):
    from fleetrun_job import find_fleetrun

    (tmp_path / "train.py").write_text(BEFORE_FLEET)
    port = ports(1)[0]
    job = start([find_fleetrun(), "--compat=paddle", f"--servers=127.0.0.1:{port},127.0.0.2:{port}",
                 "--trainer_num=2", "--python", sys.executable, "train.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    logs = [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(2)]
    assert all("trained True" in log for log in logs), logs


def test_servers_at_several_ports_have_no_one_port(run, package):
    done = run("""
import os
os.environ.update(TRAINING_ROLE="PSERVER", PADDLE_PSERVERS_IP_PORT_LIST="h:1,h:2", PADDLE_TRAINERS_NUM="3",
                  POD_IP="h", PADDLE_PORT="2")
import paddle
print([os.environ.get("PADDLE_" + name) for name in ("TRAINING_ROLE", "TRAINERS", "TRAINER_ID", "CURRENT_ENDPOINT",
                                                     "PSERVER_ENDPOINTS", "PSERVER_IPS", "PSERVER_PORT")])
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines() == ["['PSERVER', '3', '0', 'h:2', 'h:1,h:2', None, None]"]


MEETING = """
import sys

import numpy as np
import paddle.fluid as fluid

rank, count, begins = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
start = fluid.default_startup_program()
start.random_seed = 1 if count == 1 else rank + 1  # ranks begin with rank 0's values
x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
hidden = fluid.layers.fc(x, 3, act="tanh")
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.01)).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
if begins == "before":
    exe.run(start)
build = fluid.BuildStrategy()
if count > 1:
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"
    fluid.DistributeTranspiler(config).transpile(
        rank, trainers=sys.argv[3], current_endpoint=sys.argv[3].split(",")[rank])
    build.num_trainers, build.trainer_id = count, rank
if begins == "after":
    exe.run(start)
program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, build)
chance, losses = np.random.RandomState(0), []
for step in range(5):
    values = chance.rand(8, 4).astype("float32")
    feed = {"x": values[rank::count], "y": values.sum(1, keepdims=True)[rank::count]}
    losses.append(float(np.mean(exe.run(program, feed=feed, fetch_list=[loss])[0])))
print("losses", losses)
"""


@pytest.mark.parametrize("begins", ["before", "after"])
def test_trainers_of_mode_nccl2_train_as_one_with_the_whole_batch(start, ports, package, tmp_path, begins):
    (tmp_path / "train.py").write_text(MEETING)
    endpoints = ",".join(f"127.0.0.1:{port}" for port in ports(2))

    def losses(count):
        ranks = [start([sys.executable, "train.py", str(rank), str(count), endpoints, begins],
                       PYTHONPATH=f"{package}/_compat", CPU_NUM="2") for rank in range(count)]
        outputs = [each.communicate(timeout=LIMIT)[0] for each in ranks]
        assert all(each.returncode == 0 for each in ranks), outputs
        return [json.loads(re.search(r"losses (.*)", output).group(1)) for output in outputs]

    alone, = losses(1)
    means = [sum(both) / 2 for both in zip(*losses(2))]
    assert all(abs(one - mean) < 1e-5 for one, mean in zip(alone, means)), (alone, means)
