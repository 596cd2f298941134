"""Programs on several replicas: CompiledProgram.with_data_parallel and fluid.ParallelExecutor,
as document 000 writes them."""

import pathlib
import sys

from flow import LIMIT

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"

HEAD = """
import os
import numpy as np
import fleetrun as paddle
from fleetrun import fluid
paddle.enable_static()

def build():
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [None, 4])
        y = paddle.static.data("y", [None, 1])
        hidden = paddle.nn.Linear(4, 8, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1)))(x)
        out = paddle.nn.Linear(8, 1, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.2)))(
            paddle.nn.functional.relu(hidden))
        loss = paddle.mean(paddle.square(out - y))
        paddle.optimizer.Momentum(0.002).minimize(loss)
    return main, startup, out, loss

def batch(step, examples=12):
    rng = np.random.default_rng(step)
    X = rng.normal(size=(examples, 4)).astype("float32")
    return {"x": X, "y": X @ np.array([[1.0], [2.0], [3.0], [4.0]], "float32")}

def train(runner_of, feed_of=batch, steps=20):
    main, startup, out, loss = build()
    scope = type(fluid.global_scope())()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    run = runner_of(exe, main, loss, scope)
    fetched = [run(feed_of(step), [out, loss]) for step in range(steps)]
    weights = {p.name.split(".")[-1] + str(i): np.array(scope.find_var(p.name)) for i, p in enumerate(main.all_parameters())}
    return weights, fetched

def plain(exe, main, loss, scope):
    return lambda feed, fetch: exe.run(main, feed=feed, fetch_list=fetch, scope=scope)

def compiled(reduce="AllReduce", scale="CoeffNumDevice", **options):
    def runner(exe, main, loss, scope):
        build_strategy, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        build_strategy.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
        build_strategy.gradient_scale_strategy = getattr(fluid.BuildStrategy.GradientScaleStrategy, scale)
        build_strategy.fuse_all_reduce_ops = build_strategy.fuse_elewise_add_act_ops = build_strategy.fuse_bn_act_ops = True
        execution.num_threads = options.pop("num_threads", 2)
        execution.num_iteration_per_drop_scope = 10
        program = paddle.static.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=build_strategy, exec_strategy=execution, **options)
        return lambda feed, fetch, **more: exe.run(program, feed=feed, fetch_list=fetch, scope=scope, **more)
    return runner

def close(one, other):
    return all(np.allclose(one[name], other[name], rtol=0, atol=1e-6) for name in one)

def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)
"""


def test_two_replicas_train_as_one_with_the_whole_batch(run):
    run(HEAD + """
alone, one = train(plain)
both, two = train(compiled())
assert close(both, alone)
# Values of all replicas behind each other, in the batch's order.
assert two[0][0].shape == (12, 1) and two[0][1].shape == (2,), [value.shape for value in two[0]]
assert np.allclose(two[0][0], one[0][0], atol=1e-6) and np.allclose(two[0][1].mean(), one[0][1], atol=1e-6)
assert one[-1][1] < one[0][1]
reduced, _ = train(compiled("Reduce"))
assert same(reduced, both)
threads, _ = train(compiled("Reduce", num_threads=1))
assert same(threads, both)
places, _ = train(compiled(places=paddle.static.cpu_places(3)))
assert close(places, alone)
""", CPU_NUM="2")


def test_the_parallel_executor_of_document_000(run):
    run(HEAD + """
def executor(exe, main, loss, scope):
    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 8
    build_strategy = fluid.BuildStrategy()
    if int(os.getenv("CPU_NUM")) > 1:
        build_strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    pe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=main, build_strategy=build_strategy,
                                exec_strategy=exec_strategy, scope=scope)
    assert pe.device_count == 3
    pe.drop_local_exe_scopes()
    return lambda feed, fetch: pe.run(fetch_list=[variable.name for variable in fetch], feed=feed)

alone, _ = train(plain)
three, fetched = train(executor)
assert close(three, alone)
assert fetched[0][1].shape == (3,)
""", CPU_NUM="3")


def test_a_feed_for_each_replica_and_values_of_each(run):
    run(HEAD + """
def halves(step):
    whole = batch(step)
    return [{name: value[:6] for name, value in whole.items()}, {name: value[6:] for name, value in whole.items()}]

alone, one = train(plain)
both, two = train(compiled(), halves)
assert close(both, alone)
assert np.allclose(two[0][0], one[0][0], atol=1e-6)

def apart(exe, main, loss, scope):
    run = compiled()(exe, main, loss, scope)
    return lambda feed, fetch: run(feed, fetch, return_merged=False)
_, parts = train(apart)
assert [len(values) for values in parts[0]] == [2, 2] and parts[0][0][1].shape == (6, 1)
# An uneven batch: the first replica has one example more; one example: the second has none.
main_run = train(apart, lambda step: batch(step, 5), steps=1)[1]
assert [value.shape for value in main_run[0][0]] == [(3, 1), (2, 1)]
assert [value.shape for value in train(apart, lambda step: batch(step, 1), steps=1)[1][0][0]] == [(1, 1)]
""", CPU_NUM="2")


