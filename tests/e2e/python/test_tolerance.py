"""What Paddle takes without a word: it runs here too, and what has no effect is said once."""

import sys

from flow import LIMIT

HEAD = """
import numpy as np
import fleetrun as paddle
from fleetrun import fluid
paddle.enable_static()
exe = paddle.static.Executor(paddle.CPUPlace())
"""


def test_a_feed_that_nothing_reads_may_be_fetched_and_an_unknown_one_is_left_out(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 2])
unread = paddle.static.data("unread", [None, 1], "int64")
slot = paddle.static.data("slot", [None, 1], "int64", lod_level=1)
y = paddle.mean(x)
for times in range(2):
    feed = {"x": np.ones((2, 2), "float32"), "unread": [[3], [4]], "pruned": np.ones(1),
            "slot": fluid.create_lod_tensor(np.array([[5], [6], [7]]), [[2, 1]], None)}
    values = exe.run(feed=feed, fetch_list=[y, unread, "x", slot])
    print(*(value.tolist() for value in values))
print(exe.run(feed=feed, fetch_list=[slot], return_numpy=False)[0].recursive_sequence_lengths())
""")
    line = "1.0 [[3], [4]] [[1.0, 1.0], [1.0, 1.0]] [[5], [6], [7]]"
    assert done.stdout.splitlines() == [line, line, "[[2, 1]]"]
    assert done.stderr.splitlines() == [
        "fleetrun: warning: Executor.run: feed 'pruned' has no effect: the program has no such variable"]


def test_what_is_for_servers_does_nothing_in_a_job_without_them(run):
    done = run(HEAD + """
from fleetrun.distributed import fleet
fleet.init()
for times in range(2):
    fleet.init_server()
    fleet.run_server()
    fleet.init_worker()
print(fleet.server_index(), fleet.server_num())
""")
    assert done.stdout == "0 0\n"
    assert done.stderr.splitlines() == [
        f"fleetrun: warning: fleet.{call}() has no effect: the job has no servers"
        for call in ("init_server", "run_server", "init_worker")]


def test_a_line_is_an_example_also_where_a_batch_is_said(run):
    done = run(HEAD + """
open("lines", "w").write("2 1 2\\n1 3\\n")
slot = paddle.static.data("slot", [None, 1], "int64", lod_level=1)
total = fluid.layers.sequence_pool(paddle.cast(slot, "float32"), "sum")
dataset = paddle.distributed.QueueDataset()
dataset.init(batch_size=2, input_type=1, use_var=[slot], pipe_command="cat")
dataset.set_filelist(["lines"])
exe.infer_from_dataset(dataset=dataset, fetch_list=[total], print_period=1)
""")
    assert done.stdout.count("[2]:[3,3]") == 1
    assert [line for line in done.stderr.splitlines() if "input_type" in line] == [
        "fleetrun: warning: QueueDataset.init(input_type=1) has no effect: a line is an example"]


def test_a_last_axis_of_one_may_be_left_out(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 1])
z = paddle.static.data("z", [None, 2, 1])
for given in (np.ones(4, "float32"), np.ones((4, 1), "float32"), np.ones((2, 2), "float32"), np.ones((4, 1, 1), "float32")):
    try:
        print([part.shape for part in exe.run(feed={"x": given, "z": np.ones((4, 2), "float32")}, fetch_list=[x * 2.0, z * 2.0])])
    except paddle.Error as error:
        print(error.what)
""")
    assert done.stdout.splitlines() == 2 * ["[(4, 1), (4, 2, 1)]"] + [
        "'x' is declared float32 [-1, 1], but was fed float32 [2, 2]",
        "'x' is declared float32 [-1, 1], but was fed float32 [4, 1, 1]"]


def test_a_loader_makes_sequences_for_a_variable_of_them(run):
    done = run(HEAD + """
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
y = paddle.static.data("y", [None, 1])
rows = fluid.layers.embedding(ids, [10, 1], param_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(1.0)))
pooled = fluid.layers.sequence_pool(rows, "sum") * y
exe.run(paddle.static.default_startup_program())
batches = [[([1, 2, 3], 0.5), ([4], 1.0)], [(np.array([[5], [6]]), 0.5), ([7, 7], 1.0)]]
for in_process in (False, True):
    loader = paddle.io.DataLoader.from_generator(feed_list=[ids, y], capacity=4, use_multiprocess=in_process)
    loader.set_sample_list_generator(lambda: iter(batches))
    print([exe.run(feed=feed, fetch_list=[pooled])[0].reshape(-1).tolist() for feed in loader()])
fixed = exe.run(feed={"ids": np.ones((2, 3), "int64"), "y": np.ones((2, 1), "float32")}, fetch_list=[pooled])
print(fixed[0].tolist())
""")
    assert done.stdout.splitlines() == 2 * ["[[1.5, 1.0], [1.0, 2.0]]"] + ["[[3.0], [3.0]]"]


