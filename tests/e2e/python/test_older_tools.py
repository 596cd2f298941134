"""What scripts of Paddle 1.x have beside layers: FleetUtil, names of operators, programs as text, blocks that
operators are appended to, arrays and inputs that are looser than Paddle 2's."""

import re

FLEET_UTIL = """
import numpy
import paddle.fluid as fluid
import paddle.distributed.fleet as fleet
from paddle.fluid.incubate.fleet.utils.fleet_util import FleetUtil

fleet.init(is_collective=True)
x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
chance = fluid.layers.fc(x, 2, act="softmax")
auc, _, stats = fluid.layers.auc(chance, y)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feed = {"x": numpy.sin(numpy.arange(200)).reshape(50, 4).astype("float32"),
        "y": (numpy.arange(50) % 3 == 0).astype("int64").reshape(50, 1)}
found = [exe.run(feed=feed, fetch_list=[auc])[0][0] for _ in range(3)][-1]
util = FleetUtil("transpiler")
names = [one.name for one in stats[2:]]
assert abs(util.get_global_auc(fluid.global_scope(), *names) - found) < 1e-6
util.print_global_auc(fluid.global_scope(), "none", "none", "day 1")
util.set_zero(names[0])
assert not numpy.array(fluid.global_scope().find_var(names[0]).get_tensor()).any()
print(util.get_online_pass_interval("20190720", "0 1 2", 60, 2, True))
print(util.get_online_pass_interval("{20190720..20190729}", "{22..23}", 30, 3, False))
try:
    FleetUtil("mpi")
except ValueError as error:
    print(error.what)
"""

LOOSE = """
import numpy
import paddle
import paddle.fluid as fluid
from paddle.fluid.transpiler.details import program_to_code

layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
array = layers.create_array("float32")
places = [layers.fill_constant([1], "int64", place) for place in (3, 1)]
layers.array_write(layers.fill_constant([2], "float32", layers.fill_constant([1], "float32", 5.0)), places[0], array)
print(exe.run(fetch_list=[layers.array_read(array, places[0]), layers.array_length(array)]))
try:
    layers.array_read(array, places[1])
except ValueError as error:
    print(error.what)

block = fluid.default_main_program().global_block()
made = block.create_var(name="made", shape=[2], dtype="float32")
block.append_op(type="scale", inputs={"X": [layers.ones([2], "float32")]}, outputs={"Out": [made]},
                attrs={"scale": 3.0})
cost = layers.square_error_cost(made, layers.zeros([2], "float32"))
print(cost.name, exe.run(fetch_list=["square_error_cost_0.tmp_1"])[0])
op = block.ops[-1]
print(op.type, op.output_arg_names, op.has_attr("none"), len(op.input_arg_names))
program_to_code(fluid.Program())
assert fluid.transpiler.details.program_utils.program_to_code is program_to_code

x = layers.data("x", [2, 3])
print(exe.run(feed={"x": numpy.ones((2, 3), "float32")}, fetch_list=[layers.scale(x, 2.0)])[0].shape)
w = layers.create_parameter([3], "float32")
mean = layers.mean(x)
print(fluid.optimizer.SGD(0.1).minimize(mean))
"""


def test_fleet_util(run, package):
    done = run(FLEET_UTIL, PYTHONPATH=package + "/_compat")
    assert done.stdout.splitlines() == [
        "not found auc bucket",
        "day 1 global auc = None",
        "[['00', '01']]",
        "[['2200', '2230', '2300']]",
        "FleetUtil(mode='mpi')",
    ]


def test_what_paddle_1_x_is_loose_about(run, package):
    done = run(LOOSE, PYTHONPATH=package + "/_compat")
    said = done.stdout.splitlines()
    assert said[:4] == [
        "[array([5., 5.], dtype=float32), array([4], dtype=int64)]",
        "fluid.layers.array_read at 1 of an array of 4",
        "square_error_cost_0.tmp_1 [9. 9.]",
        "square_error_cost ['square_error_cost_0.tmp_1'] False 2",
    ]
    assert said[-2:] == ["(2, 3)", "([], [])"]
    assert "it is computed from no trainable parameter" in done.stderr


