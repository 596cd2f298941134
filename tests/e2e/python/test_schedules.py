"""Schedules of the learning rate that find a rate from the one before it, as Paddle 2.6.2 does."""

SCHEDULES = """
from paddle.optimizer import lr

def rates(schedule, count):
    found = []
    for _ in range(count):
        found.append(round(schedule.last_lr, 6))
        schedule.step()
    return found

first = lr.CosineAnnealingWarmRestarts(0.5, 3, 2)
print(rates(first, 5))
again = lr.CosineAnnealingWarmRestarts(0.5, 3, 2)
again.set_state_dict(first.state_dict())
print(rates(again, 8))
linear = lr.LinearLR(0.5, 4)
rates(linear, 3)
linear.step(3)
print(round(linear.last_lr, 6), end=" ")
linear.step(1)
print(rates(linear, 6))
print(rates(lr.CosineAnnealingDecay(0.5, 5, last_epoch=3), 6))
print(rates(lr.LinearLR(0.5, 4, last_epoch=3), 3))
print(rates(lr.CosineAnnealingDecay(0.5, 4), 10))
"""

# What Paddle 2.6.2 prints.
RATES = [
    "[0.5, 0.375, 0.125, 0.5, 0.466506]",
    "[0.375, 0.375, 0.125, 0.5, 0.466506, 0.375, 0.25, 0.125]",
    "0.520833 [0.78125, 1.041667, 1.302083, 1.5625, 1.5625, 1.5625]",
    "[0.138197, 0.0, 0.047746, 0.172746, 0.327254, 0.452254]",
    "[0.6, 0.6, 0.6]",
    "[0.5, 0.426777, 0.25, 0.073223, 0.0, 0.073223, 0.25, 0.426777, 0.5, 0.426777]",
]


def test_schedules_go_on_as_paddle_2_6_2_does(run, package):
    assert run(SCHEDULES, PYTHONPATH=package + "/_compat").stdout.splitlines() == RATES


def test_a_copy_of_a_trained_program_trains(run):
    """With the schedule's rate, as in Paddle 2.6.2; one for test does not train."""
    run("""
import numpy as np
import fleetrun as paddle

paddle.enable_static()
x = paddle.static.data("x", [None, 1])
w = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(1.0))
loss = paddle.mean(paddle.static.nn.fc(x, 1, weight_attr=w, bias_attr=False))
rate = paddle.optimizer.lr.StepDecay(0.1, step_size=1, gamma=0.5)
paddle.optimizer.SGD(rate).minimize(loss)
main = paddle.static.default_main_program()
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
feed, seen = {"x": np.ones((2, 1), "float32")}, []
for program in (main.clone(), main, main.clone().clone(), main.clone(for_test=True)):
    exe.run(program, feed=feed, fetch_list=[loss])
    rate.step()
    seen.append(np.array(paddle.static.global_scope().find_var("w").get_tensor()).item())
assert np.allclose(seen, [0.9, 0.85, 0.825, 0.825]), seen
""")
