"""Which parameters an optimizer moves, and what no gradient flows through. Numbers: Paddle 2.6.2's."""

import pytest

HEAD = """
import numpy as np
import fleetrun as paddle
paddle.enable_static()
first = paddle.nn.initializer.Constant
x = paddle.static.data("x", [None, 2])
w = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr("w", initializer=first(1.0)))
v = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr("v", initializer=first(2.0)))
batch = {"x": np.array([[1.0, 2.0], [3.0, -1.0]], "float32")}
total = paddle.sum(v)
loss = paddle.mean(paddle.square(paddle.matmul(x, paddle.unsqueeze(w, 1)) * total))
main, scope = paddle.static.default_main_program(), paddle.static.global_scope()
def moved(fetch=()):
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    fetched = exe.run(main, feed=batch, fetch_list=list(fetch))
    return [np.array(scope.find_var(name).get_tensor()).tolist() for name in "wv"], fetched
def expect(wanted, fetch=()):
    found, fetched = moved(fetch)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    return fetched
"""
BOTH, W, V = [[-0.44, 0.36], [1.48, 1.48]], [[-0.44, 0.36], [2.0, 2.0]], [[1.0, 1.0], [1.48, 1.48]]


@pytest.mark.parametrize("code, wanted", [
    ("paddle.optimizer.SGD(0.01).minimize(loss)", BOTH),
    ("paddle.optimizer.SGD(0.01, parameters=[w]).minimize(loss)", W),
    ("paddle.optimizer.SGD(0.01, parameters=main.all_parameters()).minimize(loss)", BOTH),
    ("paddle.optimizer.SGD(0.01, parameters=[w]).minimize(loss, parameters=['v'])", V),
    ("paddle.fluid.optimizer.SGD(0.01, parameter_list=['v']).minimize(loss)", V),
    ("paddle.optimizer.SGD(0.01).minimize(loss, no_grad_set={'w'})", V),
    ("paddle.optimizer.SGD(0.01).minimize(loss, no_grad_set={total})", W),
    ("sgd = paddle.optimizer.SGD(0.01, parameters=[w]); sgd.apply_gradients(sgd.backward(loss))", W),
    ("sgd = paddle.optimizer.SGD(0.01); sgd.minimize(loss, parameters=[w]); "
     "paddle.optimizer.SGD(0.01).minimize(paddle.sum(v), parameters=[v])", [[-0.44, 0.36], [1.99, 1.99]]),
])
def test_an_optimizer_moves_the_parameters_that_it_is_given(run, code, wanted):
    run(HEAD + f"{code}\nexpect({wanted})\nassert w.trainable and v.trainable and not total.stop_gradient")


@pytest.mark.parametrize("collective", ["False", "True"])
def test_fleet_moves_the_parameters_that_it_is_given(run, collective):
    run(HEAD + f"""
import fleetrun.distributed.fleet as fleet
fleet.init(is_collective={collective})
fleet.distributed_optimizer(paddle.optimizer.SGD(0.01)).minimize(loss, parameter_list=["w"])
expect({W})
""")


def test_what_stays_has_no_table_on_servers(run):
    run(HEAD + """
with paddle.optimizer.Adam(0.01, parameters=[w]).moving(main, None, None):
    paddle.optimizer.Adam(0.01).distribute(loss, None, "async", True)
assert [entry.parameter for entry in main.training.plan.entries()] == ["w"]
""")


def test_gradients_are_of_what_is_asked_for(run):
    run(HEAD + """
x.stop_gradient = False
pairs = paddle.static.append_backward(loss, no_grad_set={"v"})
assert [parameter.name for parameter, _ in pairs] == ["w"]
of_x = paddle.static.default_main_program().var("x@GRAD")
fetched = expect([[1.0, 1.0], [2.0, 2.0]], [pairs[0][1], of_x])
np.testing.assert_allclose(fetched[0], [144.0, 64.0], rtol=1e-6)
np.testing.assert_allclose(fetched[1], [[48.0, 48.0], [32.0, 32.0]], rtol=1e-6)
""")


