"""What a DistributedStrategy makes of an optimizer (gradient_merge, lamb, lars) in a collective program:
losses of Paddle 2.6.2."""

import json

import pytest

CODE = """
import json
import numpy as np
import paddle
import paddle.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=COLLECTIVE)
x, y = paddle.static.data("x", [None, 3]), paddle.static.data("y", [None, 1])

def attr(name, value):
    return paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Constant(value))

h = paddle.static.nn.fc(x, 4, activation="tanh", weight_attr=attr("a", 0.3), bias_attr=attr("ab", 0.1))
o = paddle.static.nn.fc(h, 1, weight_attr=attr("b", -0.2), bias_attr=attr("bb", 0.05))
loss = paddle.mean(paddle.square(o - y))
s = fleet.DistributedStrategy()
clip = paddle.nn.ClipGradByGlobalNorm(0.5)
rate = paddle.optimizer.lr.StepDecay(0.1, 2, 0.5)
optimizer = paddle.optimizer.OPTIMIZER
STRATEGY
fleet.distributed_optimizer(optimizer, strategy=s).minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
chance, losses = np.random.RandomState(0), []
for _ in range(8):
    v = chance.rand(6, 3).astype("float32")
    losses.append(float(exe.run(feed={"x": v, "y": v.sum(1, keepdims=True)}, fetch_list=[loss])[0]))
    if optimizer._learning_rate is rate: rate.step()
print(json.dumps(losses))
"""

MERGED = "s.gradient_merge = True; s.gradient_merge_configs = {'k_steps': 3, 'avg': %s}"
LAMB = "s.lamb = True; s.lamb_configs = {'lamb_weight_decay': 0.1, 'exclude_from_weight_decay': ['b']}"
LARS = ("s.lars = True; s.lars_configs = {'lars_coeff': 0.05, 'lars_weight_decay': 0.1, 'epsilon': 0.001, "
        "'exclude_from_weight_decay': ['bb']}")
CASES = {
    "merged, mean": ("SGD(0.1)", MERGED % True,
        [4.379817, 4.709841, 3.487483, 0.604679, 1.002760, 0.981149, 1.367950, 0.654237]),
    "merged, sum": ("SGD(0.1)", MERGED % False,
        [4.379817, 4.709841, 3.487483, 0.208669, 0.251729, 0.106457, 0.302656, 0.116656]),
    "merged, Adam": ("Adam(0.1)", MERGED % True,
        [4.379817, 4.709841, 3.487483, 1.351355, 1.907548, 1.978972, 2.904497, 1.658607]),
    "merged, clipped": ("SGD(0.1, grad_clip=clip)", MERGED % True,
        [4.379817, 4.709841, 3.487483, 2.057114, 2.752709, 2.904200, 4.871603, 2.977741]),
    "merged, schedule": ("SGD(rate)", MERGED % True,
        [4.379817, 4.709841, 3.487483, 1.252010, 1.801405, 1.861478, 3.175603, 1.809116]),
    "lamb": ("Adam(0.05, beta1=0.8, epsilon=1e-6, grad_clip=None)", LAMB,
        [4.379817, 3.937188, 2.339728, 1.165967, 1.454315, 1.304033, 2.389464, 1.194630]),
    "lamb, clipped": ("Adam(0.05, beta1=0.8, epsilon=1e-6, grad_clip=clip)", LAMB,
        [4.379817, 3.937193, 2.335694, 1.151762, 1.411921, 1.237584, 2.225648, 1.045302]),
    "lars": ("Momentum(0.5, 0.8)", LARS,
        [4.379817, 0.433715, 3.796542, 3.073777, 0.874298, 3.705776, 2.267241, 1.995090]),
    "lars, clipped": ("Momentum(0.5, 0.8, grad_clip=clip)", LARS,
        [4.379817, 3.990466, 1.907994, 0.431341, 0.476977, 0.240990, 0.066420, 0.635863]),
    "merged, lamb": ("Adam(0.05, beta1=0.8, epsilon=1e-6)", f"{MERGED % True}; {LAMB}",
        [4.379817, 4.709841, 3.487483, 1.784452, 2.432933, 2.553066, 3.975090, 2.362004]),
}


def losses(run, package, optimizer, strategy, collective=True):
    code = CODE.replace("OPTIMIZER", optimizer).replace("STRATEGY", strategy)
    done = run(code.replace("COLLECTIVE", str(collective)), PYTHONPATH=f"{package}/_compat")
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("name", CASES)
def test_losses_are_paddles(run, package, name):
    optimizer, strategy, expected = CASES[name]
    assert losses(run, package, optimizer, strategy)[0] == pytest.approx(expected, rel=0, abs=1e-5)


def test_what_the_strategy_drops_is_said(run, package):
    lamb = CASES["lamb"]
    made, told = losses(run, package, lamb[0].replace("grad_clip=None", "weight_decay=0.02"), lamb[1])
    assert made == pytest.approx(lamb[2], rel=0, abs=1e-5)
    assert "DistributedStrategy.lamb: weight_decay of Adam has no effect, as in Paddle" in told


@pytest.mark.parametrize("strategy", ["s.lamb = True", "s.lars = True", MERGED % True])
def test_what_has_no_effect_is_said(run, package, strategy):
    plain, _ = losses(run, package, "SGD(0.1)", "", collective=False)
    made, told = losses(run, package, "SGD(0.1)", strategy, collective=False)
    assert made == plain and "no effect without fleet.init(is_collective=True)" in told
    if "gradient_merge" not in strategy:
        made, told = losses(run, package, "SGD(0.1)", strategy)
        assert made == plain and "no effect with SGD: it takes the place of" in told
