"""Values, shapes and defaults of Paddle 1.8.5 and 2.6.2, measured there."""


def test_numbers_and_places_of_fluid_layers_are_those_of_1_8(run):
    run("""
import numpy as np
from fleetrun import fluid

layers = fluid.layers
x, y = (fluid.data(name, [2, 3], "float32") for name in "xy")
a, b = np.arange(6, dtype="float32").reshape(2, 3) / 4, np.arange(6, dtype="float32").reshape(2, 3) + 1
cases = [
    (layers.argmax(x), [1, 1, 1]), (layers.argmin(x), [0, 0, 0]), (layers.argmax(x, axis=1), [2, 2]),
    (layers.allclose(x, y), [False]), (layers.has_inf(x), [False]), (layers.has_nan(x), [False]),
    (layers.isfinite(x), [True]), (layers.size(x), [6]), (layers.trace(x), [1.0]),
    (layers.dist(x, y), [7.70957]), (layers.dot(x, y), [[2.0], [15.5]]), (layers.mse_loss(x, y), [9.90625]),
    (layers.kldiv_loss(x, y), [1.92084]), (layers.logsumexp(x), [2.50621]),
    (layers.logsumexp(x, dim=1), np.log(np.exp(a).sum(1))),
]
values = fluid.Executor().run(feed={"x": a, "y": b}, fetch_list=[variable for variable, _ in cases])
for (variable, expected), value in zip(cases, values):
    np.testing.assert_allclose(value, expected, rtol=1e-5, err_msg=variable.name)
    assert value.shape == np.shape(expected), variable.name
""")


def test_an_operator_gives_the_first_type_before_paddle_2_6(run):
    """Where paddle.fluid.layers is used: Paddle 1.8.5 gives these, and 2.6.2, which has no fluid, float64."""
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x, wide = paddle.static.data("x", [2]), paddle.static.data("wide", [2], "float64")
assert (x + wide).dtype == (x * wide).dtype == (x - wide).dtype == paddle.float64
layers = paddle.fluid.layers
names = ["float32", "float64", "float32", "float32"]
cases = [layers.scale(x) + wide, wide - x, x * wide, layers.softmax(x + wide)]
values = paddle.static.Executor().run(
    feed={"x": np.ones(2, "float32"), "wide": np.array([2.0, 4.0])}, fetch_list=cases)
assert [str(value.dtype) for value in values] == names
assert [value.tolist() for value in values[:3]] == [[3.0, 5.0], [1.0, 3.0], [2.0, 4.0]]
""")


def test_what_an_operator_writes_over_a_feed_is_fetched(run):
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x, y = (paddle.static.data(name, [2], "float32") for name in "xy")
paddle.assign(x * 2.0, output=y)
feed = {"x": np.array([1.0, 2.0], "float32"), "y": np.array([5.0, 6.0], "float32")}
found = paddle.static.Executor().run(feed=feed, fetch_list=[x, y])
assert [value.tolist() for value in found] == [[1.0, 2.0], [2.0, 4.0]]
""")


def test_numbers_masks_and_truth_as_in_paddle_2_6(run):
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x = paddle.static.data("x", [2, 2], "float32")
cases = [
    (paddle.assign(2.0), [2.0]), (paddle.assign(2), [2]), (paddle.any(x, axis=1), [True, True]),
    (paddle.all(x, axis=1), [False, True]),
    (paddle.nn.functional.sequence_mask(x, 2), [[[0, 0], [1, 0]], [[1, 0], [1, 1]]]),
    (paddle.nn.functional.sequence_mask(x), [[[0], [1]], [[1], [1]]]),
]
feed = {"x": np.array([[0.0, 0.25], [0.5, 1.25]], "float32")}
values = paddle.static.Executor().run(feed=feed, fetch_list=[variable for variable, _ in cases])
for (variable, expected), value in zip(cases, values):
    assert value.tolist() == expected and value.shape == np.shape(expected), variable.name
""")


def test_the_cross_entropy_of_an_impossible_label_is_paddles(run):
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
cross_entropy = paddle.nn.functional.cross_entropy
p, share = (paddle.static.data(name, [4, 3], "float32") for name in ("p", "share"))
label = paddle.static.data("label", [4, 1], "int64")
p.stop_gradient = False
hard = cross_entropy(p, label, use_softmax=False, reduction="none")
soft = cross_entropy(p, share, soft_label=True, use_softmax=False, reduction="none")
gradients = [paddle.static.gradients([one], [p])[0] for one in (hard, soft)]
feed = {"p": np.array([[0, 0.5, 0.5], [1e-30, 0.5, 0.5], [1e-21, 0.5, 0.5], [0.2, 0.3, 0.5]], "float32"),
        "label": np.zeros((4, 1), "int64"), "share": np.array([[0.5, 0.5, 0]] * 4, "float32")}
found = paddle.static.Executor().run(feed=feed, fetch_list=[hard, soft, *gradients])
# Those of Paddle 2.6.2.
np.testing.assert_allclose(found[0].ravel(), [1e20, 69.07755, 48.354286, 1.609438], rtol=1e-6)
np.testing.assert_allclose(found[1].ravel(), [5e19, 34.885345, 24.523716, 1.4067054], rtol=1e-6)
np.testing.assert_allclose(found[2], [[-np.inf, 0, 0], [-1e30, 0, 0], [-1e21, 0, 0], [-5, 0, 0]], rtol=1e-6)
np.testing.assert_allclose(
    found[3], [[-np.inf, -1, 0], [-5e29, -1, 0], [-5e20, -1, 0], [-2.5, -0.5 / 0.3, 0]], rtol=1e-6)
""")


