"""The four modes over real servers: golden values, equal results of two runs, saved tables, uneven data."""

import sys

import pytest
from flow import LIMIT

# The net of facts that anyone can derive by hand: embedding of 0.5, sum pool,
# weights of 1, squared error, SGD 0.1.
TRAIN = """
import sys
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.incubate.distributed.fleet.parameter_server.distribute_transpiler import DistributedStrategyFactory
paddle.enable_static()
paddle.seed(5)
fleet.init()
mode, epochs, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
label = paddle.static.data("label", [None, 1], "float32")
rows = paddle.static.nn.sparse_embedding(ids, [100, 4],
    param_attr=paddle.ParamAttr(name="emb", initializer=paddle.nn.initializer.Constant(0.5)))
pooled = paddle.static.nn.sequence_pool(rows, "sum")
weights = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(1.0))
guess = paddle.static.nn.fc(pooled, 1, weight_attr=weights, bias_attr=False)
loss = paddle.mean(paddle.square(guess - label))
if mode == "geo":
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    strategy.a_sync_configs = {"k_steps": int(sys.argv[4])}
elif mode == "paced":
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    strategy.a_sync_configs = {"max_staleness": 2}
else:
    strategy = getattr(DistributedStrategyFactory, f"create_{mode}_strategy")()
    strategy.set_program_config({"min_block_size": 100})
    if mode == "async":
        strategy.set_trainer_runtime_config({"communicator_max_merge_var_num": 3,
                                             "communicator_send_queue_size": 2})
optimizer = fleet.distributed_optimizer(OPTIMIZER, strategy)
optimizer.minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    for epoch in range(epochs):
        data = paddle.distributed.QueueDataset()
        data.init(use_var=[ids, label], pipe_command="cat", batch_size=2, thread_num=threads)
        data.set_filelist(FILES)
        exe.train_from_dataset(dataset=data, fetch_list=[loss], fetch_info=["loss"], print_period=1)
        print("staleness", *exe.last_pass.staleness.values())
    fleet.barrier_worker()
    AFTER
    fleet.stop_worker()
"""
GOLDEN = "2 1 2 1 1.0\n1 3 1 0.0\n2 2 3 1 1.0\n1 1 1 0.0\n"
READ_BACK = """
    training = fleet.fleet.training
    if fleet.is_first_worker():
        fleet.save_persistables(exe, "saved")
        client = training.client
        print("w", np.round(np.asarray(client.pull_dense(1, 4)).astype("float64").ravel(), 4).tolist(), flush=True)
        print("emb", np.asarray(client.pull_rows(0, [1, 2, 3], 4)).tobytes().hex(), flush=True)
        print("bits", np.asarray(client.pull_dense(1, 4)).tobytes().hex(), flush=True)
    fleet.barrier_worker()
"""


def write(folder, files="['part-0']", optimizer="paddle.optimizer.SGD(0.1)", after=READ_BACK):
    """Writes train.py into `folder`."""
    code = TRAIN.replace("FILES", files).replace("OPTIMIZER",
                                                 optimizer).replace("    AFTER\n", after.lstrip("\n"))
    (folder / "train.py").write_text(code)


def finish(process):
    """What the process has printed; it must have ended well."""
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, output
    return output


@pytest.fixture
def job(start, ports):
    """job(servers, trainers, *arguments): the outputs of the trainers, when all have ended."""

    def run_job(servers, trainers, *arguments):
        numbers = ports(servers)
        endpoints = ",".join(f"127.0.0.1:{port}" for port in numbers)
        common = {"PADDLE_PSERVERS_IP_PORT_LIST": endpoints, "PADDLE_TRAINERS_NUM": trainers}
        argv = [sys.executable, "train.py", *arguments]
        started = [start(argv, **common, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT=port)
                   for port in numbers]
        workers = [start(argv, **common, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=rank)
                   for rank in range(trainers)]
        outputs = [finish(worker) for worker in workers]
        for server in started:
            finish(server)
        return outputs

    return run_job


def words(output, name):
    """What a line of the output that starts with `name` says."""
    return [line.split(" ", 1)[1] for line in output.splitlines() if line.startswith(name + " ")]


def losses(output):
    """The losses that a pass has printed."""
    return [float(line.rsplit("[", 1)[1].rstrip("]")) for line in output.splitlines()
            if line.startswith("time: ")]


