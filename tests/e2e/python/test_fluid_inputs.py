"""What scripts of Paddle 1.x feed, and some of its layers. The numbers are those of Paddle 1.8.5."""

HEAD = """
import numpy as np
import pytest
from fleetrun import Error, fluid
from fleetrun.fluid import layers

exe = fluid.Executor(fluid.CPUPlace())
def fed(name, shape):
    return {name: np.arange(np.prod(shape), dtype="float32").reshape(shape) / 10}
"""


def test_declared_sizes_are_no_promise(run):
    """As ERNIE, which declares its longest sentence and feeds what a batch has."""
    run(HEAD + """
x = layers.data("x", [8, 3])
ids = layers.data("ids", [-1, 8, 1], dtype="int64", append_batch_size=False)
rows = layers.embedding(ids, [20, 3], param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.25)))
hidden = layers.fc(x + rows, 4, num_flatten_dims=2, param_attr=fluid.ParamAttr(name="w"))
loss = layers.mean(layers.reduce_sum(hidden * hidden, dim=[1, 2]))
test = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.SGD(1e-5).minimize(loss)
exe.run(fluid.default_startup_program())
weight = np.array(fluid.global_scope().find_var("w").get_tensor())
for length in (8, 5, 11):
    feed = {**fed("x", (2, length, 3)), "ids": np.ones((2, length, 1), "int64")}
    expected = (((feed["x"] + 0.25) @ weight) ** 2).sum((1, 2)).mean()
    assert np.allclose(exe.run(test, feed=feed, fetch_list=[loss])[0], expected, rtol=1e-5)
first = exe.run(feed=feed, fetch_list=[loss])[0]
assert exe.run(feed=feed, fetch_list=[loss])[0] < first
with pytest.raises(Error, match="'x' is declared"):  # the weights need three
    exe.run(feed={**feed, **fed("x", (2, 11, 4))})
""")


def test_a_declared_size_that_a_program_needs_is_one(run):
    run(HEAD + """
x = layers.data("x", [4])
y = fluid.data("y", [None, 4])
out, same = layers.fc(x, 2), y * 2.0
exe.run(fluid.default_startup_program())
exe.run(feed={**fed("x", (3, 4)), **fed("y", (3, 4))}, fetch_list=[out, same])
with pytest.raises(Error, match=r"'x' is declared float32 \\[-1, 4\\], but was fed float32 \\[3, 5\\]"):
    exe.run(feed={**fed("x", (3, 5)), **fed("y", (3, 4))}, fetch_list=[out])
with pytest.raises(Error, match=r"'y' is declared float32 \\[-1, 4\\], but was fed float32 \\[3, 5\\]"):
    exe.run(feed={**fed("x", (3, 4)), **fed("y", (3, 5))}, fetch_list=[same])
""")


def test_what_is_fed_to_a_parameter_stays(run):
    """As Transformer feeds its table of positions once."""
    run(HEAD + """
x = layers.data("x", [2])
table = layers.create_parameter([2], "float32", name="table")
out = layers.reduce_sum(x * table)
exe.run(fluid.default_startup_program())
feed = fed("x", (1, 2))
assert np.allclose(exe.run(feed={**feed, "table": np.array([2, 3], "float32")}, fetch_list=[out])[0], 0.3)
assert np.allclose(exe.run(feed=feed, fetch_list=[out])[0], 0.3)
with pytest.raises(Error, match="is not an input of the program"):
    exe.run(feed={**feed, out.name: np.zeros(1, "float32")})
""")


def test_any_variable_that_no_operator_makes_is_fed(run):
    """What is not fed is named; before, a program read what happened to be in memory."""
    run(HEAD + """
made = fluid.default_main_program().global_block().create_var(name="made", shape=[2], dtype="float32")
out = layers.scale(made, 2.0)
with pytest.raises(Error, match="'made', which scale reads, has no value: no operator before makes it"):
    exe.run(fetch_list=[out])
assert exe.run(feed={"made": np.array([1, 2], "float32")}, fetch_list=[out])[0].tolist() == [2, 4]
with pytest.raises(Error, match="'made' is not fed"):
    exe.run(fetch_list=[out])
""")


