"""Loops whose number of steps only a run knows: gradients against differences, what Paddle 1.x writes with
While, and what is refused. Compared with Paddle itself: tests/oracles/names/loops.py."""

BEGIN = """
import numpy
import paddle
import paddle.fluid as fluid

layers = fluid.layers
executor = fluid.Executor(fluid.CPUPlace())
"""

# A branch in each step; a number of steps from 0 on.
BRANCHES = BEGIN + """
x, n = fluid.data("x", [None, 3]), fluid.data("n", [1], "int64")
W = numpy.arange(9).reshape(3, 3) / 10 - 0.3
w = paddle.create_parameter([3, 3], "float32", name="w",
                            default_initializer=paddle.nn.initializer.Assign(W.astype("float32")))

def step(i, h):
    even = paddle.equal(paddle.mod(i, paddle.full([1], 2, "int64")), paddle.zeros([1], "int64"))
    return [i + 1, paddle.static.nn.cond(even, lambda: paddle.tanh(paddle.matmul(h, w)), lambda: h * w[0] + x)]

_, h = paddle.static.nn.while_loop(lambda i, h: i < n, step, [paddle.zeros([1], "int64"), x * 1.0])
loss = paddle.sum(h * h)
pairs = fluid.backward.append_backward(loss)
executor.run(fluid.default_startup_program())
fed = numpy.array([[0.5, -0.2, 0.3], [0.1, 0.4, -0.6]])

def value(w, steps):
    h = fed
    for i in range(steps):
        h = numpy.tanh(h @ w) if i % 2 == 0 else h * w[0] + fed
    return (h * h).sum()

for steps in (0, 1, 2, 5, 3):
    feed = {"x": fed.astype("float32"), "n": numpy.array([steps], "int64")}
    found, slope = executor.run(feed=feed, fetch_list=[loss, pairs[0][1]])
    numpy.testing.assert_allclose(found, value(W, steps), rtol=1e-5)
    wanted = numpy.zeros((3, 3))
    for place in numpy.ndindex(3, 3):
        moved = numpy.zeros((3, 3))
        moved[place] = 1e-5
        wanted[place] = (value(W + moved, steps) - value(W - moved, steps)) / 2e-5
    numpy.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=1e-6)
print("ok")
"""

WHILE = BEGIN + """
limit, x = fluid.data("limit", [1], "int64"), fluid.data("x", [1])
i = layers.fill_constant([1], "int64", 0)
total = layers.fill_constant([1], "float32", 0.0)
total.stop_gradient = False
w = layers.create_parameter([1], "float32", name="w", default_initializer=fluid.initializer.Constant(2.0))
going = layers.less_than(i, limit)
loop = layers.While(going)
with loop.block():
    layers.assign(total * w + x, total)
    layers.increment(i)
    layers.less_than(i, limit, cond=going)
pairs = fluid.backward.append_backward(layers.reduce_sum(total))
program = fluid.default_main_program()
executor.run(fluid.default_startup_program())
for steps, value, slope in ((0, 0, 0), (1, 3, 0), (4, 45, 51)):
    feed = {"limit": numpy.array([steps], "int64"), "x": numpy.array([3.0], "float32")}
    found = executor.run(program, feed, [i, total, pairs[0][1], going])
    assert [float(one.reshape(-1)[0]) for one in found] == [steps, value, slope, 0], found
    alone = executor.run(program.clone(for_test=True), feed, [total])
    assert float(alone[0]) == value
fluid.io.save_inference_model("saved", ["limit", "x"], [total], executor)
loaded, names, fetches = fluid.io.load_inference_model("saved", executor)
assert float(executor.run(loaded, feed, fetches)[0]) == 45
print("ok")
"""

# A loop within a loop: values, and no gradient.
NESTED = BEGIN + """
n, x = fluid.data("n", [1], "int64"), fluid.data("x", [2])
zero = paddle.zeros([1], "int64")

def outer(i, h):
    _, h = paddle.static.nn.while_loop(lambda j, h: j < i, lambda j, h: [j + 1, h + x],
                                       [paddle.zeros([1], "int64"), h])
    return [i + 1, h * 2.0]

_, h = paddle.static.nn.while_loop(lambda i, h: i < n, outer, [zero, x * 1.0])
feed = {"n": numpy.array([4], "int64"), "x": numpy.array([1.0, -2.0], "float32")}
found, = executor.run(feed=feed, fetch_list=[h])
value = 1.0
for i in range(4):
    value = (value + i) * 2.0
numpy.testing.assert_allclose(found, [value, -2.0 * value])
w = layers.create_parameter([2], "float32", name="w")
_, h = paddle.static.nn.while_loop(lambda i, h: i < n, outer, [paddle.zeros([1], "int64"), w * x])
try:
    fluid.optimizer.SGD(0.1).minimize(layers.reduce_sum(h))
except paddle.Error as error:
    assert "a loop within it has a gradient, too" in str(error), error
    print("ok")
"""

