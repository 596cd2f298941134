"""LayerHelper: layers and metrics that scripts of Paddle 1.x define of their own."""

import inspect
import json

import pytest

from fleetrun.fluid._appended_calls import CALLS

COUNTING = """
import json
import numpy
import fleetrun as paddle
from fleetrun import fluid
from fleetrun.fluid.layer_helper import LayerHelper
paddle.enable_static()
x = fluid.data("x", [None, 3], "float32")
helper = LayerHelper("counting", input=x, name="mine")
"""


def test_a_metric_counts_in_variables_of_its_own(run):
    done = run(COUNTING + """
seen, is_new = helper.create_or_get_global_variable(name="seen", persistable=True, dtype="float32", shape=[1])
assert is_new and not helper.create_or_get_global_variable(name="seen", shape=[1])[1]
helper.set_variable_initializer(seen, fluid.initializer.Constant(value=5.0, force_cpu=True))
batch = fluid.layers.reduce_sum(fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 1.0))
helper.append_op(type="elementwise_add", inputs={"X": [seen], "Y": [batch]}, outputs={"Out": [seen]})
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
print([executor.run(feed={"x": numpy.ones((n, 3), "float32")}, fetch_list=[seen])[0].tolist() for n in (2, 3)])
""")
    assert json.loads(done.stdout) == [[7.0], [10.0]]


def test_a_layer_appends_operators_by_their_types(run):
    done = run(COUNTING + """
product = helper.create_variable_for_type_inference(dtype="float32")
weight = helper.create_parameter(fluid.ParamAttr(initializer=fluid.initializer.Constant(2.0)), [3, 2])
helper.append_op(type="mul", inputs={"X": x, "Y": weight}, outputs={"Out": product},
                 attrs={"x_num_col_dims": 1})
out = helper.append_activation(helper.append_bias_op(product))
loss = helper.create_variable_for_type_inference("float32")
helper.append_op(type="reduce_mean", inputs={"X": [out]}, outputs={"Out": [loss]}, attrs={"reduce_all": True})
fluid.optimizer.SGD(1.0).minimize(loss)
executor = fluid.Executor()
executor.run(fluid.default_startup_program())
feed = {"x": numpy.array([[1.0, 2.0, 3.0]], "float32")}
print([executor.run(feed=feed, fetch_list=[loss])[0].ravel().tolist() for _ in range(2)])
print([parameter.name for parameter in fluid.default_main_program().all_parameters()])
assert helper.get_parameter("mine.w_0").shape == (3, 2) or list(helper.get_parameter("mine.w_0").shape) == [3, 2]
""")
    losses, names = done.stdout.splitlines()
    # The slope of the loss by a weight is x / 2, and by a bias 1 / 2.
    assert json.loads(losses) == [[12.0], [12.0 - 0.5 * (1 + 4 + 9) - 0.5]]
    assert names == "['mine.w_0', 'mine.b_0']"


def test_operators_of_several_outputs_slots_and_attributes_are_appended_by_their_types(run):
    """Values of Paddle 1.8.5 for the same calls."""
    run(COUNTING + """
def appended(type, inputs, outputs, attrs=None, dtype="float32"):
    made = {slot: [helper.create_variable_for_type_inference(dtype) for _ in range(number)]
            for slot, number in outputs.items()}
    helper.append_op(type=type, inputs=inputs, outputs=made, attrs=attrs)
    return [one for slot in made.values() for one in slot]

label = fluid.data("label", [None, 1], "int64")
role = {"op_role": 0, "use_mkldnn": False}
found = [
    *appended("top_k", {"X": [x]}, {"Out": 1, "Indices": 1}, {"k": 2, **role}),
    *appended("split", {"X": [x]}, {"Out": 3}, {"axis": 1, "num": 3, "sections": []}),
    *appended("split", {"X": [x]}, {"Out": 2}, {"axis": 1, "num": 0, "sections": [1, 2]}),
    *appended("softmax_with_cross_entropy", {"Logits": x, "Label": label}, {"Softmax": 1, "Loss": 1}),
    *appended("dropout", {"X": x}, {"Out": 1, "Mask": 1}, {"dropout_prob": 0.5, "is_test": True}),
    *appended("slice", {"Input": x}, {"Out": 1}, {"axes": [1], "starts": [1], "ends": [3], "decrease_axis": []}),
    *appended("leaky_relu", {"X": x}, {"Out": 1}, {"alpha": 0.5}),
    *appended("fill_constant_batch_size_like", {"Input": x}, {"Out": 1},
              {"shape": [-1, 2], "value": 7.0, "dtype": fluid.core.VarDesc.VarType.FP32}),
    *appended("sgd", {"Param": x, "Grad": x, "LearningRate": fluid.layers.fill_constant([1], "float32", 0.5)},
              {"ParamOut": 1}),
]
values = fluid.Executor().run(feed={"x": numpy.array([[1.0, -2.0, 3.0]], "float32"), "label": numpy.array([[2]])},
                              fetch_list=[one for one in found if one is not found[10]])
wanted = [[[3, 1]], [[2, 0]], [[1]], [[-2]], [[3]], [[1]], [[-2, 3]], [[0.1184998, 0.0058998, 0.8756005]],
          [[0.1328454]], [[0.5, -1, 1.5]], [[-2, 3]], [[1, -1, 3]], [[7, 7]], [[0.5, -1, 1.5]]]
assert len(values) == len(wanted)
for value, expected in zip(values, wanted):
    numpy.testing.assert_allclose(value, expected, rtol=1e-5)
""")


