"""LayerHelper: layers and metrics that scripts of Paddle 1.x define of their own."""

import json

import pytest

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


@pytest.mark.parametrize("call, told", [
    ("helper.append_op(type='warpctc', inputs={'X': [x]}, outputs={'Out': [x]})",
     "append_op(type='warpctc'): there is no such operator here to append by its type"),
    ("helper.append_op(type='tanh', inputs={'X': [x]})", "append_op(type='tanh') of 0 outputs"),
    ("helper.get_parameter('w')", "no Parameter name w found"),
    ("helper.is_instance('input', int)", "counting: input should be"),
])
def test_what_is_not_there_is_named(run, call, told):
    assert told in run(COUNTING + call, expect=1).stderr


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