def test_operators_by_their_types(run):
    run(HEAD + """
from fleetrun.fluid.layer_helper import LayerHelper
ids = layers.data("ids", [1], dtype="int64")
helper = LayerHelper("mine")
table = layers.create_parameter([5, 2], "float32", default_initializer=fluid.initializer.NumpyArrayInitializer(
    np.arange(10, dtype="float32").reshape(5, 2)))
def made(type, inputs, attrs, slots=("Out",)):
    outputs = {slot: helper.create_variable_for_type_inference("float32") for slot in slots}
    helper.append_op(type=type, inputs=inputs, outputs=outputs, attrs=attrs)
    return outputs["Out"]
rows = made("lookup_table", {"Ids": ids, "W": table}, {"padding_idx": -1, "is_sparse": False})
more = made("lookup_table_v2", {"Ids": ids, "W": table}, {"padding_idx": 3})
turned = made("transpose2", {"X": rows}, {"axis": [1, 0]}, ("Out", "XShape"))
flat = made("reshape2", {"X": turned}, {"shape": [-1]}, ("Out", "XShape"))
exe.run(fluid.default_startup_program())
found = exe.run(feed={"ids": np.array([[3], [0]])}, fetch_list=[rows, more, flat])
assert np.array_equal(found[0], [[6, 7], [0, 1]]) and np.array_equal(found[1], [[[0, 0]], [[0, 1]]])
assert np.array_equal(found[2], [6, 0, 7, 1])
least, most, unit = fluid.contrib.memory_usage(fluid.default_main_program(), 10)
assert unit == "B" and np.allclose(most / least, 1.1 / 1.05) and least > 100
""")


def test_pools_over_volumes(run):
    run(HEAD + """
x = layers.data("x", [1, 3, 2, 2])
outs = [
    layers.pool3d(x, 2, "max", 1), layers.pool3d(x, 2, "avg", 1),
    layers.pool3d(x, pool_type="avg", global_pooling=True),
    layers.pool3d(x, [2, 1, 1], "avg", [2, 1, 1], [1, 0, 0]),
    layers.pool3d(x, [2, 1, 1], "avg", [2, 1, 1], [1, 0, 0], exclusive=False),
]
values = [np.ravel(value) for value in exe.run(feed=fed("x", (1, 1, 3, 2, 2)), fetch_list=outs)]
assert np.allclose(values[0], [0.7, 1.1]) and np.allclose(values[1], [0.35, 0.75]) and np.allclose(values[2], 0.55)
assert np.allclose(values[3], [0, 0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9])
assert np.allclose(values[4], [0, 0.05, 0.1, 0.15, 0.6, 0.7, 0.8, 0.9])
""")


def test_a_mean_that_is_not_exclusive_is_of_the_whole_window(run):
    """As in 1.x, where ceil_mode cuts it; in 2.x the mean is of what is left of it."""
    run(HEAD + """
from fleetrun.nn import functional
x, y = layers.data("x", [1, 5, 5]), layers.data("y", [1, 3, 3, 5])
free = layers.data("free", [-1, 1, -1, 5])
mean = lambda x, *rest, **more: layers.pool2d(x, *rest, ceil_mode=True, exclusive=False, **more)
volume = layers.pool3d(y, 2, "avg", 2, ceil_mode=True, exclusive=False)
outs = [
    mean(x, 2, "avg", 2), mean(free, 2, "avg", 2), mean(x, 3, "avg", 3, [0, 1, 1, 1]), mean(x, 2, "avg", 2, "SAME"),
    layers.transpose(mean(layers.transpose(x, [0, 2, 3, 1]), 2, "avg", 2, data_format="NHWC"), [0, 3, 1, 2]),
    volume, layers.pool2d(x, 2, "avg", 2, ceil_mode=True), mean(x, 2, "max", 2), mean(x, 2, "avg", 2, 0, True),
    functional.avg_pool2d(x, 2, 2, ceil_mode=True, exclusive=False),
    functional.avg_pool3d(y, 2, 2, ceil_mode=True, exclusive=False),
    functional.avg_pool2d(x, 2, 2, "SAME", exclusive=False),
    functional.avg_pool2d(x, 3, 2, [1, 0, 0, 1], exclusive=False),
    functional.avg_pool1d(layers.reshape(x, [-1, 5, 5]), 2, 2, "SAME", exclusive=False),
]
feed = {name: np.ones(size, "float32") for name, size in
        {"x": (1, 1, 5, 5), "free": (1, 1, 5, 5), "y": (1, 1, 3, 3, 5)}.items()}
whole, free, uneven, behind, nhwc, deep, exclusive, largest, all_of_it, later, deep_later, *mirrored = (
    value[0, 0] for value in exe.run(feed=feed, fetch_list=outs))
edge = np.array([1, 1, 0.5])
assert np.array_equal(whole, np.outer(edge, edge))
assert all(np.array_equal(value, whole) for value in (free, behind, nhwc))
assert np.allclose(uneven, np.outer([1, 2 / 3], [2 / 3, 1, 0]))
assert np.array_equal(deep, np.multiply.outer([1, 0.5], np.outer([1, 0.5], edge)))
assert all(np.all(value == 1) for value in (exclusive, largest, all_of_it, later, deep_later))
# 2.x counts behind an axis as much padding as there is before it.
assert np.all(mirrored[0] == 1) and np.all(mirrored[2] == 1)
assert np.allclose(mirrored[1], np.outer([2 / 3, 1], [1, 1, 1])[:, :2]), mirrored[1]
""")