def test_an_array_is_fed_as_sequences_of_one(run):
    done = run(HEAD + """
ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
rows = fluid.layers.embedding(input=ids, size=[10, 2], is_sparse=True)
with paddle.static.program_guard(paddle.static.Program()):
    plain = fluid.layers.data(name="plain", shape=[1], dtype="int64")
    print(rows.shape, rows.lod_level, fluid.layers.embedding(input=plain, size=[10, 2]).shape)
paddle.optimizer.SGD(0.5).minimize(paddle.mean(rows))
exe.run(paddle.static.default_startup_program())
array = np.array([[1], [2], [3]])
for fed in (array, fluid.create_lod_tensor(array, [[2, 1]], None)):
    assert exe.run(feed={"ids": fed}, fetch_list=[rows])[0].shape == (3, 2)
""")
    assert done.stdout == "(-1, 2) 1 (-1, 2)\n"


def test_a_loss_without_parameters_is_minimized_in_vain(tmp_path, start):
    from fleetrun_job import find_fleetrun

    (tmp_path / "train.py").write_text(HEAD + """
import fleetrun.distributed.fleet as fleet
fleet.init()
x = paddle.static.data("x", [None, 2])
loss = paddle.mean(x)
assert paddle.optimizer.SGD(0.1).minimize(loss) == ([], [])
fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), fleet.DistributedStrategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    print("loss", exe.run(feed={"x": [[1.0, 2.0]]}, fetch_list=[loss])[0].item(), flush=True)
    fleet.stop_worker()
""", encoding="utf-8")
    job = start([find_fleetrun(), "--server_num=1", "--trainer_num=1", "--python", sys.executable,
                 "train.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0 and "loss 1.5" in output, output
    said = (tmp_path / "log" / "workerlog.0").read_text()
    assert said.count("has no effect: its program has no trainable parameter") == 1, said


def test_what_rewrites_programs_in_paddle_is_imported_and_refused_when_made(run, package):
    done = run("""
from paddle.distributed.fleet.meta_optimizers import RawProgramOptimizer
import paddle
paddle.enable_static()
loss = paddle.mean(paddle.static.data("x", [None, 2]))
block = loss.block
print(block.program is paddle.static.default_main_program(), block.idx, block.program.num_blocks,
      block.program.blocks[0] is block.program.block(0) is block)
try:
    RawProgramOptimizer(paddle.optimizer.SGD(0.1))
except ValueError as error:
    print(error)
""", PYTHONPATH=package + "/_compat")
    assert done.stdout.splitlines() == [
        "True 0 1 True",
        "fleet.meta_optimizers.RawProgramOptimizer: programs are not rewritten here",
        "  hint: use fleet.distributed_optimizer(optimizer, strategy): a DistributedStrategy says how to "
        "train"]


def test_what_paddle_s_objects_are_asked_besides(run):
    done = run(HEAD + """
from fleetrun.distributed import fleet
x = paddle.static.data("x", [None, 2])
x.desc.set_need_check_feed(False)
print(x.desc.name(), x.desc.shape(), x.desc.dtype() == "float32", x.desc.persistable(), x.desc.need_check_feed())
block = paddle.static.default_main_program().global_block()
made = block.create_var(name="made", shape=[2], dtype="int64", persistable=True)
print(made, block.create_var(name="made") is made, block.create_var().name, block.parent_idx)
class Mine(fleet.UtilBase):
    def __init__(self):
        super().__init__()
fleet.init()
mine = Mine()
mine._set_file_system(3)
print(mine.all_reduce([1, 2]), mine.get_file_shard(["a"]), mine.fs_client,
      fleet.base.util_factory.UtilFactory()._create_util({"valid_strategy": 4}).dist_strategy)
y = paddle.static.data("y", [None, 1], "int32")
share = paddle.static.accuracy(paddle.nn.functional.softmax(x), y)
area, _, _ = paddle.static.auc(paddle.nn.functional.softmax(x), y)
exe.run(paddle.static.default_startup_program())
fed = {"x": np.float32([[1, 2], [2, 1]]), "y": np.int32([[1], [1]])}
print(*exe.run(feed=fed, fetch_list=[share]), paddle.static.io.serialize_program is paddle.static.serialize_program)
""")
    assert done.stdout.splitlines() == [
        "x [-1, 2] True False True",
        "var made : shape(2,), dtype=int64, stop_gradient=False True _generated_var_0 -1",
        "[1, 2] ['a'] 3 4",
        "0.5 True",
    ]


def test_older_strategies_take_their_defaults_from_the_environment(run):
    done = run("""
from fleetrun.distributed.fleet.older import StrategyFactory
strategy = StrategyFactory.create_async_strategy()
configs = strategy.get_trainer_runtime_config().runtime_configs
print([configs["communicator_" + name] for name in ("send_queue_size", "max_merge_var_num", "send_wait_times")])
print(strategy._program_config.sync_mode, strategy._execute_strategy.num_threads, strategy.exchange.merged)
strategy.set_debug_opt({"dump_param": ["w"]})
print(strategy.get_debug_opt())
""", CPU_NUM="3", FLAGS_communicator_send_queue_size="7")
    assert done.stdout.splitlines() == ["['7', '3', '5']", "False 3 3", "{'dump_param': ['w']}"]
    assert done.stderr == ("fleetrun: warning: set_debug_opt({'dump_param': ['w']}) has no effect: "
                           "nothing is dumped; fetch_list shows values\n")


def test_a_net_may_be_minimized_outside_of_its_guard(run):
    done = run(HEAD + """
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    ids = paddle.static.data("ids", [None, 1], "int64")
    loss = paddle.mean(paddle.static.nn.fc(paddle.static.nn.sparse_embedding(ids, [10, 2]), 1))
paddle.optimizer.Adam(paddle.optimizer.lr.ExponentialDecay(0.5, 0.9)).minimize(loss)
exe.run(startup)
fed = {"ids": np.array([[1], [2]])}
values = [float(exe.run(main, feed=fed, fetch_list=[loss])[0]) for times in range(3)]
print(values[0] > values[1] > values[2])
""")
    assert done.stdout == "True\n"


def test_whole_numbers_and_first_values_of_variables_are_taken_as_paddle_takes_them(run, package):
    done = run("""
import numpy
import paddle.fluid as fluid

like = {"name": "kept", "dtype": "int64", "shape": [2], "persistable": True}
seven = fluid.initializer.ConstantInitializer(7)
fluid.default_startup_program().global_block().create_var(initializer=seven, **like)
kept = fluid.default_main_program().global_block().create_var(**like)
print([fluid.layers.cast(kept, name).dtype.name for name in ("float", "double", "int", "long", "f4")])
out = kept + 1
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
print(exe.run(fetch_list=[out])[0].tolist())
fluid.global_scope().find_var("kept").get_tensor().set(numpy.array([1, 2], "int32"), fluid.CPUPlace())
print(exe.run(fetch_list=[out])[0].tolist())
fluid.io.set_program_state(fluid.default_main_program(), {"kept": numpy.array([3, 4], "int32")})
print(exe.run(fetch_list=[out])[0].tolist())
""", PYTHONPATH=package + "/_compat")
    assert done.stdout.splitlines() == [
        "['float64', 'float64', 'int64', 'int64', 'float32']", "[8, 8]", "[2, 3]", "[4, 5]"]


AXES = """
import numpy
import paddle
import paddle.fluid as fluid
# here
x, y = fluid.data("x", [None, None, 1, 1]), fluid.data("y", [None, None])
out = (x * y, x + y[:, 0:1])
exe = fluid.Executor(fluid.CPUPlace())
fed = numpy.arange(6, dtype="float32").reshape(2, 3)
values = exe.run(feed={"x": fed.reshape(2, 3, 1, 1), "y": fed}, fetch_list=list(out))
print([value.shape for value in values], [value.ravel().tolist()[:6] for value in values])
"""


def test_operators_line_up_first_axes_as_paddle_1_did_or_last_ones_as_paddle_2_does(run, package):
    older = run(AXES, PYTHONPATH=package + "/_compat")
    assert older.stdout == (
        "[(2, 3, 1, 1), (2, 3, 1, 1)] [[0.0, 1.0, 4.0, 9.0, 16.0, 25.0], [0.0, 1.0, 2.0, 6.0, 7.0, 8.0]]\n")
    assert "their first axes are lined up, as in Paddle 1.x" in older.stderr
    newer = run(AXES.replace("# here", "paddle.enable_static()"), PYTHONPATH=package + "/_compat")
    assert newer.stdout.startswith("[(2, 3, 2, 3), (2, 3, 2, 1)]")
    assert newer.stderr == ""


def test_numbers_of_numpy_are_numbers(run):
    done = run(HEAD + """
ten, whole, part, yes = np.float32(10), np.int64(2), np.float32(0.5), np.bool_(True)
optimizers = paddle.optimizer
for make in (lambda: optimizers.SGD(np.array(0.5), weight_decay=part), lambda: optimizers.Adam(part, part, part, part),
             lambda: optimizers.AdamW(part, weight_decay=part), lambda: optimizers.RMSProp(part, rho=part),
             lambda: optimizers.Momentum(part, part, use_nesterov=yes),
             lambda: optimizers.SGD(optimizers.lr.ExponentialDecay(part, part))):
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start):
        x = paddle.static.data("x", [None, whole * whole], "float32")
        x.stop_gradient = whole
        left, right = paddle.split(x, np.array(2), axis=np.int32(1))
        y = paddle.static.nn.fc(left * right, whole, weight_attr=paddle.ParamAttr(learning_rate=part))
        make().minimize(paddle.mean(y))
    exe.run(start)
    exe.run(main, feed={"x": np.ones((3, 4), "float32")}, fetch_list=[y], use_prune=np.bool_(False))
from fleetrun.distributed import CountFilterEntry, ProbabilityEntry
print(CountFilterEntry(whole)._to_attr(), ProbabilityEntry(part)._to_attr())
""")
    assert done.stdout == "count_filter_entry:2 probability_entry:0.5\n"
    assert done.stderr == ""