def test_where_nothing_is_left_there_are_no_gradients(run):
    run(HEAD + """
with paddle.static.program_guard(paddle.static.Program()):
    fed = paddle.static.data("fed", [None, 2])
    assert paddle.static.append_backward(paddle.mean(fed)) == []
assert paddle.static.append_backward(loss, no_grad_set={p.name for p in main.all_parameters()}) == []
paddle.set_flags({"FLAGS_check_nan_inf": True, "FLAGS_sort_sum_gradient": 1.5})
assert paddle.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
assert paddle.get_flags(["FLAGS_sort_sum_gradient"]) == {"FLAGS_sort_sum_gradient": 1.5}
""")


@pytest.mark.parametrize("call, kind", [
    ("set_flags({'check_nan_inf': True})", "ValueError"),
    ("set_flags({'FLAGS_free_idle_chunk': False})", "ValueError"),
    ("get_flags(['FLAGS_check_nan_inf', 'check_nan_inf'])", "ValueError"),
    ("set_flags(['FLAGS_check_nan_inf'])", "TypeError"),
    ("get_flags(1)", "TypeError"),
])  # fmt: skip
def test_what_is_no_flag_is_refused_as_in_paddle(run, call, kind):
    run(f"""
import fleetrun as paddle
try:
    paddle.{call}
except {kind}:
    pass
else:
    raise AssertionError("taken")
""")


@pytest.mark.parametrize("code, told", [
    ("paddle.optimizer.SGD(0.01, parameters=[{'params': [w], 'learning_rate': 0.1}])",
     "paddle.optimizer.SGD(parameters=[{'params', 'learning_rate'}, …]): a program has no groups of"),
    ("paddle.optimizer.SGD(0.01, parameters=['u']).minimize(loss)",
     "paddle.optimizer.SGD: the program has no variable u"),
    ("paddle.optimizer.SGD(0.01).minimize(loss, no_grad_set={'w', 'v'})",
     "paddle.optimizer.SGD: none of the program's trainable parameters is left to move"),
    ("g = paddle.static.gradients(paddle.nn.functional.mish(loss), [w])[0]\n"
     "    paddle.optimizer.SGD(0.01).minimize(loss + paddle.sum(g * g))",
     ", a gradient of mish_grad, which has none of its own here"),
])
def test_what_cannot_be_moved_is_refused(run, code, told):
    done = run(HEAD + f"""
try:
    {code}
except paddle.Error as error:
    print(error)
""")
    assert told in done.stdout


def test_a_gradient_that_counts_as_a_constant_may_be_computed_with(run):
    run(HEAD + """
g = paddle.static.gradients(loss, [w])[0]
g.stop_gradient = True
paddle.optimizer.SGD(0.01).minimize(loss + paddle.sum(g * g))
expect([[-0.44, 0.36], [1.48, 1.48]])
""")


def test_reduce_on_plateau_takes_what_was_fetched(run):
    said = run(HEAD + """
schedule = paddle.optimizer.lr.ReduceOnPlateau(0.5, factor=0.5, patience=1)
schedule.verbose = True
for metric in (1.0, 1.0, 1.0, 0.5, 0.5, 0.5):
    schedule.step(metric)
schedule = paddle.optimizer.lr.ReduceOnPlateau(0.5, factor=0.5, patience=0)
for metric in (np.array([1.0], "float32"), np.float32(1.0), np.array(1.0), 1.0):
    schedule.step(metric)
assert schedule() == 0.0625, schedule()
try:
    schedule.step(np.zeros(2))
except paddle.Error as error:
    assert "the metric is 2 values" in str(error)
else:
    raise AssertionError("two metrics")
""").stdout
    assert said.splitlines() == ["Epoch 3: ReduceOnPlateau set learning rate to 0.25.",
                                 "Epoch 6: ReduceOnPlateau set learning rate to 0.125."]


def test_a_parameter_with_stop_gradient_stays(run):
    run("""
import numpy as np
import fleetrun.fluid as fluid

x = fluid.data("x", [None, 3])
still = fluid.layers.create_parameter([3], "float32", name="still", is_bias=True)
still.stop_gradient = True  # as PGL's gat() has it
again = fluid.layers.create_parameter([3], "float32", name="again", attr=fluid.ParamAttr(trainable=False))
again.trainable = True
loss = fluid.layers.mean(fluid.layers.square(x * again + still - 1.0))
_, moved = fluid.optimizer.SGD(0.1).minimize(loss)
assert [parameter.name for parameter, _ in moved] == ["again"] and still.trainable and again.trainable
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
for _ in range(2):
    (value,) = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=["still"])
assert not value.any(), value
""")
