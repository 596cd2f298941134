"""The spellings of Paddle 1.x that document 000 has."""


def test_a_program_of_fluid_layers(run):
    run("""
import numpy as np
from fleetrun import fluid

ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
dense = fluid.layers.data(name="dense", shape=[3], dtype="float32")
label = fluid.layers.data(name="label", shape=[-1, 1], append_batch_size=False, dtype="int64")
assert ids.shape == (-1, 1) and dense.shape == (-1, 3) and label.shape == (-1, 1)
rows = fluid.layers.embedding(input=ids, size=[50, 16], is_sparse=True)
assert rows.shape == (-1, 16)
predict = fluid.layers.fc(input=fluid.layers.concat([rows, dense], axis=1), size=2, act="softmax")
cost = fluid.layers.cross_entropy(input=predict, label=label)
assert cost.shape == (-1, 1)
avg_cost = fluid.layers.mean(cost)
auc, batch_auc, states = fluid.layers.auc(input=predict, label=label)
total = fluid.layers.reduce_sum(fluid.layers.relu(dense), dim=1)
fluid.optimizer.SGD(0.5).minimize(avg_cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
pe = fluid.ParallelExecutor(use_cuda=False, loss_name=avg_cost.name, main_program=fluid.default_main_program())
rng = np.random.default_rng(1)
losses = []
for step in range(40):
    keys = rng.integers(0, 50, (8, 1))
    feed = {"ids": keys, "dense": rng.normal(size=(8, 3)).astype("float32"), "label": keys % 2}
    loss, probability, sums, _ = pe.run(fetch_list=[avg_cost.name, predict.name, total.name, auc.name], feed=feed)
    losses.append(loss.mean())
    assert np.allclose(probability.sum(1), 1, atol=1e-5) and np.allclose(sums, np.maximum(feed["dense"], 0).sum(1), atol=1e-5)
assert np.mean(losses[-10:]) < np.mean(losses[:10])
""", CPU_NUM="2")


COUNTED = """
import numpy as np
from fleetrun import fluid

x = fluid.layers.data(name="x", shape=[1], dtype="float32")
w = fluid.layers.create_parameter([1], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0))
cost = fluid.layers.mean(x * w)
fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, decay_steps=1, decay_rate=0.5)).minimize(cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
"""


def test_a_schedule_of_fluid_layers_counts_the_runs_of_the_program(run):
    run(COUNTED + """
feed = {"x": np.ones((2, 1), "float32")}
values = [exe.run(feed=feed, fetch_list=["w"])[0].item() for _ in range(4)]
exe.run(fluid.default_main_program().clone(for_test=True), feed=feed, fetch_list=[cost])  # counts nothing
values.append(exe.run(feed=feed, fetch_list=["w"])[0].item())
assert np.allclose(values, 1 - np.cumsum(0.1 * 0.5 ** np.arange(5)), atol=1e-6), values
""")


def test_names_that_are_not_there_are_named(run):
    assert "fleetrun has no paddle.fluid.layers.embeding; did you mean paddle.fluid.layers.embedding?" in run("""
from fleetrun import fluid
try:
    fluid.layers.embeding
except AttributeError as error:
    print(error)
""").stdout


def test_rules_under_the_names_of_1_x_move_as_those_of_2_x(run):
    run("""
import numpy as np
import fleetrun as paddle
from fleetrun import fluid
paddle.enable_static()

def moved(make):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()):
        x = paddle.static.data("x", [None, 2])
        w = paddle.create_parameter([2, 1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.5))
        make().minimize(paddle.mean(paddle.square(paddle.matmul(x, w))))
        exe = paddle.static.Executor()
        exe.run(startup)
        feed = {"x": np.array([[1, 2], [3, -1]], "float32")}
        return [exe.run(main, feed=feed, fetch_list=[w])[0] for _ in range(3)][-1]

pairs = (
    (lambda: fluid.optimizer.Adamax(0.1, 0.8, 0.99, 1e-6), lambda: paddle.optimizer.Adamax(0.1, 0.8, 0.99, 1e-6)),
    (lambda: fluid.optimizer.RMSPropOptimizer(0.1, 0.9), lambda: paddle.optimizer.RMSProp(0.1, 0.9)),
    (lambda: fluid.optimizer.Adagrad(0.3, regularization=fluid.regularizer.L2Decay(0.1)),
     lambda: paddle.optimizer.Adagrad(0.3, weight_decay=0.1)),
)
for older, newer in pairs:
    one, other = moved(older), moved(newer)
    assert np.array_equal(one, other) and np.all(one != 0.5), (one, other)
try:
    fluid.optimizer.LambOptimizer(regularization=fluid.regularizer.L2Decay(0.1))
except paddle.Error as error:
    assert "LambOptimizer(regularization=" in str(error)
else:
    raise AssertionError("accepted")
""")


