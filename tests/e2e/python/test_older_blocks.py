"""Blocks of Paddle 1.x that real Paddle 2.6.2 has not: IfElse, StaticRNN of a number of steps that only a run
knows, functions of the script; values and gradients against float64 numpy."""

BEGIN = """
import numpy
import paddle.fluid as fluid

layers = fluid.layers
executor = fluid.Executor(fluid.CPUPlace())

def given(name, values):
    first = fluid.initializer.NumpyArrayInitializer(values.astype("float32"))
    return layers.create_parameter(list(values.shape), "float32", name=name, default_initializer=first)

def slopes(value, w):
    wanted = numpy.zeros_like(w)
    for place in numpy.ndindex(*w.shape):
        moved = numpy.zeros_like(w)
        moved[place] = 1e-5
        wanted[place] = (value(w + moved) - value(w - moved)) / 2e-5
    return wanted

def check(loss, name, value, w, feed):
    pairs = {one.name: slope for one, slope in fluid.backward.append_backward(loss)}
    executor.run(fluid.default_startup_program())
    for fed in feed:
        found, slope = executor.run(feed=fed, fetch_list=[loss, pairs[name]])
        numpy.testing.assert_allclose(found, value(fed, w), rtol=1e-5)
        numpy.testing.assert_allclose(slope, slopes(lambda v: value(fed, v), w), rtol=1e-4, atol=1e-6)
    print("ok")
"""

IF_ELSE = """
x = fluid.data("x", [None, 2])
W = numpy.arange(4).reshape(2, 2) / 4 - 0.3
w = given("w", W)
limit = layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0)
ie = layers.IfElse(layers.less_than(layers.reduce_sum(x, 1, True), limit))
with ie.true_block():
    ie.output(layers.tanh(layers.matmul(ie.input(x), w)))
with ie.false_block():
    ie.output(ie.input(x) * 3.0)
out, = ie()
numbers = layers.cast(layers.range(1, 6, 1, "int64"), "float32")
loss = layers.reduce_sum(layers.elementwise_mul(layers.reduce_sum(out * out, 1), fluid.data("n", [None])))

def value(fed, w):
    x = fed["x"].astype("float64")
    rows = numpy.where(x.sum(1, keepdims=True) < 0, numpy.tanh(x @ w), x * 3)
    return ((rows * rows).sum(1) * fed["n"]).sum()

rows = [[[1, 1], [-1, 0.5], [0.2, -0.9], [0.5, 0.5]], [[1, 2]], [[-1, -2], [-0.5, 0.25]]]
check(loss, "w", value, W, [{"x": numpy.array(one, "float32"), "n": numpy.arange(1, len(one) + 1, dtype="float32")}
                            for one in rows])
"""

STEPS = """
x = fluid.data("x", [None, None, 3])
W = numpy.arange(9).reshape(3, 3) / 10 - 0.3
w = given("w", W)
three = layers.reduce_sum(layers.fill_constant_batch_size_like(x, [-1, 3], "float32", 1.0, input_dim_idx=1), 1, True)
rnn = layers.StaticRNN()
with rnn.step():
    word = rnn.step_input(x)
    before = rnn.memory(shape=[-1, 3], batch_ref=word, init_value=0.5)
    total = rnn.memory(init=three)
    after = layers.tanh(layers.matmul(before, w) + word)
    rnn.update_memory(before, after)
    rnn.update_memory(total, total * 0.5 + layers.reduce_sum(after, 1, True))
    rnn.step_output(after)
    rnn.step_output(total)
states, totals = rnn()
loss = layers.reduce_sum(states * states) + layers.reduce_sum(totals * totals)

def value(fed, w):
    x = fed["x"].astype("float64")
    h, total, loss = numpy.full(x.shape[1:], 0.5), numpy.full((x.shape[1], 1), 3.0), 0.0
    for word in x:
        h = numpy.tanh(h @ w + word)
        loss += (h * h).sum() + (total * total).sum()
        total = total * 0.5 + h.sum(1, keepdims=True)
    return loss

check(loss, "w", value, W, [{"x": numpy.sin(numpy.arange(steps * batch * 3)).reshape(steps, batch, 3).astype("float32")}
                            for steps, batch in ((1, 2), (4, 3), (3, 1))])
"""

