"""The engine's programs trained by several ranks: over datasets of their own,
with local SGD, float16 and compression."""

import pytest

HEAD = """
import os, sys
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
strategy = fleet.DistributedStrategy()
{strategy}
fleet.init(is_collective=True, strategy=strategy)
rank, size = fleet.worker_index(), fleet.worker_num()
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
y = paddle.static.data("y", [None, 1])
rows = paddle.static.nn.embedding(ids, [20, 4], is_sparse=True)
pooled = paddle.static.nn.sequence_pool(rows, "sum")
hidden = paddle.nn.functional.relu(paddle.nn.Linear(4, {width})(paddle.reshape(pooled, [-1, 4])))
out = paddle.nn.Linear({width}, 1)(hidden)
loss = paddle.mean(paddle.square(out - y))
optimizer = fleet.distributed_optimizer(paddle.optimizer.{optimizer})
optimizer.minimize(loss)
main = paddle.static.default_main_program()
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())

def lines(name, first, count):
    with open(name, "w") as file:
        for i in range(first, first + count):
            values = [1 + (i * 7 + k) % 19 for k in range(1 + i % 3)]
            file.write(" ".join(map(str, [len(values), *values, 1, sum(values) / 40])) + chr(10))
    return name

def dataset(files, batch_size=4):
    made = paddle.distributed.QueueDataset()
    made.init(use_var=[ids, y], pipe_command="cat", batch_size=batch_size, thread_num=len(files))
    made.set_filelist(files)
    return made

def weights():
    scope = paddle.static.global_scope()
    return np.concatenate([np.array(scope.find_var(p.name)).ravel() for p in main.all_parameters()])

def alike():
    every = []
    paddle.distributed.all_gather_object(every, weights().tobytes())
    assert len(set(every)) == 1, "ranks have different parameters"
"""


def script(body, strategy="", optimizer="SGD(0.05)", width=6):
    return HEAD.format(strategy=strategy, optimizer=optimizer, width=width) + body


def test_passes_over_files_of_their_own_leave_all_ranks_alike(job):
    result = job(script("""
start = weights()
# Rank 0 has two files and threads; rank 1 one, with fewer batches.
names = [f"r{rank}-{i}.txt" for i in range(2 - rank)]
files = [lines(name, 100 * rank + 50 * i, 40 - 14 * rank) for i, name in enumerate(names)]
for epoch in range(3):
    exe.train_from_dataset(main, dataset(files), fetch_list=[loss], fetch_info=["loss"], print_period=4)
    assert exe.last_pass.examples == (80 if rank == 0 else 26)
    alike()
assert not np.allclose(start, weights())
exe.infer_from_dataset(main, dataset(files), fetch_list=[loss])
alike()
print("done")
""", optimizer="Momentum(0.02)"), 2).succeeded()
    assert "batch: [4], loss[1]:[" in result.logs[0] and "examples: 80, batches: 20" in result.logs[0]
    assert "examples: 26, batches: 7" in result.logs[1]


@pytest.mark.parametrize("strategy", [
    "", "strategy.gradient_merge = True\nstrategy.gradient_merge_configs = dict(k_steps=3, avg=False)"])
def test_two_ranks_train_as_one_process_with_both_their_batches(job, strategy):
    """Within 1e-6: the sums of gradients are made in another order."""
    code = script("""
if size == 2 and rank == 0:
    np.save("start.npy", weights())
if size == 1:
    scope, at = paddle.static.global_scope(), 0
    given = np.load("start.npy")
    for p in main.all_parameters():
        count = int(np.prod(p.shape))
        scope.find_var(p.name).get_tensor().set(given[at:at + count].reshape(p.shape), None)
        at += count
    texts = [open(lines(f"half{i}.txt", 100 * i, 32)).read().splitlines() for i in range(2)]
    with open("both.txt", "w") as file:
        for b in range(0, 32, 4):
            file.write(chr(10).join(texts[0][b:b + 4] + texts[1][b:b + 4]) + chr(10))
    for epoch in range(3):
        exe.train_from_dataset(main, dataset(["both.txt"], 8))
    assert np.allclose(weights(), np.load("together.npy"), rtol=0, atol=1e-6)
else:
    for epoch in range(3):
        exe.train_from_dataset(main, dataset([lines(f"half{rank}.txt", 100 * rank, 32)]))
    alike()
    if rank == 0:
        np.save("together.npy", weights())
print("done")
""", strategy)
    job(code, 2).succeeded()
    job(code, 1).succeeded()




@pytest.mark.parametrize(
    "strategy", ["strategy.localsgd = True\nstrategy.localsgd_configs = dict(k_steps=3, begin_step=2)",
                 "strategy.adaptive_localsgd = True"])