@pytest.mark.parametrize("arguments, servers", [
    (("geo", 1, 1, 1), 1), (("geo", 1, 1, 400), 2), (("sync", 1, 1), 1), (("half_async", 1, 1), 2),
])
def test_the_golden_values_of_the_hand_derivation(tmp_path, job, arguments, servers):
    write(tmp_path)
    (tmp_path / "part-0").write_text(GOLDEN)
    output, = job(servers, 1, *arguments)
    assert losses(output) == [6.5, pytest.approx(0.1352, abs=5e-5)]
    assert words(output, "w") == ["[0.5804, 0.5804, 0.5804, 0.5804]"]


def test_geo_in_one_process_is_local_training(tmp_path, start):
    write(tmp_path, after="""
    weights = np.array(paddle.static.global_scope().find_var("w").get_tensor()).astype("float64")
    print("w", np.round(weights.ravel(), 4).tolist())
""")
    (tmp_path / "part-0").write_text(GOLDEN)
    output = finish(start([sys.executable, "train.py", "geo", "1", "1", "400"]))
    assert losses(output) == [6.5, pytest.approx(0.1352, abs=5e-5)]
    assert words(output, "w") == ["[0.5804, 0.5804, 0.5804, 0.5804]"]


def parts(folder, files, lines):
    """Writes files of examples: `lines` of each, sums of known rows."""
    import random

    chance = random.Random(3)
    for number in range(files):
        text = ""
        for _ in range(lines[number % len(lines)]):
            keys = [chance.randrange(1, 60) for _ in range(chance.randrange(1, 5))]
            text += f"{len(keys)} {' '.join(map(str, keys))} 1 {sum(key % 7 for key in keys) / 7}\n"
        (folder / f"part-{number}").write_text(text)


ALL = "fleet.util.get_file_shard([f'part-{i}' for i in range(8)])"


@pytest.mark.parametrize("mode, merge", [("half_async", ()), ("async", ()), ("geo", (5,))])
def test_several_threads_of_several_trainers_with_uneven_files(tmp_path, job, mode, merge):
    write(tmp_path, files=ALL, optimizer="paddle.optimizer.Adagrad(0.05)")
    parts(tmp_path, 8, (40, 3, 17))
    first, second = job(2, 2, mode, 10, 3, *merge)
    begun = max(losses(output)[0] for output in (first, second))
    ended = sum(losses(first)[-10:]) / 10
    assert ended < begun / 4
    assert first.count("examples: ") == second.count("examples: ") == 10


def test_staleness_is_counted_and_bounded(tmp_path, job):
    write(tmp_path, files=ALL, optimizer="paddle.optimizer.Adagrad(0.05)")
    parts(tmp_path, 8, (40, 3, 17))
    outputs = job(2, 2, "paced", 3, 2)
    counted = [line.split() for output in outputs for line in words(output, "staleness")]
    assert all(int(pushes) > 0 for pushes, _, _ in counted)
    # A step is a push of rows and one of dense values. Its rows were pulled during the step before:
    # until its push, each of the other three threads goes from two steps behind that one, and one under way,
    # to two ahead of this one, and one under way.
    assert max(int(highest) for _, _, highest in counted) <= 3 * 2 * (1 + 2 + 1 + 2 + 1)
    sync, _ = job(1, 2, "sync", 1, 2)
    assert words(sync, "staleness") == ["0 0.0 0"]


def test_sync_is_the_same_bit_by_bit_in_two_runs_with_threads_and_uneven_files(tmp_path, job):
    write(tmp_path, files=ALL, optimizer="paddle.optimizer.Adam(0.01)")
    parts(tmp_path, 8, (40, 3, 17))
    runs = [job(2, 2, "sync", 2, 3)[0] for _ in range(2)]
    assert words(runs[0], "emb") == words(runs[1], "emb") != []
    assert words(runs[0], "bits") == words(runs[1], "bits") != []


