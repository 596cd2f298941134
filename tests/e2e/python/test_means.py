"""Several trainers in sync mode against one process that has the whole batch: the mean of their gradients,
and what is made of it."""

import sys

import pytest

# Two trainers are two threads with a scope and a client each; servers are this process's own.
CODE = """
import sys, threading
import numpy as np
import fleetrun as paddle
from fleetrun import _native
paddle.enable_static()
ports = sys.argv[1:]
chance = np.random.RandomState(5)
# Each trainer's batch is half of the whole; rows are looked up by one, by both, and twice.
IDS = np.array([chance.permutation(np.arange(16) % 6).reshape(8, 2) for _ in range(4)])
X = chance.standard_normal((4, 8, 3)).astype("float32")

def build(place, schedule, clip, rule):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, startup):
        ids = paddle.static.data("ids", [None, 2], "int64")
        x = paddle.static.data("x", [None, 3])
        first = paddle.nn.initializer.Constant(0.5)
        rows = paddle.static.nn.embedding(ids, [6, 2], is_sparse=place != "here", param_attr=paddle.ParamAttr("rows", initializer=first))
        w = paddle.create_parameter([3, 40], "float32", attr=paddle.ParamAttr("w", initializer=first, learning_rate=0.5))
        free = paddle.create_parameter([3, 1], "float32", attr=paddle.ParamAttr("free", initializer=first, need_clip=False))
        hidden = paddle.matmul(x, w) * paddle.sum(rows, axis=[1, 2], keepdim=False).unsqueeze(1) + paddle.matmul(x, free)
        loss = paddle.mean(paddle.square(hidden)) * 30.0
        how = dict(grad_clip=eval("paddle.nn." + clip) if clip != "none" else None, weight_decay=paddle.regularizer.L2Decay(0.02))
        make = {"sgd": lambda: paddle.optimizer.SGD(schedule, **how), "adam": lambda: paddle.optimizer.Adam(schedule, **how)}[rule]
        make().distribute(loss, startup, "sync", place == "servers")
    return main, startup, loss

def begin(startup, exe):
    scope = paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        exe.run(startup)
    return scope

def schedule():
    return paddle.optimizer.lr.ExponentialDecay(0.2, 0.7)

def one_process(*how):
    rate, exe = schedule(), paddle.static.Executor()
    main, startup, loss = build("here", rate, *how)
    scope = begin(startup, exe)
    for step in range(4):
        exe.run(main, feed={"ids": IDS[step], "x": X[step]}, scope=scope)
        rate.step()
    return [np.asarray(scope.native.value(name)) for name in ("rows", "w", "free")]

def trainers(ports, *how):
    made = [(build("servers", rate, *how), rate) for rate in (schedule(), schedule())]
    tables = made[0][0][0].training.plan.tables()
    ends = [f"127.0.0.1:{port}" for port in ports]
    servers = [_native.RpcServer(rank=i, servers=len(ends), trainers=2, mode="sync", tables=tables, endpoint=end, epoch=0)
               for i, end in enumerate(ends)]
    clients = [_native.connect(ends, i, 2, "sync", tables, epoch=0, launcher="", exchange=[1, 1, 1, 0]) for i in (0, 1)]
    for name, table, width in made[0][0][0].training.dense_entries():
        clients[0].set_dense(table, np.full(width, 0.5, "float32"))
    found, failed = {}, []
    def train(i):
        try:
            (main, startup, loss), rate = made[i]
            exe, training = paddle.static.Executor(), main.training
            scope = begin(startup, exe)
            training.connect(clients[i])
            for step in range(4):
                half = slice(4 * i, 4 * i + 4)
                exe.run(main, feed={"ids": IDS[step][half], "x": X[step][half]}, scope=scope)
                rate.step()
            training.leave_pass()
            clients[i].barrier()
            if i == 0:
                training.pull_dense(scope.native)
                table = next(entry.table for entry in training.plan.entries() if entry.table.sparse)
                found.update(rows=np.asarray(clients[0].pull_rows(table.id, list(range(6)), 2)),
                             w=np.asarray(scope.native.value("w")), free=np.asarray(scope.native.value("free")))
            clients[i].goodbye()
        except BaseException as error:
            failed.append(repr(error))
    threads = [threading.Thread(target=train, args=(i,)) for i in (0, 1)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not failed, failed
    return [found[name] for name in ("rows", "w", "free")]

cases = [("none", "sgd"), ("ClipGradByGlobalNorm(0.5)", "sgd"), ("ClipGradByNorm(0.3)", "adam"), ("ClipGradByValue(0.05)", "sgd")]
for number, case in enumerate(cases):
    expected, got = one_process(*case), trainers(ports[number::len(cases)], *case)
    for name, one, two in zip(("rows", "w", "free"), expected, got):
        np.testing.assert_allclose(two, one, rtol=2e-5, atol=2e-6, err_msg=f"{case} {name}")
"""