def test_local_sgd_over_a_dataset_ends_with_equal_parameters(job, strategy):
    job(script("""
start = weights()
for epoch in range(2):
    exe.train_from_dataset(main, dataset([lines(f"r{rank}.txt", 100 * rank, 44 - 14 * rank)]))
    alike()
assert not np.allclose(start, weights())
print("done")
""", strategy=strategy, optimizer="Momentum(0.02)"), 2).succeeded()


def test_float16_on_the_way_and_compression(job):
    for strategy in ("strategy.fp16_allreduce = True",
                     "strategy.dgc = True\nstrategy.dgc_configs = dict(rampup_begin_step=2, rampup_step=4, "
                     "sparsity=[0.5, 0.9])"):
        job(script("""
start = weights()
files = [lines(f"r{rank}.txt", 100 * rank, 44)]
exe.train_from_dataset(main, dataset(files), fetch_list=[loss])
first = exe.last_pass.fetch_means[0]
for epoch in range(3):
    exe.train_from_dataset(main, dataset(files), fetch_list=[loss])
    alike()
assert exe.last_pass.fetch_means[0] < first, (exe.last_pass.fetch_means, first)
print("done")
""", strategy=strategy, optimizer="Momentum(0.0005)", width=5000), 2).succeeded()


def test_steps_of_local_sgd_average_every_k_steps(job):
    job("""
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
strategy = fleet.DistributedStrategy()
strategy.localsgd = True
strategy.localsgd_configs = {"k_steps": 2, "begin_step": 1}
fleet.init(is_collective=True, strategy=strategy)
x = paddle.static.data("x", [None, 1])
w = paddle.create_parameter([1, 1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.0))
loss = paddle.mean(paddle.matmul(x, w))
fleet.distributed_optimizer(paddle.optimizer.SGD(1.0)).minimize(loss)
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
# The gradient is x: rank + 1. The mean over two ranks is 1.5 a step.
seen = []
for step in range(5):
    exe.run(feed={"x": np.full((4, 1), fleet.worker_index() + 1, "float32")}, fetch_list=[loss])
    seen.append(float(np.array(paddle.static.global_scope().find_var("w")).reshape(-1)[0]))
own = fleet.worker_index() + 1.0
assert seen == [-1.5, -1.5 - own, -4.5, -4.5 - own, -7.5], seen
print("done")
""", 2).succeeded()


LOCAL = """
import warnings
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
strategy = fleet.DistributedStrategy()
strategy.localsgd = True
strategy.localsgd_configs = {"k_steps": 10, "begin_step": 1}
fleet.init(is_collective=True, strategy=strategy)
own = fleet.worker_index() + 1.0
x = paddle.static.data("x", [None, 1])
w = paddle.create_parameter([1, 1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.0))
loss = paddle.mean(paddle.matmul(x, w))
fleet.distributed_optimizer(paddle.optimizer.SGD(1.0)).minimize(loss)
main = paddle.static.default_main_program()
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())

def steps(count, program=main):
    for _ in range(count):
        exe.run(program, feed={"x": np.full((4, 1), own, "float32")}, fetch_list=[loss])

def value():
    return float(np.array(paddle.static.global_scope().find_var("w")).reshape(-1)[0])
"""


def test_local_sgd_ends_with_the_mean_of_what_was_trained_apart(job):
    job(LOCAL + """
# The first step is averaged, the others are taken apart.
steps(4)
assert value() == -1.5 - 3 * own, value()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    fleet.save_persistables(exe, f"apart-{fleet.worker_index()}")
assert len(told) == 1 and "3 steps of local SGD apart" in str(told[0].message), told
fleet.barrier_worker()
assert value() == -6.0, value()
with warnings.catch_warnings():
    warnings.simplefilter("error")
    fleet.save_persistables(exe, f"alike-{fleet.worker_index()}")
steps(2)
assert value() == -6.0 - 2 * own, value()
fleet.stop_worker()
assert value() == -9.0, value()
print("done")
""", 2).succeeded()


def test_replicas_with_local_sgd(job):
    job(LOCAL + """
program = paddle.static.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
steps(3, program)
assert value() == -1.5 - 2 * own, value()
# Other steps than before: what was trained apart is averaged first.
steps(1)
assert value() == -4.5 - 1.5, value()
steps(1)
fleet.barrier_worker()
assert value() == -7.5, value()
print("done")
""", 2, CPU_NUM="2").succeeded()


def test_replicas_of_each_rank(job):
    job("""
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=True)
x = paddle.static.data("x", [None, 1])
w = paddle.create_parameter([1, 1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.0))
loss = paddle.mean(paddle.matmul(x, w))
fleet.distributed_optimizer(paddle.optimizer.SGD(1.0)).minimize(loss)
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
program = paddle.static.CompiledProgram(paddle.static.default_main_program()).with_data_parallel(loss_name=loss.name)
for step in range(3):
    value, = exe.run(program, feed={"x": np.array([[1.0], [2.0]], "float32") + 2 * fleet.worker_index()}, fetch_list=[loss])
    assert value.shape == (2,)
assert float(np.array(paddle.static.global_scope().find_var("w")).reshape(-1)[0]) == -7.5
print("done")
""", 2, CPU_NUM="2").succeeded()


