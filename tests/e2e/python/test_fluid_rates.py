"""Schedules, activations by name and variables of Paddle 1.x. The numbers are those of Paddle 1.8.5."""

import pytest

RATES = {
    "exponential_decay(0.1, 3, 0.5, True)": [0.1, 0.1, 0.1, 0.05, 0.05, 0.05],
    "natural_exp_decay(0.1, 3, 0.5)": [0.1, 0.0846482, 0.0716531, 0.0606531, 0.0513417, 0.0434598],
    "inverse_time_decay(0.1, 3, 0.5, True)": [0.1, 0.1, 0.1, 0.0666667, 0.0666667, 0.0666667],
    "polynomial_decay(0.1, 4, 0.01, 2.0)": [0.1, 0.060625, 0.0325, 0.015625, 0.01, 0.01],
    "polynomial_decay(0.1, 4, 0.01, 2.0, True)": [0.1, 0.060625, 0.0325, 0.015625, 0.01, 0.02265625],
    "piecewise_decay([2, 5], [0.3, 0.2, 0.1])": [0.3, 0.3, 0.2, 0.2, 0.2, 0.1],
    "noam_decay(8, 4)": [0.0441942, 0.0883883, 0.1325825, 0.1767767, 0.1581139, 0.1443376],
    "cosine_decay(0.1, 2, 6)": [0.1, 0.1, 0.0933013, 0.0933013, 0.075, 0.075],
    "linear_lr_warmup(layers.cosine_decay(0.1, 2, 6), 3, 0.0, 0.1)":
    [0, 0.0333333, 0.0666667, 0.0933013, 0.075, 0.075],
}  # fmt: skip


@pytest.mark.parametrize("rate", RATES)
def test_a_schedule_is_a_variable_of_the_program(run, rate):
    run(f"""
import numpy as np
from fleetrun import fluid
from fleetrun.fluid import layers

doubled = layers.{rate} * 2.0
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
found = [exe.run(fetch_list=[doubled])[0].item() / 2 for _ in range(6)]
assert np.allclose(found, {RATES[rate]}, atol=2e-7), found
""")


def test_the_rate_of_an_optimizer_is_fetched(run):
    run("""
import numpy as np
from fleetrun import fluid
from fleetrun.fluid import layers

x = layers.data("x", [3])
loss = layers.mean(layers.fc(x, 1, param_attr=fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(0.5)), bias_attr=False))
loss.persistable = True
rate = layers.exponential_decay(0.1, 2, 0.5)
optimizer = fluid.optimizer.SGD(rate)
optimizer.minimize(loss)
same = optimizer._global_learning_rate()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
found = [exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[loss, rate, same]) for _ in range(3)]
assert np.allclose(np.squeeze(found), [[1.5, 0.1, 0.1], [1.2, 0.0707107, 0.0707107], [0.9878680, 0.05, 0.05]], atol=1e-6), found
assert np.allclose(fluid.global_scope().find_var(loss.name).get_tensor(), 0.9878680)  # persistable: kept
fixed = fluid.optimizer.Adam(0.25)._global_learning_rate()
assert exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[fixed])[0] == 0.25
""")


def test_a_number_as_rate_is_a_variable_in_the_scope(run):
    """Scripts log it, and set it after loading, under the name that Paddle gives it."""
    run("""
import numpy as np
from fleetrun import fluid
from fleetrun.fluid import layers

x = layers.data("x", [3])
start = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(0.5))
loss = layers.mean(layers.fc(x, 1, param_attr=start, bias_attr=False))
optimizer = fluid.optimizer.SGD(0.1)
optimizer.minimize(loss)
assert optimizer._global_learning_rate().name == "learning_rate_0"
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rate = fluid.global_scope().find_var("learning_rate_0").get_tensor()
assert np.array(rate) == np.float32(0.1)
ones = {"x": np.ones((2, 3), "float32")}
assert exe.run(feed=ones, fetch_list=[loss])[0] == 1.5
rate.set(np.array([1.0], "float32"), fluid.CPUPlace())
found = [exe.run(feed=ones, fetch_list=[loss, optimizer._global_learning_rate()]) for _ in range(2)]
assert np.allclose(np.squeeze(found), [[1.2, 1.0], [-1.8, 1.0]], atol=1e-6), found

# Files have it, as Paddle's do; those of before, without it, are loaded all the same.
main, weight = fluid.default_main_program(), fluid.default_main_program().global_block().var("w")
for options in ({"dirname": "new"}, {"dirname": "one", "filename": "all"}):
    fluid.io.save_persistables(exe, main_program=main, **options)
    rate.set(np.array([7.0], "float32"), fluid.CPUPlace())
    fluid.io.load_persistables(exe, main_program=main, **options)
    assert np.array(rate) == 1
for options in ({"dirname": "old"}, {"dirname": "old_one", "filename": "all"}):
    fluid.io.save_vars(exe, main_program=main, vars=[weight], **options)
    rate.set(np.array([7.0], "float32"), fluid.CPUPlace())
    exe.run(feed=ones, fetch_list=[loss])
    before = np.array(fluid.global_scope().find_var("w").get_tensor()).copy()
    fluid.io.load_persistables(exe, main_program=main, **options)
    assert np.array(rate) == 7
    rate.set(np.array([1.0], "float32"), fluid.CPUPlace())
    assert not np.array_equal(before, fluid.global_scope().find_var("w").get_tensor())
""")


