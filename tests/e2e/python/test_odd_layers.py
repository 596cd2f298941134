"""Layers that draw numbers, keep a state, or are not in real Paddle 2.6.2: by hand and against numpy."""

SCRIPT = """
import numpy
import paddle
import paddle.fluid as fluid
from paddle.nn import functional

paddle.enable_static()
layers, executor = fluid.layers, fluid.Executor(fluid.CPUPlace())
X = numpy.sin(numpy.arange(24)).reshape(2, 3, 4).astype("float32")

def run(*fetched, **feed):
    executor.run(fluid.default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetched))

x = fluid.data("x", [2, 3, 4])
matrix = paddle.reshape(x, [6, 4])
found = run(paddle.linalg.cov(matrix), paddle.linalg.cov(matrix, rowvar=False, ddof=False),
            paddle.linalg.corrcoef(matrix), x=X)
rows = X.reshape(6, 4)
for one, wanted in zip(found, (numpy.cov(rows), numpy.cov(rows, rowvar=False, ddof=0), numpy.corrcoef(rows))):
    numpy.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)

hard, soft, dropped, leaky, alpha = run(
    functional.gumbel_softmax(x, hard=True), functional.gumbel_softmax(x), functional.dropout3d(
        paddle.ones([4, 8, 2, 2, 2])), functional.rrelu(x, 0.1, 0.3),
    functional.alpha_dropout(paddle.randn([20000]), 0.4), x=X)
assert ((hard == 1).sum(-1) == 1).all() and numpy.allclose(hard.sum(-1), 1)
numpy.testing.assert_allclose(soft.sum(-1), 1, rtol=1e-5)
channels = dropped.reshape(32, 8)
assert (channels == channels[:, :1]).all() and set(channels.ravel()) == {0.0, 2.0}
factor = leaky[X < 0] / X[X < 0]
assert (leaky[X >= 0] == X[X >= 0]).all() and factor.min() >= 0.0999 and factor.max() < 0.3001
assert abs(alpha.mean()) < 0.05 and abs(alpha.std() - 1) < 0.05, (alpha.mean(), alpha.std())

found = layers.assign(numpy.array([[0, 1, 2], [2, 2, 4]], "int32"))
right = layers.assign(numpy.array([[0, 1, 1], [2, 0, 4]], "int32"))
mean, wrong, correct = run(*layers.mean_iou(found, right, 6), x=X)
print(mean.round(5), wrong.tolist(), correct.tolist())
drawn = run(layers.sampling_id(layers.assign(numpy.array([[0, 1, 0], [0.5, 0, 0.5]] * 50, "float32"))), x=X)[0]
assert (drawn[::2] == 1).all() and set(drawn[1::2]) == {0, 2}
print("ok")
"""

CENTRES = """
import numpy
import paddle.fluid as fluid

layers, executor = fluid.layers, fluid.Executor(fluid.CPUPlace())
x, label = fluid.data("x", [None, 2]), fluid.data("label", [None, 1], "int64")
loss = layers.mean(layers.center_loss(x, label, 3, 0.5, fluid.ParamAttr(name="centres")))
test = fluid.default_main_program().clone(for_test=True)
fed = {"x": numpy.array([[1, 2], [3, 4], [5, 6]], "float32"), "label": numpy.array([[0], [2], [0]])}
executor.run(fluid.default_startup_program())
for program in (test, None, test):
    print(executor.run(program, feed=fed, fetch_list=[loss])[0],
          numpy.array(fluid.global_scope().find_var("centres").get_tensor()).tolist())
"""

CHANNELS = """
import numpy
import paddle
import paddle.fluid as fluid

paddle.enable_static()
x = fluid.data("x", [2, 3, 4])
attr = fluid.ParamAttr(name="mine", initializer=fluid.initializer.Constant(2.0))
plain, named = fluid.layers.instance_norm(x), fluid.layers.instance_norm(x, param_attr=attr)
target = fluid.layers.assign(numpy.ones((2, 3, 4), "float32"))
fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.square_error_cost(plain + named, target)))
print(sorted(p.name for p in fluid.default_main_program().all_parameters()))
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
X = numpy.sin(numpy.arange(24)).reshape(2, 3, 4).astype("float32")
flat = (X - X.mean(-1, keepdims=True)) / numpy.sqrt(X.var(-1, keepdims=True) + 1e-5)
for step in range(2):
    found = executor.run(feed={"x": X}, fetch_list=[plain, named])
    if step == 0:
        numpy.testing.assert_allclose(found[1], 2 * found[0], rtol=1e-4, atol=1e-6)
        numpy.testing.assert_allclose(found[0], flat, rtol=1e-4, atol=1e-5)
pull = 2 * (3 * flat - 1) / flat.size
weight, bias = (1 - 0.1 * (pull * flat).sum((0, 2)), -0.1 * pull.sum((0, 2)))
numpy.testing.assert_allclose(found[0], flat * weight[:, None] + bias[:, None], rtol=1e-4, atol=1e-5)
try:
    fluid.layers.instance_norm(x, bias_attr=False)
except Exception as error:
    print(str(error).splitlines()[0])
"""


def test_channels_of_each_example_have_parameters_that_train(run, package):
    said = run(CHANNELS, PYTHONPATH=package + "/_compat").stdout.splitlines()
    assert said == [
        "['instance_norm_0.b_0', 'instance_norm_0.w_0', 'instance_norm_1.b_0', 'mine']",
        "fluid.layers.instance_norm(bias_attr=False) is not supported"]


def test_layers_that_draw_numbers_or_count(run, package):
    said = run(SCRIPT, PYTHONPATH=package + "/_compat").stdout.splitlines()
    # Classes 3 and 5 are not there: the mean of 1/2, 1/2, 1/3 and 1.
    assert said == ["[0.58333] [1, 1, 2, 0, 0, 0] [1, 1, 1, 0, 1, 0]", "ok"]


def test_centres_of_classes_move_while_training_alone(run, package):
    said = run(CENTRES, PYTHONPATH=package + "/_compat").stdout.splitlines()
    # (5 + 25 + 61) / 6; a centre moves by half the sum of distances over their number and 1.
    moved = "[[1.0, 1.3333333730697632], [0.0, 0.0], [0.75, 1.0]]"
    assert said == [
        "[15.166667] [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]",
        "[15.166667] " + moved,
        f"[{said[2].split()[0][1:-1]}] " + moved,
    ]
    assert float(said[2].split()[0][1:-1]) < 15


def test_the_profiler_is_accepted(run, package):
    done = run("""
import paddle
def ready(prof):
    print(type(prof).__name__)
with paddle.profiler.Profiler(scheduler=(2, 5), on_trace_ready=ready, timer_only=True) as prof:
    for step in range(3):
        with paddle.profiler.RecordEvent("step"):
            pass
        prof.step(8)
    print("batch_cost" in prof.step_info())
states = paddle.profiler.make_scheduler(closed=1, ready=1, record=2, repeat=1)
print([states(step).name for step in range(5)])
""", PYTHONPATH=package + "/_compat")  # fmt: skip
    assert done.stdout.splitlines() == [
        "True",
        "Profiler",
        "['CLOSED', 'READY', 'RECORD', 'RECORD_AND_RETURN', 'CLOSED']",
    ]
    assert done.stderr.count("profiler is not here") == 1
