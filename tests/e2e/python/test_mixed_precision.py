"""paddle.static.amp: what a step with an infinite gradient does, by each optimizer and where strategies are
combined with it; values of Paddle 2.6.2."""

import json

import pytest

NET = """
import json
import numpy as np
import paddle
import paddle.distributed.fleet as fleet
from paddle.static import amp

paddle.enable_static()
x, y = paddle.static.data("x", [None, 4]), paddle.static.data("y", [None, 1])

def attr(name, value):
    return paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Constant(value))

out = paddle.static.nn.fc(x, 1, weight_attr=attr("w", 0.1), bias_attr=attr("b", 0.0))
loss = paddle.mean(paddle.square(out - y))
main, startup = paddle.static.default_main_program(), paddle.static.default_startup_program()

def train(program, scaling, bad=(3, 4, 6), steps=10):
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(startup)
    chance, scope, told = np.random.RandomState(0), paddle.static.global_scope(), []
    for i in range(steps):
        feed = {"x": chance.rand(8, 4).astype("float32"), "y": chance.rand(8, 1).astype("float32")}
        if i in bad:
            feed["x"][0, 0] = np.inf if i % 2 else np.nan
        exe.run(program, feed=feed, fetch_list=[loss])
        told.append([float(np.array(scope.find_var(n).get_tensor()).ravel()[0]) for n in ("w", scaling.name)])
    return told
"""

DECORATED = NET + """
optimizer = amp.decorate(paddle.optimizer.OPTIMIZER, init_loss_scaling=8.0, HOW)
optimizer.minimize(loss)
print(json.dumps(train(PROGRAM, optimizer.get_loss_scaling())))
"""
DYNAMIC = "incr_every_n_steps=2, decr_every_n_nan_or_inf=2, incr_ratio=2.0, decr_ratio=0.5"
SCALES = [8, 16, 16, 16, 8, 8, 8, 8, 16, 16]
CASES = {
    "SGD(0.1)":
        [0.12333, 0.12783, 0.15160, 0.15160, 0.15160, 0.14408, 0.14408, 0.15466, 0.16237, 0.13811],
    "SGD(0.1, weight_decay=paddle.regularizer.L2Decay(0.1))":
        [0.12233, 0.12578, 0.14869, 0.14720, 0.14573, 0.13832, 0.13694, 0.14780, 0.15497, 0.13181],
    "Momentum(0.1, 0.9)":
        [0.12333, 0.14882, 0.18545, 0.21842, 0.24809, 0.21183, 0.17919, 0.12750, 0.08155, 0.04124],
    "Adam(0.1)":
        [0.20000, 0.22698, 0.24778, 0.24778, 0.24778, 0.21015, 0.21015, 0.16314, 0.12132, 0.06581],
    "AdamW(0.1, weight_decay=0.1)":
        [0.19900, 0.22459, 0.24476, 0.24476, 0.24476, 0.20589, 0.20589, 0.15855, 0.11761, 0.06385],
    "Lamb(0.1)":
        [0.11000, 0.12043, 0.13247, 0.13247, 0.13247, 0.14734, 0.14734, 0.16658, 0.18685, 0.20373],
}


def trained(run, package, code, **variables):
    return json.loads(run(code, PYTHONPATH=f"{package}/_compat", **variables).stdout)


def decorated(run, package, optimizer, how=DYNAMIC, program="main", **variables):
    code = DECORATED.replace("OPTIMIZER", optimizer).replace("HOW", how).replace("PROGRAM", program)
    return trained(run, package, code, **variables)


def weights(told):
    return [weight for weight, _ in told]


@pytest.mark.parametrize("optimizer", CASES)
def test_a_step_with_an_infinite_gradient(run, package, optimizer):
    told = decorated(run, package, optimizer)
    assert weights(told) == pytest.approx(CASES[optimizer], abs=3e-5)
    assert [scale for _, scale in told] == SCALES


def test_with_a_scale_that_stays_adam_leaves_the_step_out_and_sgd_does_not(run, package):
    adam = decorated(run, package, "Adam(0.1)", "use_dynamic_loss_scaling=False")
    assert weights(adam) == pytest.approx(CASES["Adam(0.1)"], abs=3e-5)
    sgd = decorated(run, package, "SGD(0.1)", "use_dynamic_loss_scaling=False")
    assert weights(sgd)[:3] == pytest.approx(CASES["SGD(0.1)"][:3], abs=3e-5)
    assert not any(abs(weight) < 1 for weight in weights(sgd)[3:])


def test_the_scale_of_bfloat16_is_1(run, package):
    told = decorated(run, package, "SGD(0.1)", "use_bf16=True")
    assert {scale for _, scale in told} == {1.0}


def test_replicas_leave_the_step_out_together(run, package):
    program = "paddle.static.CompiledProgram(main).with_data_parallel(loss_name=loss.name)"
    told = decorated(run, package, "Adam(0.1)", program=program, CPU_NUM="2")
    assert weights(told) == pytest.approx(CASES["Adam(0.1)"], abs=3e-5)
    assert [scale for _, scale in told] == SCALES


FLEET = NET + """
fleet.init(is_collective=True)
s = fleet.DistributedStrategy()
s.amp = True
s.amp_configs = dict(init_loss_scaling=8.0, HOW)
STRATEGY
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), s)
optimizer.minimize(loss)
optimizer.amp_init(paddle.CPUPlace())
print(json.dumps(train(main, optimizer.get_loss_scaling())))
"""


@pytest.mark.parametrize("strategy, optimizer", [("", "Adam(0.1)"), ("s.lamb = True", "Lamb(0.1)")])
def test_a_strategys_amp_is_that_of_decorate(run, package, strategy, optimizer):
    told = trained(run, package, FLEET.replace("HOW", DYNAMIC).replace("STRATEGY", strategy))
    assert weights(told) == pytest.approx(CASES[optimizer], abs=3e-5)
    assert [scale for _, scale in told] == SCALES


def test_merged_gradients_are_left_out_together(run, package):
    """One of the two batches of a step is bad: neither counts, and the scale counts steps."""
    how = DYNAMIC.replace("inf=2", "inf=1")
    merged = "s.gradient_merge = True; s.gradient_merge_configs = {'k_steps': 2, 'avg': True}"
    told = trained(run, package, FLEET.replace("HOW", how).replace("STRATEGY", merged))
    first, second, third, fourth, fifth = weights(told)[1::2]
    assert weights(told)[2::2] == weights(told)[1:-1:2]
    assert first == pytest.approx(0.2, abs=1e-5) and first == second == third == fourth != fifth
    assert [scale for _, scale in told][1::2] == [8, 4, 2, 1, 1]