def test_the_calls_of_operators_have_the_arguments_of_their_lines():
    for name, call in CALLS.items():
        known = inspect.signature(call.function).parameters
        assert {*call.slots.values(), *call.attributes.values()} <= known.keys(), name


@pytest.mark.parametrize("call, told", [
    ("helper.append_op(type='warpctc', inputs={'X': [x]}, outputs={'Out': [x]})",
     "append_op(type='warpctc'): there is no such operator here to append by its type"),
    ("helper.append_op(type='softmax', inputs={'Z': [x]}, outputs={'Out': [x]})",
     "operator softmax has nothing in its slot X"),
    ("helper.append_op(type='reverse', inputs={'X': [x]}, outputs={'Out': [x]}, attrs={'depth': 2})",
     "append_op(type='reverse', attrs={'depth': 2}) is not supported"),
    ("helper.append_op(type='top_k', inputs={'X': [x]}, outputs={'Out': [x, x]}, attrs={'k': 2})",
     "outputs={'Out': 2 variables}): it makes 1 of this slot"),
    ("helper.append_op(type='tanh', inputs={'X': [x]})", "append_op(type='tanh') of 0 outputs"),
    ("helper.get_parameter('w')", "no Parameter name w found"),
    ("helper.is_instance('input', int)", "counting: input should be"),
])
def test_what_is_not_there_is_named(run, call, told):
    assert told in run(COUNTING + call, expect=1).stderr


def test_activations_have_their_attributes(run):
    done = run(COUNTING + """
made = {type: helper.create_variable_for_type_inference("float32") for type in ("stanh", "selu")}
for type, attrs in (("stanh", {"scale_a": 0.5, "scale_b": 2.0}), ("selu", {"scale": 2.0, "alpha": 3.0})):
    helper.append_op(type=type, inputs={"X": [x]}, outputs={"Out": [made[type]]}, attrs=attrs)
given = numpy.array([[-1.0, 0.0, 2.0]], "float32")
stanh, selu = fluid.Executor().run(feed={"x": given}, fetch_list=list(made.values()))
numpy.testing.assert_allclose(stanh, 2.0 * numpy.tanh(0.5 * given), rtol=1e-6)
numpy.testing.assert_allclose(selu, 2.0 * numpy.where(given > 0, given, 3.0 * numpy.expm1(given)), rtol=1e-6)
print("ok")
""")
    assert done.stdout == "ok\n"


def test_a_batch_keeps_the_unknown_sizes_that_it_has(run):
    done = run(COUNTING + """
lists = fluid.data("lists", [None, None], "int64", lod_level=1)
loader = fluid.io.DataLoader.from_generator(feed_list=[lists], capacity=2, iterable=True)
rows = [numpy.array([[1, 2], [3, 4]]), numpy.array([[5, 6]])]
loader.set_sample_list_generator(lambda: iter([[(row,) for row in rows]]), fluid.CPUPlace())
for feed in loader():
    fed = feed[0] if isinstance(feed, list) else feed
    print(numpy.asarray(fed["lists"]).tolist(), fed["lists"].recursive_sequence_lengths())
""")
    assert done.stdout == "[[1, 2], [3, 4], [5, 6]] [[2, 1]]\n"