def test_steps_ahead_of_rows_in_a_batch(run):
    run(HEAD + """
x = fluid.data("x", [None, None, 2])
ones = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(1.0))
out = layers.row_conv(x, 2, ones)
fluid.optimizer.SGD(1.0).minimize(layers.mean(out))
exe.run(fluid.default_startup_program())
feed = {"x": np.arange(8, dtype="float32").reshape(1, 4, 2)}
value, gradient = exe.run(feed=feed, fetch_list=[out, "w@GRAD"])
assert np.array_equal(value, [[[6, 9], [12, 15], [10, 12], [6, 7]]])
assert np.allclose(gradient, [[1.5, 2], [1.5, 1.875], [1.25, 1.5]])
(short,) = exe.run(feed={"x": np.ones((2, 1, 2), "float32")}, fetch_list=[out])
assert short.shape == (2, 1, 2) and np.allclose(short, [1 - 1.5, 1 - 2])
""")


def test_an_input_may_be_persistable_and_one_replica_decays_by_hand(run):
    """As ERNIE's reading comprehension, and PALM's weight decay over one replica."""
    run(HEAD + """
import os
x = layers.data("x", [2])
x.persistable = True
ones = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(1.0))
loss = layers.mean(layers.fc(x, 1, param_attr=ones, bias_attr=False))
program = fluid.default_main_program()
(pair,) = fluid.optimizer.SGD(0.1).minimize(loss)[1]
before = pair[0] * 1.0
with program._optimized_guard(pair):
    layers.assign(pair[0] - before * 0.5, pair[0])
exe.run(fluid.default_startup_program())
compiled = fluid.CompiledProgram(program).with_data_parallel(loss_name=loss.name)
(value,) = exe.run(compiled, feed=fed("x", (4, 2)), fetch_list=[loss])
assert value.shape == (1,) and np.allclose(value, 0.7)
fluid.io.save_persistables(exe, "kept")
assert "x" not in os.listdir("kept") and "w" in os.listdir("kept")
assert np.allclose(fluid.io.load_program_state("kept")["w"], [[0.5 * (1 - 0.03)], [0.5 * (1 - 0.04)]])
count = fluid.global_scope().var("count").get_tensor()
count.set(np.array([3], "int32"), fluid.CPUPlace())
assert np.array_equal(np.array(count), [3])
reader = layers.py_reader(4, [[-1, 2]], ["float32"])
assert reader.queue.size() == 0
""", CPU_NUM="1")


def test_last_axes_may_be_left_out(run):
    """As PaddleRec's tisas, which declares a table of places and feeds a row. What computes along axes that
    were counted while the program was built is refused."""
    said = run("""
import numpy as np
import pytest
from fleetrun import Error, nn, static

places = static.data("places", [-1, 3, 3], "int64")
rows = static.data("rows", [-1, 4], "float32")
table = nn.Embedding(5, 4)
found = table(places[0])
scores = found.matmul(rows.unsqueeze(-1)).squeeze(-1)
exe = static.Executor()
exe.run(static.default_startup_program())
weights = np.array(static.global_scope().find_var(table.weight.name).get_tensor())
few = {"places": np.array([[4, 1, 3], [0, 0, 2]]), "rows": np.ones((2, 4), "float32")}
all = {"places": np.array([[[4, 1, 3], [0, 2, 1], [3, 3, 3]]]), "rows": few["rows"][:1]}
for _ in range(2):
    assert np.allclose(exe.run(feed=few, fetch_list=[scores])[0], [weights[[4, 1, 3]].sum(1)] * 2)
    assert np.allclose(exe.run(feed=all, fetch_list=[scores])[0], weights[all["places"][0]].sum(2))
with pytest.raises(Error, match="was fed int64 .2, 4."):
    exe.run(feed={**few, "places": np.zeros((2, 4), "int64")}, fetch_list=[scores])
found.mean(1)
with pytest.raises(Error, match="'places' is declared int64 .-1, 3, 3., but was fed int64 .2, 3."):
    exe.run(feed=few, fetch_list=[scores])
""")
    assert said.stderr.count("places is declared [-1, 3, 3] and fed another shape") == 1