def test_steps_are_those_of_1_x(run):
    """The numbers are Paddle 1.8.5's."""
    run("""
import numpy as np
from fleetrun import fluid

def moved(optimizer, slope, start=(0.5,)):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, len(start)])
        first = fluid.initializer.NumpyArrayInitializer(np.array(start, "float32").reshape(-1, 1))
        out = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr("w", initializer=first), bias_attr=False)
        optimizer.minimize(fluid.layers.mean(out) * slope)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": np.array([[1.0, 0.5][:len(start)]], "float32")}
        w = fluid.global_scope().find_var("w").get_tensor()
        return [np.ravel([exe.run(main, feed=feed), np.array(w)][1]).tolist() for _ in range(3)]

for optimizer, slope, expected in (
    (fluid.optimizer.Adam(0.002), 1e-6, [-0.0015195, -0.0031539, -0.0048450]),
    (fluid.optimizer.Adam(0.002), 1e-8, [-0.0000613, -0.0001469, -0.0002507]),
    (fluid.optimizer.Adadelta(0.002), 1.0, [-0.0063245, -0.0118488, -0.0170914]),
    (fluid.optimizer.Adadelta(0.5), 1e-3, [-0.0009989, -0.0019968, -0.0029939]),
):
    got = np.ravel(moved(optimizer, slope)) - 0.5
    np.testing.assert_allclose(got, expected, atol=2e-7)
for decay, expected in ((0.0, [[0.461921, 0.161922], [0.427309, 0.127311], [0.395781, 0.095783]]),
                        (0.5, [[0.461075, 0.162787], [0.425919, 0.128802], [0.393999, 0.097801]])):
    got = moved(fluid.optimizer.LambOptimizer(0.1, decay), 1.0, (0.5, 0.2))
    np.testing.assert_allclose(got, expected, atol=2e-6)
""")


def test_numbers_have_the_shape_that_1_x_gives_them(run):
    run("""
import numpy as np
from fleetrun import fluid

x = fluid.layers.data(name="x", shape=[3], dtype="float32")
label = fluid.layers.data(name="label", shape=[1], dtype="int64")
layers = fluid.layers
assert fluid.contrib.layers.shuffle_batch is fluid.contrib.shuffle_batch
count, right = layers.create_tensor("int64"), layers.create_tensor("int32")
share = layers.accuracy(layers.softmax(x), label, total=count, correct=right)
area, of_batches, counters = layers.auc(layers.softmax(x[:, :2]), layers.cast(label > 1, "int64"), num_thresholds=99)
assert area.shape == of_batches.shape == (1,) and [one.shape for one in counters] == [(201,)] * 2 + [(1, 100)] * 2
numbers = [layers.mean(x), layers.reduce_sum(x), layers.reduce_max(x, dim=[0, 1]), share]
assert all(one.shape == (1,) for one in numbers)
assert layers.reduce_sum(x, dim=1).shape == (-1,)
sums = [layers.cumsum(x, axis=1), layers.cumsum(x, axis=1, exclusive=True), layers.cumsum(x, exclusive=True, reverse=True),
        layers.cumsum(x, axis=0, reverse=True)]
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feed = {"x": np.array([[1.0, 2.0, 4.0], [0.5, 8.0, 1.0], [3.0, 0.25, 1.0]], "float32"), "label": np.array([[2], [1], [2]])}
found = exe.run(feed=feed, fetch_list=[*numbers, count, right, *sums])
x = feed["x"]
assert [one.shape for one in found[:6]] == [(1,)] * 6
np.testing.assert_allclose(np.concatenate(found[:6]), [x.mean(), x.sum(), 8.0, 2 / 3, 3, 2], rtol=1e-6)
assert (found[4].dtype.name, found[5].dtype.name) == ("int64", "int32")
np.testing.assert_array_equal(found[6], np.cumsum(x, 1))
np.testing.assert_array_equal(found[7], np.cumsum(x, 1) - x)
np.testing.assert_array_equal(found[8], np.cumsum(x[:, ::-1], 1)[:, ::-1] - x)
np.testing.assert_array_equal(found[9], np.cumsum(x[::-1], 0)[::-1])
""")


def test_results_of_fc_are_named_after_the_layer(run):
    done = run("""
import fleetrun as paddle
from fleetrun import fluid
paddle.enable_static()
x = paddle.static.data("x", [None, 3])
plain, named = paddle.static.nn.fc(x, 2, activation="relu"), fluid.layers.fc(x, 2, act="softmax", name="l3")
print(plain.name, named.name, (plain + named).name.startswith("fc"), fluid.layers.cos_sim(plain, named).name)
""")
    assert done.stdout == "fc_0.tmp_2 l3.tmp_2 False cos_sim_0.tmp_0\n"


def test_a_variable_as_momentum_of_batch_norm_has_no_effect(run):
    """The numbers are those of Paddle 1.8.5, and of 2.6.2."""
    done = run("""
import numpy as np
from fleetrun import fluid
x = fluid.layers.data("x", [2])
momentum = fluid.layers.fill_constant([1], "float32", 0.25)
out = fluid.layers.batch_norm(x, momentum=momentum, moving_mean_name="mean", moving_variance_name="variance")
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for times in (1, 2, 3):
    exe.run(feed={"x": np.array([[1, 2], [3, 8]], "float32") * times}, fetch_list=[out])
moments = [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("mean", "variance")]
assert np.allclose(moments, [[1.122, 2.805], [2.07, 12.798]], rtol=1e-5), moments
""")
    assert done.stderr.count("the variable has no effect, as on CPUs in Paddle: it is 0.9") == 1, done.stderr
