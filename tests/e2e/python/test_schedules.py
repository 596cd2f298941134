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