def test_compat_and_first_values_on_the_cpu(run, package):
    run("""
import paddle
import paddle.compat as compat
import paddle.fluid as fluid

assert compat.to_text([b"a", "b"]) == ["a", "b"] and compat.to_bytes({"a"}) == {b"a"}
kept = [b"a", b"b"]
assert compat.to_text(kept, inplace=True) is kept and kept == ["a", "b"]
assert compat.to_text({b"a": b"b"}) == {"a": "b"} and compat.to_text(None) is None
assert [compat.round(value) for value in (2.5, -2.5, 0.0)] == [3.0, -3.0, 0.0] and compat.round(1.25, 1) == 1.3
assert compat.floor_division(7, 2) == 3 and compat.get_exception_message(ValueError("why")) == "why"
assert paddle.compat.long_type is int
with fluid.initializer.init_on_cpu():
    assert not fluid.initializer.force_init_on_cpu()
""", PYTHONPATH=f"{package}/_compat")


def test_names_beside_those_of_all(run, package):
    run("""
import numpy
import paddle.fluid as fluid
from paddle.fluid.transpiler.ps_dispatcher import HashName, RoundRobin

assert fluid.transpiler.RoundRobin is RoundRobin and fluid.optimizer.Lamb is fluid.optimizer.LambOptimizer
x = fluid.data("x", [-1, 2], "float32")
loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.5))
optimizer._set_checkpoints([loss])
optimizer.apply_optimize(loss, startup_program=None, params_grads=optimizer.backward(loss))
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
weight = fluid.global_scope().find_var("w").get_tensor()
before = fluid.executor.as_numpy(weight).copy()
exe.run(feed={"x": numpy.ones((1, 2), "float32")})
now, = fluid.executor.as_numpy([fluid.global_scope().find_var("w").get_tensor()])
assert numpy.allclose(now, before - 0.5)
""", PYTHONPATH=f"{package}/_compat")


def test_gradients_of_several_sums_and_by_what_each_value_counts(run):
    """calc_gradient of 1.x, gradients(target_gradients=), and one after the other in a program."""
    run("""
import numpy as np
import fleetrun.fluid as fluid
from fleetrun.fluid.backward import calc_gradient

x = fluid.data("x", [2, 3])
x.stop_gradient = False
by = fluid.data("by", [2, 3])
slope = calc_gradient(x * x, x)
weighed, = fluid.gradients([x * x * x, x], [x], [by, None])
w = fluid.layers.create_parameter([3], "float32", default_initializer=fluid.initializer.Constant(0.5))
assert calc_gradient(w * 2.0, x) is None
first = fluid.backward.append_backward(fluid.layers.reduce_sum(x * w))
loss = fluid.layers.reduce_sum(w * w)
second, third = (fluid.backward.append_backward(loss) for _ in range(2))
numbers = {"x": np.arange(6, dtype="float32").reshape(2, 3), "by": np.linspace(-1, 1, 6).reshape(2, 3).astype("float32")}
_, moving = fluid.optimizer.SGD(0.5).minimize(fluid.layers.reduce_sum(w * 3.0))
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
assert exe.run(feed=numbers, fetch_list=[moving[0][1]])[0].tolist() == [3, 3, 3]
assert (np.array(fluid.global_scope().find_var(w.name).get_tensor()) == -1).all()
exe.run(fluid.default_startup_program())
found = exe.run(feed=numbers, fetch_list=[slope, weighed, first[0][1], second[0][1], third[0][1]])
np.testing.assert_allclose(found[2], numbers["x"].sum(0))
np.testing.assert_allclose(found[3:], [[1, 1, 1]] * 2)
np.testing.assert_allclose(found[0], 2 * numbers["x"])
np.testing.assert_allclose(found[1], 3 * numbers["x"] ** 2 * numbers["by"] + 1, rtol=1e-6)
""")


def test_a_summary_is_accepted_and_widths_of_nothing_are_numbers(run):
    done = run("""
import numpy as np
import fleetrun.fluid as fluid
from fleetrun.fluid.contrib.model_stat import summary

start = fluid.initializer.UniformInitializer(low=-0.0, high=0.0)
w = fluid.layers.create_parameter([3], "float32", default_initializer=start)
summary(fluid.default_main_program())
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
assert (exe.run(fetch_list=[w])[0] == 0).all()
""")
    assert "model_stat.summary prints nothing here" in done.stderr