@pytest.mark.parametrize("name", ["localsgd", "adaptive_localsgd", "dgc"])
def test_what_is_for_sgd_has_no_effect_with_adam(job, name):
    """As in Paddle; said once."""
    text = script("""
exe.train_from_dataset(main, dataset([lines(f"r{rank}.txt", 30 * rank, 20)]))
alike()
print("at", weights().tobytes().hex())
print("done")
""", strategy="paddle.seed(3); CHOICE", optimizer="Adam(0.05)")
    with_it = job(text.replace("CHOICE", f"strategy.{name} = True"), 2).succeeded()
    without = job(text.replace("CHOICE", "pass"), 2).succeeded()
    logs = (*with_it.logs, *without.logs)
    ends = {line for log in logs for line in log.splitlines() if line.startswith("at ")}
    assert len(ends) == 1 and all("at " in log for log in logs)
    assert with_it.logs[0].count(f"DistributedStrategy.{name}: no effect with Adam") == 1


# One id in each example, and the same model in a program of one process.
ALONE = """
def put(values):
    for name, value in values.items():
        paddle.static.global_scope().find_var(name).set(value)
alone, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(alone, startup), paddle.utils.unique_name.guard():
    ids, y = paddle.static.data("ids", [None, 1], "int64"), paddle.static.data("y", [None, 1])
    looked_up = paddle.static.nn.embedding(ids, [20, 4], is_sparse=True)
    hidden = paddle.nn.functional.relu(paddle.nn.Linear(4, 6)(paddle.reshape(looked_up, [-1, 4])))
    error = paddle.mean(paddle.square(paddle.nn.Linear(6, 1)(hidden) - y))
    paddle.optimizer.SGD(0.5, grad_clip=paddle.nn.CLIP).minimize(error, startup)
exe.run(startup)
"""


def clipping(clip, body, strategy=""):
    made = script(body, strategy, f"SGD(0.5, grad_clip=paddle.nn.{clip})").replace(
        '"int64", lod_level=1', '"int64"').replace('paddle.static.nn.sequence_pool(rows, "sum")', "rows")
    return made.replace("ALONE\n", ALONE.replace("CLIP", clip))


def test_local_sgd_clips_what_each_rank_has(job):
    job(clipping("ClipGradByGlobalNorm(0.3)", """
start = {p.name: np.array(paddle.static.global_scope().find_var(p.name)) for p in main.all_parameters()}
def batch(of, step):
    drawn = np.random.default_rng(10 * step + of)
    return {"ids": drawn.integers(0, 20, (4, 1)), "y": drawn.normal(size=(4, 1)).astype("float32") * 5}
for step in range(4):
    exe.run(main, feed=batch(rank, step))
alike()
moved = weights()
ALONE
for steps in ([0], [1, 2, 3]):  # the first step is averaged, then three at once
    ends = []
    for of in range(2):
        put(start)
        for step in steps:
            exe.run(alone, feed=batch(of, step))
        ends.append({name: np.array(paddle.static.global_scope().find_var(name)) for name in start})
    start = {name: (ends[0][name] + ends[1][name]) / 2 for name in start}
put(start)
np.testing.assert_allclose(moved, weights(), rtol=2e-5, atol=1e-6)
print("done")
""", "strategy.localsgd = True; strategy.localsgd_configs = dict(k_steps=3, begin_step=1)"), 2).succeeded()


@pytest.mark.parametrize("clip", ["ClipGradByGlobalNorm(0.05)", "ClipGradByNorm(0.02)"])
def test_ranks_clip_the_mean_of_their_gradients(job, clip):
    """As one process that has both batches: rows and dense gradients."""
    job(clipping(clip, """
start = {p.name: np.array(paddle.static.global_scope().find_var(p.name)) for p in main.all_parameters()}
rows = [np.array([[3], [5], [5], [2]]), np.array([[5], [7], [1], [3]])]
ys = [np.array([[0.5], [1.0], [-2.0], [3.0]], "float32"), np.array([[9.0], [-1.0], [2.0], [0.0]], "float32")]
for step in range(3):
    exe.run(main, feed={"ids": rows[rank], "y": ys[rank]})
alike()
moved = weights()
ALONE
put(start)
for step in range(3):
    exe.run(alone, feed={"ids": np.concatenate(rows), "y": np.concatenate(ys)})
np.testing.assert_allclose(moved, weights(), rtol=2e-5, atol=1e-6)
print("done")
"""), 2).succeeded()
