"""Optimizers against what real Paddle 2.6.2 did (tests/golden/optimizers):
by the engine's update operators, and by tables."""

import json
import pathlib
import sys

import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "optimizers"
STEPS = json.loads((GOLDEN / "steps.json").read_text(encoding="utf-8"))
CASES = [name for name, case in STEPS.items() if isinstance(case, dict)]

HEAD = f"""
import json
import numpy as np
import fleetrun as paddle
paddle.enable_static()
STEPS = json.load(open({str(GOLDEN / "steps.json")!r}))
exe = paddle.static.Executor(paddle.CPUPlace())
scope = paddle.static.global_scope()
value = lambda name: np.array(scope.find_var(name).get_tensor())
def optimizer_of(case):
    arguments = dict(case["arguments"])
    if isinstance(arguments.get("weight_decay"), list):
        name, coefficient = arguments["weight_decay"]
        arguments["weight_decay"] = getattr(paddle.regularizer, name)(coefficient)
    older = case["optimizer"] in ("DecayedAdagrad", "LarsMomentum")
    return getattr(paddle.fluid.optimizer if older else paddle.optimizer, case["optimizer"])(**arguments)
"""

NET = """
def train(case, lookup, place):
    ids = paddle.static.data("ids", [None], "int64")
    x = paddle.static.data("x", [None, 2], "float32")
    attr = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(STEPS["first"]))
    weight = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr(name="weight"))
    loss = paddle.sum(lookup(ids, attr) * x * weight)
    optimizer_of(case).distribute(loss, None, "async", place == "tables")
    exe.run(paddle.static.default_startup_program())
    scope.var("weight").set(np.array(STEPS["weight"], dtype="float32"))
    training = loss.program.training
    if place == "tables":
        from fleetrun import _native
        client = _native.make_in_process("async", training.plan.tables())
        for parameter, table, width in training.dense_entries():
            client.set_dense(table, value(parameter))
        training.connect(client)
    for step, expected in enumerate(case["steps"]):
        exe.run(feed={"ids": np.array(STEPS["ids"][step]), "x": np.array(STEPS["inputs"][step], dtype="float32")})
        if place == "tables":
            training.pull_dense(scope.native)
        tables = {entry.parameter: entry.table for entry in training.plan.entries()}
        table = tables.get("rows")
        rows = (np.asarray(training.client.pull_rows(table.id, [0, 1, 2, 3], 2)) if table and table.sparse else value("rows"))
        for name, got in (("rows", rows), ("weight", value("weight"))):
            np.testing.assert_allclose(np.reshape(got, np.shape(expected[name])), expected[name], rtol=2e-5, atol=2e-6,
                                       err_msg=f"{name} after step {step + 1}")
"""

EMBEDDING = """
def lookup(ids, attr):
    return paddle.nn.Embedding(4, 2, sparse=case["is_sparse"], weight_attr=attr)(ids)
"""
TABLE = """
def lookup(ids, attr):
    return paddle.static.nn.sparse_embedding(ids, [4, 2], param_attr=attr)
"""


def _script(name, lookup, place):
    return HEAD + NET + f"case = STEPS[{name!r}]\n" + lookup + f"train(case, lookup, {place!r})\n"


@pytest.mark.parametrize("name", CASES)
def test_update_operators_do_what_paddle_does(run, name):
    run(_script(name, EMBEDDING, "here"))


# A table changes the rows of a batch only, which these do in Paddle too.
@pytest.mark.parametrize("name", ["sgd_rows", "adagrad_rows"])
def test_rows_in_tables_do_what_paddle_does(run, name):
    run(_script(name, TABLE, "here"))


@pytest.mark.parametrize("name", ["sgd", "sgd_l2", "sgd_l1", "momentum", "nesterov", "adagrad", "adam",
                                  "adam_l2",
                                  "ftrl", "sgd_rows", "adagrad_rows"])
def test_parameters_on_servers_do_what_paddle_does(run, name):
    run(_script(name, EMBEDDING, "tables"))