def test_steps_that_are_known_are_in_the_shapes_of_recurrent_layers(run):
    run("""
import fleetrun.fluid as fluid
from fleetrun.fluid.contrib.layers import basic_gru, basic_lstm

x = fluid.data("x", [None, 28, 5])
rows = [basic_lstm(x, None, None, 7)[0], basic_gru(x, None, 7)[0], fluid.layers.rnn(fluid.layers.GRUCell(7), x)[0]]
assert [one.shape for one in rows] == [(-1, 28, 7)] * 3, [one.shape for one in rows]
assert fluid.layers.fc(rows[0], 2).shape == (-1, 2)
assert basic_lstm(fluid.data("y", [None, None, 5]), None, None, 7)[0].shape == (-1, -1, 7)
""")


def test_a_block_makes_parameters_and_shows_its_operators(run):
    run("""
import numpy as np
from fleetrun import fluid
main, startup = fluid.default_main_program().global_block(), fluid.default_startup_program().global_block()
w = main.create_parameter(name="w", shape=[2, 3], dtype="float32", trainable=False)
startup.create_parameter(name="w", shape=[2, 3], dtype="float32", initializer=fluid.initializer.Constant(2.5))
assert w.type == fluid.core.VarDesc.VarType.LOD_TENSOR and not w.trainable
assert [one.name for one in main.all_parameters()] == ["w"]
out = fluid.layers.scale(w, 2.0)
assert "scale" in main.ops[-1].attr_names and main.ops[-1].all_attrs() == main.ops[-1].attributes
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
assert np.array_equal(exe.run(fetch_list=[out])[0], np.full((2, 3), 5.0))
""")


EVALUATORS = """
import numpy as np
import paddle.fluid as fluid

names = ("x", "y", "a", "b")
x, y, a, b = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in names)
distance = fluid.evaluator.EditDistance(input=x, label=y, ignored_tokens=[9])
chunks = fluid.evaluator.ChunkEvaluator(a, b, "IOB", 2)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())

def sequences(*rows):
    flat = np.array([one for row in rows for one in row], "int64").reshape(-1, 1)
    return fluid.create_lod_tensor(flat, [[len(row) for row in rows]], fluid.CPUPlace())

for _ in range(2):
    distance.reset(exe)
    chunks.reset(exe)
    for found in ([3, 4, 9], [3, 5, 6]):
        feed = dict(zip(names, (sequences([1, 2], found), sequences([1, 2], [3, 4, 4]),
                                sequences([0, 1], [4, 2, 3]), sequences([0, 1], [2, 2, 3]))))
        values = exe.run(feed=feed, fetch_list=distance.metrics + chunks.metrics)
        print([np.round(value, 4).tolist() for value in values])
    print([np.round(value, 4).tolist() for value in (*distance.eval(exe), *chunks.eval(exe))])
"""


def test_evaluators_sum_up_in_the_program_as_in_paddle_1_8(run, package):
    # Printed by Paddle 1.8.5, for this script.
    chunks = "[1.0], [0.6667], [0.8]"
    once = [f"[[0.3333], [1], {chunks}]", f"[[0.6667], [1], {chunks}]", f"[[0.25], [0.5], {chunks}]"]
    assert rounded(run(EVALUATORS, PYTHONPATH=package + "/_compat").stdout) == once * 2


def rounded(text):
    """The lines, with numbers of four places."""
    return [re.sub(r"\d+\.\d+", lambda found: str(round(float(found[0]), 4)), line)
            for line in text.splitlines()]


def test_small_names_of_framework_and_core(run, package):
    run("""
import paddle.fluid as fluid
from paddle.fluid import core, framework
from paddle.fluid.layer_helper_base import LayerHelperBase
x = fluid.data("x", [None, 3])
assert framework._get_var("x") is not None and framework._get_var("x").name == "x"
assert repr(framework._current_expected_place()) == "Place(cpu)" and not core.is_compiled_with_mkldnn()
types = ("bool", "int32", "float32", "int64", core.VarDesc.VarType.FP64)
assert [core.size_of_dtype(each) for each in types] == [1, 4, 4, 8, 8]
maker = core.op_proto_and_checker_maker
assert (int(maker.OpRole.Loss), maker.OpRole.Optimize, maker.kOpRoleVarAttrName()) == (256, 2, "op_role_var")
""", PYTHONPATH=package + "/_compat")