def test_geo_saves_sparse_tables_and_another_number_of_servers_loads_them(tmp_path, job):
    write(tmp_path, files=ALL, optimizer="paddle.optimizer.Adagrad(0.05)", after=READ_BACK + """
    before = np.asarray(training.client.pull_rows(0, [1, 2, 3], 4))
    if fleet.is_first_worker():
        np.save("before.npy", before)
""")
    parts(tmp_path, 8, (9,))
    job(2, 1, "geo", 2, 2, 3)
    write(tmp_path, files=ALL, optimizer="paddle.optimizer.Adagrad(0.05)", after="""
    fleet.load_model("saved")
    loaded = np.asarray(fleet.fleet.training.client.pull_rows(0, [1, 2, 3], 4))
    print("close", np.allclose(loaded, np.load("before.npy"), rtol=1e-5, atol=1e-6), (loaded != 0.5).any())
""")
    output, = job(3, 1, "geo", 0, 1, 3)
    assert words(output, "close") == ["True True"]


DOCUMENT_000 = """
import sys
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import (
    DistributedStrategyFactory)

x = fluid.data("x", [None, 4], "float32")
y = fluid.data("y", [None, 1], "float32")
w = fluid.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5))
loss = paddle.mean(paddle.square(paddle.static.nn.fc(x, 1, weight_attr=w, bias_attr=False) - y))
strategy = getattr(DistributedStrategyFactory, f"create_{sys.argv[1]}_strategy")()
config = strategy.get_program_config()
config.min_block_size = 81920
strategy.set_program_config({"slice_var_up": True})
role = role_maker.PaddleCloudRoleMaker()
fleet.init(role)
optimizer = fluid.optimizer.SGD(0.1)
optimizer = fleet.distributed_optimizer(optimizer, strategy)
optimizer.minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
elif fleet.is_worker():
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    compiled = fluid.compiler.CompiledProgram(fleet.main_program).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy.get_build_strategy(), exec_strategy=strategy.get_execute_strategy())
    rng = np.random.default_rng(1)
    for step in range(60):
        X = rng.normal(size=(8, 4)).astype("float32")
        Y = X @ np.array([[1.0], [2.0], [3.0], [4.0]], "float32")
        value, = exe.run(compiled, feed={"x": X, "y": Y}, fetch_list=[loss])
        print("loss", float(value), flush=True)
    fleet.stop_worker()
"""


@pytest.mark.parametrize("mode", ["sync", "half_async", "async", "geo"])
def test_the_script_of_document_000(tmp_path, job, package, mode):
    (tmp_path / "train.py").write_text(f"import sys\nsys.path.insert(0, {package + '/_compat'!r})\n" +
                                       DOCUMENT_000)
    losses_of = [[float(word) for word in words(output, "loss")] for output in job(2, 2, mode)]
    assert [len(values) for values in losses_of] == [60, 60]
    # Who comes to a parameter that has been trained meanwhile begins lower.
    assert max(values[0] for values in losses_of) > 5
    assert all(values[-1] < 0.05 for values in losses_of)


def test_older_fleets_have_their_own_words(run):
    done = run("""
import numpy
import fleetrun as paddle
from fleetrun.fluid.incubate.fleet.collective import fleet as collective
from fleetrun.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet, DistributedStrategyFactory
from fleetrun.fluid.incubate.fleet.parameter_server import pslib
from fleetrun.fluid.incubate.fleet.base import role_maker
paddle.enable_static()
fleet.init(role_maker.UserDefinedRoleMaker(1, role_maker.Role.WORKER, 2, ["127.0.0.1:1"]))
for each in (fleet, collective, pslib.fleet):
    print(each.split_files(["a", "b", "c"]), each.is_xpu(), each.main_program is paddle.static.default_main_program())
try:
    DistributedStrategyFactory.create_sync_strategy().get_program_config().sync_mode = True
except ValueError as error:
    print(error.what)
collective.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:1"]))
total = numpy.zeros(2)
collective.all_reduce_worker(numpy.array([1.0, 2.0]), total)
print(total)
loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [None, 2]), 1))
optimizer = pslib.fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), {"fs_uri": "hdfs://x"})
optimizer.minimize([loss], [paddle.static.global_scope()])
print(fleet.training.exchange.mode, optimizer.get_lr())
""")
    assert done.stdout.splitlines() == [
        *["['c'] False True"] * 3,
        "DistributeTranspilerConfig.sync_mode = True: the factory's call chooses the mode",
        "[1. 2.]",
        "async 0.1",
    ]