def test_schedules_say_what_paddles_do(run):
    run(f"""
import json
import numpy as np
import fleetrun as paddle
for name, arguments, expected in json.load(open({str(GOLDEN / "schedules.json")!r})):
    schedule = getattr(paddle.optimizer.lr, name)(**arguments)
    metrics = [1.0, 0.9, 0.9, 0.9, 0.95, *[0.8] * 7] if name == "ReduceOnPlateau" else None
    for epoch, rate in enumerate(expected):
        np.testing.assert_allclose(schedule(), rate, rtol=1e-9, err_msg=f"{{name}}, epoch {{epoch}}")
        schedule.step(*metrics[epoch : epoch + 1] if metrics else [])
    twin = getattr(paddle.optimizer.lr, name)(**arguments)
    twin.set_state_dict(schedule.state_dict())
    schedule.step()
    twin.step()
    # As in Paddle, the place within a period is no part of this one's state.
    assert twin() == schedule() or name == "CosineAnnealingWarmRestarts", name
""")


def test_a_schedule_sets_the_rate_of_each_step(run):
    run(HEAD + """
x = paddle.static.data("x", [None, 1])
w = paddle.create_parameter([1], "float32", attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.0)))
b = paddle.create_parameter([1], "float32", attr=paddle.ParamAttr(
    name="b", learning_rate=3.0, initializer=paddle.nn.initializer.Constant(0.0)))
loss = paddle.mean(x * (w + b))
schedule = paddle.optimizer.lr.PiecewiseDecay([2, 3], [0.5, 0.25, 0.125])
optimizer = paddle.optimizer.SGD(schedule)
optimizer.minimize(loss)
exe.run(paddle.static.default_startup_program())
expected = 0.0
for rate in (0.5, 0.5, 0.25, 0.125, 0.125):
    assert optimizer.get_lr() == rate
    exe.run(feed={"x": np.ones((2, 1), dtype="float32")})
    expected -= rate
    assert value("w")[0] == expected and value("b")[0] == 3 * expected
    schedule.step()
""")


@pytest.mark.parametrize("place", ["here", "tables"])
def test_a_schedule_sets_the_rate_of_tables(run, place):
    run(HEAD + f"""
ids = paddle.static.data("ids", [None, 1], "int64")
rows = paddle.static.nn.sparse_embedding(ids, [10, 1], param_attr=paddle.ParamAttr(
    name="rows", learning_rate=2.0, initializer=paddle.nn.initializer.Constant(0.0)))
w = paddle.create_parameter([1], "float32", attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.0)))
loss = paddle.sum(rows + w)
schedule = paddle.optimizer.lr.ExponentialDecay(0.5, 0.5)
paddle.optimizer.SGD(schedule).distribute(loss, None, "async", {place == "tables"})
exe.run(paddle.static.default_startup_program())
training = loss.program.training
if {place == "tables"}:
    from fleetrun import _native
    client = _native.make_in_process("async", training.plan.tables())
    for parameter, table, width in training.dense_entries():
        client.set_dense(table, value(parameter))
    training.connect(client)
table = next(entry.table for entry in training.plan.entries() if entry.parameter == "rows")
expected = 0.0
for rate in (0.5, 0.25, 0.125):
    exe.run(feed={{"ids": np.array([[3]])}})
    expected -= rate
    if {place == "tables"}:
        training.pull_dense(scope.native)
    assert value("w")[0] == expected
    assert np.asarray(training.client.pull_rows(table.id, [3], 1))[0, 0] == 2 * expected
    schedule.step()
""")


@pytest.mark.parametrize("mode", ["async", "half_async", "sync", "geo"])
def test_a_schedule_moves_tables_as_it_moves_this_process(start, mode):
    """Each schedule and each rule, dense and sparse; the script itself takes every pair."""
    oracle = pathlib.Path(__file__).parents[2] / "oracles" / "table_schedules.py"
    done = start([sys.executable, oracle, "--mode", mode, "--cells", "30"])
    output, _ = done.communicate(timeout=120)
    assert done.returncode == 0, output
    assert "30 cells, 0 wrong" in output


def test_rows_that_are_trained_densely_are_named_once(run):
    done = run(HEAD + """
ids = paddle.static.data("ids", [None, 1], "int64")
def train(make, name):
    rows = paddle.static.nn.embedding(ids, [10, 2], is_sparse=True, param_attr=paddle.ParamAttr(name=name))
    make().minimize(paddle.mean(rows))
train(lambda: paddle.optimizer.AdamW(0.1), "by_adamw")
train(lambda: paddle.optimizer.Adam(0.1), "by_adam")
""")
    assert done.stderr.count("embedding(is_sparse=True) of by_adamw is trained densely by AdamW") == 1
    assert "of by_adam is trained" not in done.stderr