FEED = """
name: "MultiSlotDataFeed"
batch_size: 2
pipe_command: "cat"
multi_slot_desc {
  slots { name: "words" type: "uint64" is_dense: false is_used: false }
  slots { name: "unused" type: "float" is_dense: false is_used: false }
  slots { name: "y" type: "float" is_dense: true is_used: false }
}
"""


def test_async_executor_trains_on_the_used_slots_of_files(run, package, tmp_path):
    (tmp_path / "feed.proto").write_text(FEED)
    (tmp_path / "part").write_text("".join(f"2 {i % 3} 3 1 0.5 1 {i % 3}\n" for i in range(8)))
    done = run("""
import paddle.fluid as fluid

described = fluid.DataFeedDesc("feed.proto")
described.set_batch_size(4)
described.set_use_slots(["words", "y"])
described.set_pipe_command('sed "s/0.5/7.5/"')
words, y = fluid.layers.data("words", [1], dtype="int64", lod_level=1), fluid.layers.data("y", [1])
rows = fluid.layers.embedding(words, [4, 1], param_attr=fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0)))
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.sequence_pool(rows, "sum"), y))
fluid.optimizer.SGD(0.0).minimize(loss)
executor = fluid.AsyncExecutor(fluid.CPUPlace())
executor.run_startup_program(fluid.default_startup_program())
executor.run(fluid.default_main_program(), described, ["part"], 1, [loss], debug=True)
executor.run(fluid.default_main_program(), described, "part", 2, loss)
try:
    executor.run(None, described, [], 1, loss, mode="mpi")
except ValueError as error:
    print(error.what)
""", PYTHONPATH=f"{package}/_compat")
    # (2 - y)^2 of y = 0 1 2 0 and 1 2 0 1
    assert [float(found) for found in re.findall(r"\[1\]:\[([\d.]+)\]", done.stdout)] == [2.25, 1.5]
    assert done.stdout.splitlines()[-1] == "fluid.AsyncExecutor.run(mode='mpi') is not supported"


def test_batch_is_a_module_and_a_function(run, package):
    run("""
import paddle.batch as batch
import paddle
from paddle.batch import batch as function

for made in (batch, paddle.batch, function):
    assert list(made(lambda: iter(range(3)), 2)()) == [[0, 1], [2]]
""", PYTHONPATH=f"{package}/_compat")


PLOTTED = """
import sys
import types
import paddle.fluid as fluid

calls = []
drawing = types.ModuleType("matplotlib.pyplot")
for name in ("plot", "legend", "savefig", "clear"):
    setattr(drawing, name, lambda *words, _name=name, **more: calls.append((_name, *words)))
drawing.gcf = lambda: drawing
sys.modules["matplotlib"] = types.ModuleType("matplotlib")
sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"] = drawing
from paddle.utils.plot import Ploter

curves = Ploter("train", "test", "none")
for step in range(2):
    curves.append("train", step, step / 2)
curves.append("test", 1, 5)
curves.plot("curves.png")
assert calls == [("plot", [0, 1], [0.0, 0.5]), ("plot", [1], [5]), ("legend", ["train", "test"]),
                 ("savefig", "curves.png"), ("clear",)], calls
curves.reset()
calls.clear()
curves.plot()
assert calls == [("legend", []), ("clear",)], calls
try:
    curves.append("other", 1, 1)
except KeyError as error:
    print("no curve", error)
"""


def test_curves_are_drawn_as_tutorials_of_paddle_1_draw_them(run, package):
    assert run(PLOTTED, PYTHONPATH=f"{package}/_compat").stdout == "no curve 'other'\n"
    alone = """
import sys

sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None  # is not installed
from paddle.utils.plot import Ploter

curves = Ploter("a")
curves.append("a", 1, 2)
curves.plot("a.png")
"""
    assert "draws nothing: matplotlib is not installed" in run(alone, PYTHONPATH=f"{package}/_compat").stderr