def test_one_value_of_a_variable_has_an_axis_where_fluid_layers_are_used(run):
    """The accuracy of a batch is printed as `acc[0]`, of a variable or of what is fetched."""
    run("""
import numpy as np
from fleetrun import fluid

x = fluid.data("x", [2, 3], "float32")
mean = fluid.layers.mean(x)
cases = [x[1, 2], mean[0], x[1][0], x[0], x[:, 1]]
assert [variable.shape for variable in cases] == [(1,), (1,), (1,), (3,), (2,)]
given = np.arange(6, dtype="float32").reshape(2, 3)
found = fluid.Executor().run(feed={"x": given}, fetch_list=cases)
assert [value.tolist() for value in found] == [[5.0], [2.5], [3.0], [0.0, 1.0, 2.0], [1.0, 4.0]]
""")


def test_no_class_is_impossible_to_softmax(run):
    """Paddle 1.8.5 and 2.6.2 on the CPU: what is 64 below the greatest and deeper counts as 64 below."""
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
functional = paddle.nn.functional
x, label = paddle.static.data("x", [2, 3], "float32"), paddle.static.data("label", [2, 1], "int64")
x.stop_gradient = False
shares = functional.softmax(x)
soft = functional.one_hot(paddle.squeeze(label, [1]), 3)
losses = [
    functional.cross_entropy(x, label, reduction="none"), functional.cross_entropy(x, soft, soft_label=True,
                                                                                   reduction="none"),
    functional.cross_entropy(shares, label, use_softmax=False, reduction="none")]
logs = functional.log_softmax(x)
slope = paddle.static.gradients(losses[0], x) + paddle.static.gradients(logs[:, 1], x)
given = {"x": np.array([[0, -100, 3], [0, -63.5, 0]], "float32"), "label": np.array([[1], [1]])}
found = paddle.static.Executor().run(feed=given, fetch_list=[shares, *losses, *slope, logs])
np.testing.assert_allclose(found[0][0], [4.7425874e-02, 1.5277489e-28, 9.5257413e-01], rtol=1e-5)
for loss in found[1:4]:
    np.testing.assert_allclose(loss.ravel(), [64.048584, 64.193146], rtol=1e-6)
np.testing.assert_allclose(found[4], [[4.7425874e-02, -1.0, 9.5257413e-01], [0.5, -1.0, 0.5]], rtol=1e-5)
np.testing.assert_allclose(found[5], -found[4], rtol=1e-5)
np.testing.assert_allclose(found[6], [[-3.0485873, -64.048584, -0.0485873], [-0.6931472, -64.193146, -0.6931472]],
                           rtol=1e-5)
""")


def test_a_batch_of_one_value_of_each_channel_is_not_normalized(run):
    """Paddle 2.6.2: the last batch of a pass may have one example."""
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x = paddle.static.data("x", [None, 3], "float32")
x.stop_gradient = False
y = paddle.static.nn.batch_norm(
    x, param_attr=paddle.ParamAttr("s", paddle.nn.initializer.Constant(2.0)),
    bias_attr=paddle.ParamAttr("b", paddle.nn.initializer.Constant(0.5)),
    moving_mean_name="mean", moving_variance_name="variance")
again = paddle.nn.functional.relu(paddle.static.nn.batch_norm(x, moving_mean_name="other"))
paddle.static.append_backward(paddle.sum(y * y) + paddle.sum(again * again))
executor = paddle.static.Executor()
executor.run(paddle.static.default_startup_program())
names = ["x@GRAD", "s@GRAD", "b@GRAD", "mean", "variance", "other"]
def step(*rows):
    return executor.run(feed={"x": np.array(rows, "float32")}, fetch_list=[y, again, *names])
for given, mean, variance, other in [((0, -1, 2), 0, 1, 0), ((3, 4, -5), [0.15, 0.25, 0.35], 1.125,
                                                             [0.15, 0.25, 0.35])]:
    found = step(given)
    np.testing.assert_array_equal(found[0], [given])
    np.testing.assert_array_equal(found[1], [np.maximum(given, 0)])
    np.testing.assert_array_equal(found[2], [2 * np.array(given) + 2 * np.maximum(given, 0)])
    assert not found[3].any() and not found[4].any()
    np.testing.assert_allclose(found[5], np.broadcast_to(mean, 3), rtol=1e-5)
    np.testing.assert_allclose(found[6], np.broadcast_to(variance, 3), rtol=1e-5)
    np.testing.assert_allclose(found[7], np.broadcast_to(other, 3), rtol=1e-5)
    step((0, 1, 2), (3, 4, 5))
""")