# A step moves the variables that the loop began with: 2.6.2 gives these numbers.
MOVED = BEGIN + """
n, x = fluid.data("n", [1], "int64"), fluid.data("x", [1])
i = paddle.zeros([1], "int64")
j, h = paddle.static.nn.while_loop(lambda i, h: i < n, lambda i, h: [i + 1, h * 2 + x], [i, x])
after = x * 1
k = paddle.zeros([1], "int64")
paddle.static.nn.while_loop(lambda _: k < n, lambda _: [k + 1], [k])
a, b = paddle.static.nn.while_loop(lambda a, b: a < 10, lambda a, b: [a + b, b + a], [after, after])
for steps, wanted in ((0, [0, 0, 1, 1, 0, 16, 16]), (3, [3, 3, 27, 27, 4, 27, 27])):
    feed = {"n": numpy.array([steps], "int64"), "x": numpy.array([1.0], "float32")}
    found = executor.run(feed=feed, fetch_list=[[i, j], [h, x], [k], [a, b]])
    assert [float(each[0]) for each in found] == wanted, found
print("ok")
"""

# A growing value, dropout that differs from step to step, and rows of a table.
GROWING = BEGIN + """
n, ids = fluid.data("n", [1], "int64"), fluid.data("ids", [None, 1], "int64")
w = layers.create_parameter([2, 3], "float32", name="w",
                            default_initializer=fluid.initializer.Constant(1.0))

def step(i, rows):
    row = layers.embedding(ids, [4, 3], is_sparse=True, param_attr=fluid.ParamAttr(
        name="table", initializer=fluid.initializer.Constant(0.5)))
    dropped = layers.dropout(w, 0.5, dropout_implementation="upscale_in_train")
    return [i + 1, layers.concat([rows, dropped, layers.reshape(row, [-1, 3])], 0)]

start = layers.fill_constant([1, 3], "float32", 0.0)
start.stop_gradient = False
_, rows = paddle.static.nn.while_loop(lambda i, rows: i < n, step, [paddle.zeros([1], "int64"), start])
pairs = fluid.backward.append_backward(layers.reduce_sum(rows))
slopes = {one.name: gradient for one, gradient in pairs}
executor.run(fluid.default_startup_program())
feed = {"n": numpy.array([6], "int64"), "ids": numpy.array([[1], [1], [3]], "int64")}
found, of_w, of_table = executor.run(feed=feed, fetch_list=[rows, slopes["w"], slopes["table"]])
assert found.shape == (1 + 6 * 5, 3)
dropped = found[1:].reshape(6, 5, 3)[:, :2]
assert {0.0, 2.0} == set(dropped.ravel().tolist()) and len({one.tobytes() for one in dropped}) > 1
numpy.testing.assert_array_equal(of_w, dropped.sum(0))
numpy.testing.assert_array_equal(of_table, [[0] * 3, [12] * 3, [0] * 3, [6] * 3])
print("ok")
"""

REFUSED = BEGIN + """
n, x = fluid.data("n", [1], "int64"), fluid.data("x", [2])
zero = paddle.zeros([1], "int64")
loop = paddle.static.nn.while_loop

def said(call):
    try:
        call()
    except paddle.Error as error:
        return str(error)

assert "body takes 2 values and gives 1" in said(lambda: loop(lambda i, h: i < n, lambda i, h: i + 1, [zero, x]))
kind = said(lambda: loop(lambda i, h: i < n, lambda i, h: [i + 1, i], [zero, x]))
assert "before a step, and int64 [1] behind it" in kind, kind

def left():
    with layers.While(layers.less_than(zero, n)).block():
        layers.increment(zero)

assert "does not write to" in said(left)
print("ok")
"""


def _ends_well(run, package, script):
    assert run(script, PYTHONPATH=package + "/_compat").stdout.splitlines()[-1] == "ok"


def test_branches_within_a_loop_against_differences(run, package):
    _ends_well(run, package, BRANCHES)


def test_a_block_carries_what_it_writes(run, package):
    _ends_well(run, package, WHILE)


def test_a_loop_within_a_loop(run, package):
    _ends_well(run, package, NESTED)


def test_the_variables_that_a_loop_began_with_are_moved(run, package):
    _ends_well(run, package, MOVED)


def test_values_may_grow_and_be_drawn_anew(run, package):
    _ends_well(run, package, GROWING)


def test_what_is_no_loop_is_refused(run, package):
    _ends_well(run, package, REFUSED)