def test_what_minimize_returned_is_accepted_among_what_is_fetched(run):
    """As in Paddle 2.6.2."""
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x = paddle.static.data("x", [None, 3])
loss = paddle.mean(paddle.static.nn.fc(x, 1, bias_attr=False))
done = paddle.optimizer.SGD(0.1).minimize(loss)
executor = paddle.static.Executor()
executor.run(paddle.static.default_startup_program())
given = {"x": np.ones((2, 3), "float32")}
first, second = (executor.run(feed=given, fetch_list=[loss, done]) for _ in range(2))
assert len(first) == len(second) == 1 and abs(first[0] - second[0] - 0.3) < 1e-5
""")


def test_what_the_layers_of_1_x_are_told_besides(run):
    run("""
import numpy as np
import fleetrun as paddle
from fleetrun import fluid
from fleetrun.fluid.layers.rnn import LSTMCell
from fleetrun.fluid.layers import rnn

layers = fluid.layers
block = fluid.default_main_program().global_block()
w = block.create_parameter(dtype="float32", shape=[5, 10], lod_level=0, name="w", persistable=True,
                           optimize_attr={"learning_rate": 0.5})
assert list(w.shape) == [5, 10] and w.rate_factor == 0.5
assert len(layers.get_places(2)) == 2 and not fluid.core.supports_bfloat16()
x, y, d = fluid.data("x", [None, 4, 3]), fluid.data("y", [3, 8, 8]), fluid.data("d", [1], "int32")
shape, label = fluid.data("shape", [3], "int32"), fluid.data("label", [None, 1], "int32")
states = [rnn(LSTMCell(2), x)[0], layers.rnn(LSTMCell(2), x)[0]]
parts = [layers.crop_tensor(y, shape=[3, d, 4]), layers.crop_tensor(y, shape=shape),
         layers.crop_tensor(y, shape=[-1, 2, 3], offsets=[0, 1, d])]
sums = paddle.static.ctr_metric_bundle(fluid.data("share", [None, 1]), label)
executor = fluid.Executor()
executor.run(fluid.default_startup_program())
feed = {"x": np.zeros((1, 4, 3), "float32"), "y": np.arange(192, dtype="float32").reshape(3, 8, 8),
        "d": np.array([2], "int32"), "shape": np.array([1, 2, 3], "int32"),
        "label": np.array([[1], [0]], "int32"), "share": np.array([[0.5], [0.25]], "float32")}
found = executor.run(feed=feed, fetch_list=[*states, *parts, *sums[:3]])
assert [value.shape for value in found[:5]] == [(1, 4, 2), (1, 4, 2), (3, 2, 4), (1, 2, 3), (3, 2, 3)]
assert found[4][0, 0, 0] == 10.0
np.testing.assert_allclose([value[0] for value in found[5:]], [0.3125, 0.75, 0.75])
scope = fluid.Scope()
scope.var("a").set(np.ones(2, "float32"))
inner = scope.new_scope()
inner.var("b").set(np.zeros(1, "float32"))
assert np.array(inner.find_var("a")).tolist() == [1.0, 1.0]
assert scope.find_var("b") is None and inner.find_var("c") is None
scope.drop_kids()
""")


def test_gradients_of_variables_that_are_no_parameters(run):
    """Values of Paddle 2.6.2."""
    run("""
import fleetrun as paddle

paddle.enable_static()
static = paddle.static
x, y = paddle.full([], 2.0), paddle.full([2], 3.0)
x.stop_gradient = y.stop_gradient = False
out = x * y
made = static.append_backward(out.sum(), parameter_list=[x, y.name, out])
assert [(one.name, slope.name) for one, slope in made] == [(one.name, one.name + "@GRAD") for one in (x, y, out)]
found = static.Executor().run(fetch_list=[slope for _, slope in made])
assert [value.tolist() for value in found] == [6.0, [2.0, 2.0], [1.0, 1.0]]

a, b, fixed = paddle.full([1], 1.0), paddle.full([1], 2.0), paddle.full([1], 4.0)
a.stop_gradient = b.stop_gradient = False
a.persistable = True
w = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.5))
loss = static.nn.cond(a < b, lambda: a + b * 3 + w * fixed, lambda: a * b)
assert [one.name for one, _ in static.append_backward(loss)] == [w.name]
executor = static.Executor()
executor.run(static.default_startup_program())
found = executor.run(fetch_list=[a.grad_name, b.grad_name, w.grad_name])
assert [value.tolist() for value in found] == [[1.0], [3.0], [4.0]]
assert not static.default_main_program().has_var(fixed.grad_name)
""")