DATA_NORM = """
import sys, threading
import numpy as np
import fleetrun as paddle
from fleetrun import _native
paddle.enable_static()
mode, *ports = sys.argv[1:]
X = np.random.RandomState(3).standard_normal((3, 10, 5)).astype("float32")
SHARES = (slice(0, 6), slice(6, 10))
made = []
for rank in (0, 1):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [None, 5])
        hidden = paddle.static.nn.data_norm(x, name="dn")
        loss = paddle.mean(paddle.static.nn.fc(hidden, 1, weight_attr=paddle.ParamAttr("w", initializer=paddle.nn.initializer.Constant(0.5))))
        clip = paddle.nn.ClipGradByGlobalNorm(1e-3)
        paddle.optimizer.SGD(0.1, grad_clip=clip).distribute(loss, startup, mode, True)
    made.append((main, startup, hidden))
tables = made[0][0].training.plan.tables()
ends = [f"127.0.0.1:{port}" for port in ports]
servers = [_native.RpcServer(rank=i, servers=len(ends), trainers=2, mode=mode, tables=tables, endpoint=end, epoch=0)
           for i, end in enumerate(ends)]
clients = [_native.connect(ends, i, 2, mode, tables, epoch=0, launcher="", exchange=[1, 1, 1, 0]) for i in (0, 1)]
failed, after = [], {}
def train(rank):
    try:
        main, startup, hidden = made[rank]
        exe, training, scope = paddle.static.Executor(), main.training, paddle.static.Scope()
        exe.run(startup, scope=scope)
        if rank == 0:
            for name, table, width in training.dense_entries():
                clients[0].set_dense(table, np.asarray(scope.native.value(name)))
        training.connect(clients[rank])
        clients[rank].barrier()
        for step in X:
            exe.run(main, feed={"x": step[SHARES[rank]]}, scope=scope)
        training.leave_pass()
        clients[rank].barrier()
        training.pull_dense(scope.native)
        after[rank] = {name: np.asarray(scope.native.value("dn." + name)) for name in ("batch_size", "batch_sum", "batch_square_sum")}
        clients[rank].goodbye()
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=train, args=(rank,)) for rank in (0, 1)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
# Each push decays the sums by a millionth, and adds its own; a step of sync mode adds the mean of both.
pushes, share = (3, 0.5) if mode == "sync" else (6, 1.0)
expected = {"batch_size": np.full(5, 10.0 * 3 * share), "batch_sum": share * X.sum((0, 1)),
            "batch_square_sum": share * (X.astype("float64") ** 2).sum((0, 1))}
first = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square_sum": 1e4}
for rank in (0, 1):
    for name, added in expected.items():
        np.testing.assert_allclose(after[rank][name], first[name] * 0.999999 ** pushes + added, rtol=2e-6, atol=2e-4, err_msg=f"{rank} {name}")
"""


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_two_trainers_add_to_the_sums_of_data_norm_on_servers(start, ports, mode):
    """Which no clip takes for gradients."""
    done = start([sys.executable, "-c", DATA_NORM, mode, *ports(2)])
    output, _ = done.communicate(timeout=120)
    assert done.returncode == 0, output


@pytest.mark.parametrize("servers", [1, 2])
def test_two_trainers_in_sync_mode_are_one_process_with_both_batches(start, ports, servers):
    done = start([sys.executable, "-c", CODE, *ports(4 * servers)])
    output, _ = done.communicate(timeout=120)
    assert done.returncode == 0, output