def test_the_scale_of_gradients(run):
    run(HEAD + """
alone, _ = train(plain)
def customized(exe, main, loss, scope):
    run = compiled(scale="Customized")(exe, main, loss, scope)
    return lambda feed, fetch: run({**feed, loss.name + "@GRAD": np.array([0.5, 0.5], "float32")}, fetch)
assert close(train(customized)[0], alone)
one, _ = train(compiled(scale="One"), steps=1)
mean, _ = train(compiled(), steps=1)
start, _ = train(plain, steps=0)
for name in one:
    assert np.allclose(one[name] - start[name], 2 * (mean[name] - start[name]), atol=1e-5), name
""", CPU_NUM="2")


def test_evaluation_runs_on_replicas_too(run):
    run(HEAD + """
main, startup, out, loss = build()
test = main.clone(for_test=True)
exe = paddle.static.Executor()
exe.run(startup)
train_program = paddle.static.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
test_program = paddle.static.CompiledProgram(test).with_data_parallel(share_vars_from=train_program)
before, = exe.run(test_program, feed=batch(0), fetch_list=[out])
again, = exe.run(test, feed=batch(0), fetch_list=[out])
assert np.allclose(before, again, atol=1e-6) and before.shape == (12, 1)
for step in range(5):
    exe.run(train_program, feed=batch(step), fetch_list=[loss])
after, = exe.run(test_program, feed=batch(0), fetch_list=[out])
assert not np.allclose(before, after)
""", CPU_NUM="2")


def test_counters_of_metrics_count_the_examples_of_all_replicas(run):
    run(HEAD + """
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    p = paddle.static.data("p", [None, 2])
    label = paddle.static.data("label", [None, 1], "int64")
    auc = paddle.static.auc(p, label)[0]
exe = paddle.static.Executor()
rng = np.random.default_rng(3)
values = {}
for program in (main, paddle.static.CompiledProgram(main).with_data_parallel()):
    rng = np.random.default_rng(3)
    exe.run(startup)
    for step in range(5):
        positive = rng.uniform(size=(11, 1)).astype("float32")
        feed = {"p": np.concatenate([1 - positive, positive], 1), "label": rng.integers(0, 2, (11, 1))}
        value = exe.run(program, feed=feed, fetch_list=[auc])[0]
    values[program is main] = np.asarray(value).reshape(-1)
assert values[False].shape == (2,) and values[False][-1] == values[True][0], values
""", CPU_NUM="2")


def test_what_cannot_be_is_refused(run):
    run(HEAD + """
main, startup, out, loss = build()
exe = paddle.static.Executor()
exe.run(startup)
compiled_program = paddle.static.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
def refused(call, what, hint):
    try:
        call()
    except paddle.Error as error:
        assert what in str(error) and hint in str(error.hint), (error, error.hint)
    else:
        raise AssertionError(what)
refused(lambda: exe.run(compiled_program, feed=[batch(0)] * 3, fetch_list=[loss]), "3 feeds for 2 replicas",
        "give each replica a feed, or all of them one, which is split")
refused(lambda: paddle.static.CompiledProgram(main).with_data_parallel(loss_name="los"), "los", "")
refused(lambda: setattr(fluid.BuildStrategy(), "reduce_strategy", "Redice"), "BuildStrategy.reduce_strategy = 'Redice'",
        "use one of AllReduce, Reduce")
refused(lambda: setattr(fluid.ExecutionStrategy(), "num_threads", -1), "ExecutionStrategy.num_threads=-1: it must be at least 0", "")
refused(lambda: fluid.ParallelExecutor(False, main_program=main, num_trainers=2), "num_trainers=2 of a program whose trainers exchange nothing",
        "in mode 'nccl2', or fleet.init(is_collective=True)")
build_strategy = fluid.BuildStrategy()
build_strategy.num_trainers = 2
refused(lambda: paddle.static.CompiledProgram(main).with_data_parallel(build_strategy=build_strategy), "BuildStrategy: num_trainers=2", "")
os.environ["CPU_NUM"] = "0"
refused(lambda: exe.run(compiled_program, feed=batch(0), fetch_list=[loss]), 'CPU_NUM="0" is not a number of replicas',
        "set it to 1 or more")
del os.environ["CPU_NUM"]
value, = exe.run(compiled_program, feed=batch(0), fetch_list=[loss])
assert value.shape == (1,)
""", CPU_NUM="2")


