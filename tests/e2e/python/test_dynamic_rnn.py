"""DynamicRNN of Paddle 1.x, which Paddle 2.6.2 has not: values and gradients against float64 numpy."""

SCRIPT = """
import numpy
import paddle.fluid as fluid

layers = fluid.layers
x = fluid.data("x", [None, 3], lod_level=1)
around = fluid.data("around", [None, 2], lod_level=1)
begin = fluid.data("begin", [None, 4])
W, U = numpy.arange(12).reshape(3, 4) / 20 - 0.2, numpy.arange(16).reshape(4, 4) / 30 - 0.25

def given(name, values):
    first = fluid.initializer.NumpyArrayInitializer(values.astype("float32"))
    return layers.create_parameter(list(values.shape), "float32", name=name, default_initializer=first)

w, u = given("w", W), given("u", U)
rnn = layers.DynamicRNN()
with rnn.block():
    now, far, same = rnn.step_input(x), rnn.static_input(around), rnn.static_input(begin)
    state = rnn.memory(init=begin, need_reorder=True)
    total = rnn.memory(shape=[4], value=0.5)
    scale = layers.reduce_sum(layers.sequence_pool(far, "sum"), dim=1, keep_dim=True)
    after = layers.tanh(layers.matmul(now, w) + layers.matmul(state, u) + same * scale)
    sums = total * 0.5 + after
    rnn.update_memory(state, after)
    rnn.update_memory(total, sums)
    rnn.output(after, sums)
states, totals = rnn()
last = layers.sequence_last_step(totals)
loss = layers.reduce_sum(states * states) + layers.reduce_sum(last * last * last)
slopes = {one.name: slope for one, slope in fluid.backward.append_backward(loss)}
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())

def expected(lengths, rows, others, first, W, U):
    states, totals, loss = [], [], 0.0
    for sequence, other, one in zip(rows, others, first):
        state, total = one, numpy.full(4, 0.5)
        for row in sequence:
            state = numpy.tanh(row @ W + state @ U + one * other.sum())
            total = total * 0.5 + state
            states.append(state)
            totals.append(total)
        loss += (total ** 3).sum()
    states = numpy.array(states)
    return states, numpy.array(totals), (states * states).sum() + loss

random = numpy.random.RandomState(0)
for lengths, further in (([2, 4, 1, 4], [1, 2, 3, 1]), ([1], [2]), ([3, 3], [1, 1]), ([5, 1, 2], [2, 2, 2])):
    rows = [random.randn(length, 3) * 0.5 for length in lengths]
    others = [random.randn(length, 2) * 0.5 for length in further]
    first = random.randn(len(lengths), 4) * 0.5
    lod = lambda parts, sizes: fluid.create_lod_tensor(numpy.concatenate(parts).astype("float32"), [sizes], None)
    feed = {"x": lod(rows, lengths), "around": lod(others, further), "begin": first.astype("float32")}
    fetched = executor.run(feed=feed, fetch_list=[states, totals, loss, slopes["w"], slopes["u"]],
                           return_numpy=False)
    assert fetched[0].recursive_sequence_lengths() == [lengths]
    wanted = expected(lengths, rows, others, first, W, U)
    for found, value in zip(fetched, wanted):
        numpy.testing.assert_allclose(numpy.array(found), value, rtol=1e-4, atol=1e-5)
    for found, matrix, place in ((fetched[3], W, 0), (fetched[4], U, 1)):
        slope = numpy.zeros_like(matrix)
        for at in numpy.ndindex(*matrix.shape):
            moved = numpy.zeros_like(matrix)
            moved[at] = 1e-5
            both = [[W, U], [W, U]]
            both[0][place], both[1][place] = matrix + moved, matrix - moved
            above, below = (expected(lengths, rows, others, first, *one)[2] for one in both)
            slope[at] = (above - below) / 2e-5
        numpy.testing.assert_allclose(numpy.array(found), slope, rtol=2e-3, atol=2e-4)
print("ok")
"""

REFUSED = """
import paddle.fluid as fluid

layers = fluid.layers
x = fluid.data("x", [None, 3], lod_level=1)

def said(use):
    rnn = layers.DynamicRNN()
    try:
        use(rnn)
    except Exception as error:
        return str(error)

def begin_with_memory(rnn):
    with rnn.block():
        rnn.memory(shape=[2])

def give_nothing(rnn):
    with rnn.block():
        rnn.step_input(x)

def of_another(rnn):
    with rnn.block():
        rnn.update_memory(rnn.step_input(x), x)

for use in (begin_with_memory, give_nothing, of_another, lambda rnn: rnn.step_input(x), lambda rnn: rnn()):
    print(said(use).splitlines()[0])
"""


def test_steps_along_sequences_of_any_lengths(run, package):
    assert run(SCRIPT, PYTHONPATH=package + "/_compat").stdout.splitlines()[-1] == "ok"


def test_what_is_no_step_is_refused_by_name(run, package):
    said = run(REFUSED, PYTHONPATH=package + "/_compat").stdout.splitlines()
    assert said[0] == "DynamicRNN.memory() before step_input()"
    assert said[1] == "DynamicRNN without an output"
    assert said[2].startswith("DynamicRNN.update_memory(gather_")
    assert said[3:] == ["DynamicRNN.step_input() outside of its block", "DynamicRNN() before its block"]