def test_an_example_without_a_batch_is_computed_value_by_value(run):
    """As examples of Paddle 1.8 feed one to scale, selu and the elementwise layers."""
    run("""
import numpy as np
import fleetrun.fluid as fluid

layers = fluid.layers
x = layers.data("x", [2, 3])
factor = layers.data("factor", [1], append_batch_size=False)
fetch = [layers.scale(x, factor, bias=1.0), layers.selu(x), layers.elementwise_add(x, x), layers.shape(x)]
fed = np.arange(6, dtype="float32").reshape(2, 3)
exe = fluid.Executor(fluid.CPUPlace())
for value in (fed, fed[None]):
    got = exe.run(feed={"x": value, "factor": np.array([2], "float32")}, fetch_list=fetch)
    assert np.array_equal(got[0], value * 2 + 1) and np.array_equal(got[2], value * 2)
    assert np.allclose(got[1], value * 1.0507) and list(got[3]) == list(value.shape)
""")


def test_what_is_declared_is_no_promise_of_axes_and_types(run):
    """As Paddle's quick start, which feeds a model three axes for two, and examples of layers, which feed
    whole numbers for floats. The numbers are Paddle 1.8.5's."""
    said = run("""
import numpy as np
import pytest
import fleetrun.fluid as fluid
from fleetrun import Error

layers = fluid.layers
x = layers.data("x", [4])
w = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(np.array([[1], [2], [3], [4]], "float32")))
out = layers.fc(x, 1, param_attr=w)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
row = np.array([[[9], [5], [2], [10]]], "float32")
fluid.io.save_inference_model("model", ["x"], [out], exe, export_for_deployment=False)
program, names, fetches = fluid.io.load_inference_model("model", exe, pserver_endpoints=["127.0.0.1:1"])
with open("model/__model__", "rb") as file:
    assert str(fluid.Program.parse_from_string(file.read())) == str(program)
whole = fluid.default_main_program()
assert str(fluid.Program.parse_from_string(whole.desc.serialize_to_string())) == str(whole)
fluid.io.save_inference_model("apart", ["x"], [out], exe, program_only=True)
fluid.io.save_persistables(exe, "apart")
fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(np.zeros((4, 1), "float32"), fluid.CPUPlace())
apart, _, fetched = fluid.io.load_inference_model("apart", exe)
for each, fetch in ((fluid.default_main_program(), [out]), (program, fetches), (apart, fetched)):
    assert exe.run(each, feed={"x": row}, fetch_list=fetch)[0].tolist() == [[65.0]]
wide = layers.scale(x, 2.0)  # which is no product of rows: what was known of x before is known no more
with pytest.raises(Error, match="was fed float32 .1, 4, 1."):
    exe.run(feed={"x": row}, fetch_list=[out, wide])
with pytest.raises(Error, match="was fed float32 .1, 5, 1."):
    exe.run(feed={"x": row[:, [0, 0, 1, 2, 3]]}, fetch_list=[out])

with fluid.program_guard(fluid.Program(), fluid.Program()):
    a, b = layers.data("a", [3]), layers.data("b", [3])
    fetch = [layers.elementwise_min(a, b), layers.elementwise_div(a, b)]
    whole = {"a": np.array([2, 3, 4]), "b": np.array([1, 5, 2])}
    for fed in (whole, {name: value.astype("float32") for name, value in whole.items()}, whole):
        got = exe.run(feed=fed, fetch_list=fetch)
        assert got[0].dtype == fed["a"].dtype and got[0].tolist() == [1, 3, 2]
        assert np.allclose(got[1], [2, 0, 2] if fed is whole else [2, 0.6, 2])
with fluid.program_guard(fluid.Program(), fluid.Program()):
    a = layers.data("a", [2, 3])
    fetch = [layers.mean(a), layers.isfinite(a), layers.sigmoid(a)]
    got = exe.run(feed={"a": np.zeros((2, 3))}, fetch_list=fetch)  # float64
    assert got[0] == [0] and got[1] == [True] and np.array_equal(got[2], np.full((2, 3), 0.5))
    assert got[2].dtype == "float64"
with fluid.program_guard(fluid.Program(), fluid.Program()):
    a = layers.data("a", [4])
    assert np.array_equal(exe.run(feed={"a": np.zeros((2, 4))}, fetch_list=[layers.softmax(a)])[0],
                          np.full((2, 4), 0.25))
with fluid.program_guard(fluid.Program(), fluid.Program()):
    a, b = layers.data("a", [2, 3, 4, 5]), layers.data("b", [3, 4])
    out = layers.elementwise_min(a, b, axis=1)
    some = np.arange(120, dtype="float32").reshape(2, 3, 4, 5)
    fed = {"a": some, "b": np.full((3, 4), 50, "float32")}
    assert np.array_equal(exe.run(feed=fed, fetch_list=[out])[0], np.minimum(some, 50))
    # The axis was counted from the end: of one of the two alone it would be another.
    with pytest.raises(Error, match="'a' is declared"):
        exe.run(feed={"a": some[None], "b": fed["b"]}, fetch_list=[out])
""")
    assert "a is declared float32 and fed int64: the program computes with int64" in said.stderr
    assert "a is declared float32 and fed float64: it is rounded to float32" in said.stderr