TABLES = """
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    ids = paddle.static.data("ids", [None, 1], "int64")
    y = paddle.static.data("y", [None, 1])
    rows = paddle.static.nn.sparse_embedding(ids, [100, 4], param_attr=paddle.ParamAttr(
        name="emb", initializer=paddle.nn.initializer.Constant(0.5)))
    out = paddle.nn.Linear(4, 1, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1)))(
        paddle.reshape(rows, [-1, 4]))
    loss = paddle.mean(paddle.square(out - y))
    test = main.clone(for_test=True)
    minimize(loss, startup)
exe = paddle.static.Executor()
exe.run(startup)
begin()
program = paddle.static.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
feed = {"ids": np.arange(9).reshape(9, 1) % 5, "y": np.arange(9, dtype="float32").reshape(9, 1)}
losses = [exe.run(program, feed=feed, fetch_list=[loss])[0] for _ in range(20)]
print("losses", *(float(np.mean(value)) for value in losses), len(losses[0]))
predicted, = exe.run(paddle.static.CompiledProgram(test).with_data_parallel(), feed=feed, fetch_list=[out])
print("predicted", *predicted.ravel())
"""


def _numbers(text):
    return {line.split()[0]: [float(word) for word in line.split()[1:]] for line in text.splitlines()
            if line.startswith(("losses", "predicted"))}


def _close(one, other):
    return len(one) == len(other) and all(abs(a - b) <= 1e-5 * max(1.0, abs(a)) for a, b in zip(one, other))


def test_a_program_with_tables_trains_on_replicas_as_on_one(run):
    alone = """
def minimize(loss, startup):
    paddle.optimizer.Adam(0.05).minimize(loss, startup)
def begin():
    pass
"""
    one, three = (_numbers(run(HEAD + alone + TABLES, CPU_NUM=count).stdout) for count in ("1", "3"))
    assert one["losses"][-1] == 1 and three["losses"][-1] == 3
    assert len(one["predicted"]) == 9 and _close(one["predicted"], three["predicted"]), (one, three)
    assert one["losses"][19] < one["losses"][0] / 2


def test_replicas_push_to_servers_as_one_thread_does(tmp_path, start):
    servers = """
import fleetrun.distributed.fleet as fleet
strategy = fleet.DistributedStrategy()
strategy.a_sync = {a_sync}
fleet.init(strategy=strategy)
def minimize(loss, startup):
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.05), strategy).minimize(loss, startup)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        raise SystemExit
def begin():
    fleet.init_worker()
"""
    for a_sync in (True, False):
        seen = {}
        for count in ("1", "3"):
            script, logs = tmp_path / "train.py", tmp_path / f"log-{a_sync}-{count}"
            script.write_text(HEAD + servers.format(a_sync=a_sync) + TABLES, encoding="utf-8")
            fleetrun = start([FLEETRUN, "--server_num=1", "--trainer_num=1", f"--log_dir={logs}", script],
                             CPU_NUM=count)
            told = fleetrun.communicate(timeout=LIMIT)[0]
            assert fleetrun.returncode == 0, told
            seen[count] = _numbers((logs / "workerlog.0").read_text())
        assert seen["1"]["losses"][-1] == 1 and seen["3"]["losses"][-1] == 3
        assert _close(seen["1"]["predicted"], seen["3"]["predicted"]), seen


def test_a_data_feeder_gives_each_replica_a_batch(run):
    done = run(HEAD + """
main, startup, out, loss = build()
feeder = fluid.DataFeeder(["x", "y"], fluid.CPUPlace(), main)
def reader():
    for number in range(5):
        yield [(np.full(4, number, "float32"), np.zeros(1, "float32"))] * 3
def numbers(**options):
    def of(feed):
        return [of(one) for one in feed] if isinstance(feed, list) else int(np.array(feed["x"])[0, 0])
    return [of(feed) for feed in feeder.decorate_reader(reader, **options)()]
print(numbers(), numbers(multi_devices=True), numbers(multi_devices=True, num_places=3))
for call in (lambda: numbers(multi_devices=True, drop_last=False), lambda: list(feeder.feed_parallel([[]] * 3))):
    try:
        call()
    except ValueError as error:
        print(error)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
print([len(exe.run(program, feed=feed, fetch_list=[out])[0]) for feed in feeder.decorate_reader(reader, True)()])
""", CPU_NUM="2")
    assert done.stdout.splitlines() == [
        "[0, 1, 2, 3, 4] [[0, 1], [2, 3]] [[0, 1, 2]]",
        "DataFeeder.decorate_reader: 1 batches left, 2 places",
        "DataFeeder.feed_parallel: 3 batches for 2 places",
        "[6, 6]",
    ]