def test_ftrl_refuses_a_rate_that_it_would_divide_by(run):
    assert run(HEAD + """
w = paddle.create_parameter([1], "float32")
schedule = paddle.optimizer.lr.PiecewiseDecay([1], [0.5, 0.0])
paddle.optimizer.Ftrl(schedule).minimize(paddle.sum(w * w))
exe.run(paddle.static.default_startup_program())
exe.run()
schedule.step()
try:
    exe.run()
except paddle.Error as error:
    print(error.what)
""").stdout == "paddle.optimizer.Ftrl: the schedule's learning rate is 0.0\n"


def test_what_no_optimizer_does_is_refused_by_name(run):
    done = run(HEAD + """
for make in (lambda: paddle.optimizer.AdamW(0.1, lr_ratio=len), lambda: paddle.optimizer.AdamW(0.1, weight_decay=paddle.regularizer.L2Decay(0.1)), lambda: paddle.optimizer.SGD([0.1]),
             lambda: paddle.optimizer.Momentum(0.1, momentum="0.9"), lambda: paddle.optimizer.Momentum(0.1, rescale_grad=0.5),
             lambda: paddle.optimizer.SGD(0.1, weight_decay="l2"), lambda: paddle.ParamAttr(learning_rate=None),
             lambda: paddle.optimizer.lr.PiecewiseDecay([1], [0.1]), lambda: paddle.optimizer.lr.LinearWarmup(0.1, 0, 0.0, 0.1)):
    try:
        make()
    except paddle.Error as error:
        print(str(error).splitlines()[0])
""")
    assert done.stdout.splitlines() == [
        "paddle.optimizer.AdamW(lr_ratio=<built-in function len>) is not supported",
        "paddle.optimizer.AdamW(weight_decay=L2Decay(0.1))",
        "paddle.optimizer.SGD(learning_rate=[0.1]) is not supported",
        "paddle.optimizer.Momentum(momentum='0.9') is not supported",
        "paddle.optimizer.Momentum(rescale_grad=0.5) is not supported",
        "paddle.optimizer.SGD: 'l2' is not a weight decay",
        "paddle.ParamAttr(learning_rate=None) is not a number",
        "paddle.optimizer.lr.PiecewiseDecay: 1 boundaries and 1 values",
        "paddle.optimizer.lr.LinearWarmup: warmup_steps=0",
    ]


@pytest.mark.parametrize("optimizer, expected", [
    ("Adam(0.1)", [0.0625, 8.41, 0.0625, 8.41, 0.0625, 8.40999]),
    ("Momentum(0.1, 0.9)", [0.0625, 7.91016, 0.79321, 5.70389, 3.3915, 3.49621]),
])
def test_programs_that_share_a_parameter_have_states_of_their_own(run, optimizer, expected):
    """The numbers are Paddle 2.6.2's, and 1.8.5's."""
    run(f"""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
static, startup, programs = paddle.static, paddle.static.Program(), []
for wanted in (1.0, -2.0):
    program = static.Program()
    with static.program_guard(program, startup):
        x = static.data("x", [None, 2])
        first = paddle.ParamAttr("w", initializer=paddle.nn.initializer.Constant(0.5))
        loss = paddle.mean(paddle.square(static.nn.fc(x, 1, weight_attr=first, bias_attr=False) - wanted))
        paddle.optimizer.{optimizer}.minimize(loss)
    programs.append((program, loss))
exe = static.Executor()
exe.run(startup)
feed = {{"x": np.array([[1, 0.5]], "float32")}}
got = [exe.run(program, feed=feed, fetch_list=[loss])[0] for program, loss in programs * 3]
np.testing.assert_allclose(np.ravel(got), {expected}, atol=2e-5)
kept = [sorted(one.name for one in program.list_vars() if one.persistable) for program, _ in programs]
assert [name.rpartition("_")[2] for name in kept[1] if "moment" in name or "velocity" in name][0] == "1", kept
static.save(programs[1][0], "kept")
assert all(name.endswith("_1") for name in static.load_program_state("kept") if name != "w")
static.load(programs[1][0], "kept")
""")