def test_variables_are_saved_with_their_own_program(run):
    """As the example of save_vars, which names no program."""
    run(HEAD + """
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    w = layers.create_parameter([2], "float32", name="w", default_initializer=fluid.initializer.Constant(3.0))
exe.run(startup)
fluid.io.save_vars(exe, "kept", vars=[w], filename="all")
fluid.global_scope().var("w").get_tensor().set(np.zeros(2, "float32"), fluid.CPUPlace())
fluid.io.load_vars(exe, "kept", vars=[w], filename="all")
assert np.array(fluid.global_scope().find_var("w").get_tensor()).tolist() == [3, 3]
""")


def test_a_tensor_with_a_name_is_fed_or_assigned(run):
    run("""
import numpy as np
import fleetrun.fluid as fluid
from fleetrun import Error

layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
a, b = layers.create_tensor("int64", name="a"), layers.create_tensor("int64", name="b")
sums = layers.sum([a, b])
for one, other in (([3, 2], [1, 1]), ([[3, 2]], [[1, 5]])):
    got = exe.run(feed={"a": np.array(one), "b": np.array(other)}, fetch_list=[a, b, sums])
    np.testing.assert_array_equal(got[2], np.array(one) + other)
    np.testing.assert_array_equal(got[0], one)
try:
    exe.run(feed={"a": np.array([3])}, fetch_list=[sums])
    raise SystemExit("b has no value")
except Error as error:
    assert "'b' is not fed" in str(error)
for given in (np.full((2, 2), 3, "float32"), np.array([4, 5, 6], "float32")):
    with fluid.program_guard(fluid.Program()):
        t = layers.create_tensor("float32", name="t")
        layers.assign(given, output=t)
        got = exe.run(fluid.default_main_program(), fetch_list=[t * 2 + layers.reduce_sum(t, -1, True), t])
        np.testing.assert_array_equal(got[0], given * 2 + given.sum(-1, keepdims=True))
""")


def test_how_many_topk_keeps_is_fed_as_a_batch_of_one(run):
    """Declared as any input, [-1, 1]: that it is one integer only a run knows."""
    run(HEAD + """
x, k = layers.data("x", [4]), layers.data("k", [1], dtype="int32")
values, places = layers.topk(x, k)
for count in (1, 3):
    got = exe.run(feed={**fed("x", (2, 4)), "k": np.array([[count]], "int32")}, fetch_list=[values, places])
    assert got[1].tolist() == [list(range(3, 3 - count, -1))] * 2 and got[0].shape == (2, count)
with pytest.raises(Error, match=r"'k' is \\[2, 1\\], and one integer is needed"):
    exe.run(feed={**fed("x", (2, 4)), "k": np.array([[1], [2]], "int32")}, fetch_list=[values])
""")