def test_a_rate_that_a_switch_assigns(run):
    """As ERNIE's warmup does it."""
    run("""
import numpy as np
from fleetrun import fluid
from fleetrun.fluid import layers

program = fluid.default_main_program()
with program._lr_schedule_guard():
    rate = layers.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name="rate")
    step = layers.learning_rate_scheduler._decay_step_counter()
    with layers.control_flow.Switch() as switch:
        with switch.case(step < 3):
            layers.assign(0.1 * (step / 3), rate)
        with switch.default():
            layers.assign(layers.polynomial_decay(0.1, decay_steps=8, end_learning_rate=0.0, power=1.0), rate)
cost = layers.mean(layers.create_parameter([2], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0)))
optimizer = fluid.optimizer.SGD(rate)
optimizer._learning_rate_map[program] = rate
pairs = optimizer.minimize(cost)[1]
for parameter, gradient in pairs:
    with program._optimized_guard([parameter, gradient]):
        layers.assign(parameter - parameter * rate * 0.5, parameter)
assert "assign" not in [op.type for op in program.clone(for_test=True).ops[-1:]]
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rates = [exe.run(fetch_list=[rate])[0].item() for _ in range(5)]
assert np.allclose(rates, [0, 0.1 / 3, 0.2 / 3, 0.0625, 0.05], atol=1e-7), rates
""")


ACTIVATIONS = {
    "elu": [-0.9502130, 0.2727273], "leaky_relu": [-0.06, 0.2727273], "stanh": [-1.6553755, 0.3100980],
    "hard_sigmoid": [0.0, 0.5545455], "swish": [-0.1422776, 0.1548443], "brelu": [0.0, 0.2727273],
    "soft_relu": [0.0485873, 0.8387796], "thresholded_relu": [0.0, 0.0], "hard_swish": [0.0, 0.1487603],
    "gelu": [-0.0040497, 0.1656733], "softshrink": [-2.5, 0.0], "hard_shrink": [-3.0, 0.0],
    "logsigmoid": [-3.0485873, -0.5660524], "selu": [-1.6705687, 0.2865549], "square": [9.0, 0.0743802],
    "log_softmax": [-3.3099296, -0.0372023], "relu6": [0.0, 0.2727273], "erf": [-0.9999779, 0.3002771],
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_layer_takes_every_activation_by_its_name(run, name):
    run(f"""
import numpy as np
from fleetrun import fluid

eye = fluid.initializer.NumpyArrayInitializer(np.eye(2, dtype="float32"))
x = fluid.layers.data("x", [2])
out = fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(initializer=eye), bias_attr=False, act="{name}")
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
found = exe.run(feed={{"x": np.array([[-3.0, 3 / 11]], "float32")}}, fetch_list=[out])[0]
assert np.allclose(found, {ACTIVATIONS[name]}, atol=1e-6), found
""")


def test_what_scripts_do_with_variables(run):
    run("""
import numpy as np
from fleetrun import fluid
from fleetrun.fluid.layers import core, LayerHelper, unique_name
from fleetrun.fluid.executor import _fetch_var

x = fluid.layers.data("x", shape=[-8, 2], append_batch_size=False)
assert x.shape == (-1, 2)
rate = fluid.layers.data("rate", shape=[1], append_batch_size=False)
table = fluid.layers.create_global_var([3, 2], 0.0, "float32", persistable=True, name="table")
table.desc.set_shape([-1, 2])
assert table.shape == (-1, 2)
total = fluid.layers.reduce_sum(table) * rate
seeded = [fluid.layers.create_parameter([4], "float32", default_initializer=fluid.initializer.Uniform(seed=7)) for _ in range(2)]
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
first = _fetch_var(seeded[0].name)
exe.run(fluid.default_startup_program())
assert np.array_equal(first, _fetch_var(seeded[0].name)) and first.std() > 0
_fetch_var("table", return_numpy=False).set(np.ones((5, 2), "float32"), fluid.CPUPlace())
assert exe.run(feed={"x": np.zeros((3, 2), "float32"), "rate": np.float32(0.5)}, fetch_list=[total])[0] == 5
""")


@pytest.mark.parametrize("call", ["run", "train_from_dataset"])
def test_a_number_is_the_rate_also_where_the_startup_program_has_not_run(run, call):
    run(f"""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x = paddle.static.data("x", [None, 1])
w = paddle.create_parameter([1], "float32", name="w")
paddle.optimizer.SGD(0.5).minimize(paddle.mean(x * w))
scope = paddle.static.global_scope()
scope.var("w").set(np.float32([3]))
exe = paddle.static.Executor()
if "{call}" == "run":
    exe.run(feed={{"x": np.float32([[1], [3]])}})
else:
    with open("rows", "w") as file:
        file.write("1 1\\n1 3\\n")
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=[x], pipe_command="cat", batch_size=2, thread_num=1)
    dataset.set_filelist(["rows"])
    exe.train_from_dataset(paddle.static.default_main_program(), dataset)
assert np.array(scope.find_var("w")) == 2
assert np.array(scope.find_var("learning_rate_0")) == 0.5
scope.find_var("learning_rate_0").get_tensor().set(np.float32([0.25]))
exe.run(feed={{"x": np.float32([[4]])}})
assert np.array(scope.find_var("w")) == 1
""")


def test_a_rate_that_no_optimizer_has_is_fetched(run):
    """From the first run on: what it has not counted before is refused, not made up."""
    run("""
import numpy as np
from fleetrun import Error, fluid
from fleetrun.fluid import layers

rate = layers.noam_decay(8, 4)
late = layers.cosine_decay(0.1, 2, 6)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
found = [exe.run(fetch_list=[rate])[0].item() for _ in range(3)]
assert np.allclose(found, [0.0441942, 0.0883883, 0.1325825], atol=2e-7), found
try:
    exe.run(fetch_list=[late])
except Error as error:
    assert "has not counted those before" in str(error), error
else:
    raise AssertionError("a rate of no step")
""")