OTHER_STEPS = """
x, mask = fluid.data("x", [4, None, 3]), fluid.data("mask", [None, None, 1])
W = numpy.arange(9).reshape(3, 3) / 10 - 0.3
w = given("w", W)
rnn = layers.StaticRNN()
with rnn.step():
    word, kept = rnn.step_input(x), rnn.step_input(mask)
    before = rnn.memory(shape=[-1, 3], batch_ref=word)
    after = layers.tanh(layers.matmul(before, w) + word) * kept
    rnn.update_memory(before, after)
    rnn.step_output(after)
loss = layers.reduce_sum(rnn() * rnn())

def value(fed, w):
    h, loss = numpy.zeros(fed["x"].shape[1:]), 0.0
    for word, kept in zip(fed["x"].astype("float64"), fed["mask"].astype("float64")):
        h = numpy.tanh(h @ w + word) * kept
        loss += (h * h).sum()
    return loss

check(loss, "w", value, W, [
    {"x": numpy.sin(numpy.arange(4 * batch * 3)).reshape(4, batch, 3).astype("float32"),
     "mask": (numpy.arange(4 * batch).reshape(4, batch, 1) % 3 > 0).astype("float32")} for batch in (1, 2)])
"""

CALLED = """
x = fluid.data("x", [None, 2])
W = numpy.array([[0.5, -1.0], [2.0, 0.25]])
w = given("w", W)
rows = layers.matmul(x, w)
out = fluid.default_main_program().current_block().create_var(name="cube", dtype="float32", shape=rows.shape)
seen = []

def cube(rows):
    seen.append(rows.shape())
    return numpy.array(rows) ** 3

def slope(rows, made, slope):
    numpy.testing.assert_allclose(numpy.array(made), numpy.array(rows) ** 3, rtol=1e-6)
    return 3 * numpy.array(rows) ** 2 * numpy.array(slope)

loss = layers.reduce_sum(layers.py_func(cube, rows, out, slope))

def value(fed, w):
    return ((fed["x"].astype("float64") @ w) ** 3).sum()

check(loss, "w", value, W, [{"x": numpy.ones((n, 2), "float32") * n} for n in (1, 3)])
assert seen[:2] == [[1, 2], [3, 2]], seen

said = []
layers.py_func(lambda *given: said.append([float(numpy.array(one).sum()) for one in given]), [rows, rows], None)
executor.run(feed={"x": numpy.zeros((2, 2), "float32")}, fetch_list=[loss])
assert said == [[0.0, 0.0]], said

def fails(rows):
    raise KeyError("of the script")

layers.py_func(fails, rows, fluid.default_main_program().current_block().create_var(name="never", shape=[-1, 2]))
try:
    executor.run(feed={"x": numpy.zeros((2, 2), "float32")}, fetch_list=[loss])
except KeyError as error:
    print("told", error)
try:
    layers.py_func(cube, rows, out, slope, skip_vars_in_backward_input=w)
except ValueError as error:
    print(error)
"""


SEEDS = """
fluid.default_main_program().random_seed = 7
x = layers.ones([64], "float32")
made = [layers.dropout(x, 0.5, seed=5), layers.dropout(x, 0.5), layers.uniform_random([8], seed=3),
        layers.uniform_random([8], seed=3), layers.uniform_random([8]), layers.gaussian_random([8], seed=2)]
first, second = (executor.run(fetch_list=made) for _ in range(2))
print([bool((a == b).all()) for a, b in zip(first, second)], bool((first[2] == first[3]).all()))
"""

def lines(run, package, script):
    """What a script prints under --compat=paddle."""
    return run(script, PYTHONPATH=package + "/_compat").stdout.splitlines()


def test_rows_go_one_of_two_ways(run, package):
    assert lines(run, package, BEGIN + IF_ELSE) == ["ok"]


def test_steps_whose_number_only_a_run_knows(run, package):
    assert lines(run, package, BEGIN + STEPS) == ["ok"]


def test_a_number_of_steps_that_is_known_is_that_of_other_inputs(run, package):
    assert lines(run, package, BEGIN + OTHER_STEPS) == ["ok"]


def test_a_program_calls_functions_of_the_script(run, package):
    assert lines(run, package, BEGIN + CALLED) == [
        "ok",
        "told 'of the script'",
        "py_func: w is to be skipped, and neither an input nor an output",
    ]


def test_a_seed_of_its_own_draws_the_same_in_every_run(run, package):
    """As in Paddle; the seed of a program goes on drawing."""
    assert lines(run, package, BEGIN + SEEDS) == ["[True, False, True, True, False, True] True"]
