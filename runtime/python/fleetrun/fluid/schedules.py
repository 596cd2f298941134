"""fluid.layers.*_decay: schedules of Paddle 1.x, which count the steps of the program by themselves.

Each is a paddle.optimizer.lr schedule that Executor.run advances after every step, as a count in the program
did there; decay_steps and staircase are its unit. Formulas are those of Paddle 1.8.
"""

from __future__ import annotations

import math

from fleetrun import _lazy
from fleetrun._types import Callable, Sequence, Variable
from fleetrun.optimizer.lr import LRScheduler

__all__ = [
    "cosine_decay", "decay_step_counter", "exponential_decay", "inverse_time_decay", "linear_lr_warmup",
    "natural_exp_decay", "noam_decay", "piecewise_decay", "polynomial_decay", "StepSchedule",
]  # fmt: skip


class StepSchedule(LRScheduler):
    """rate(step), `step` counting the runs of the program from 0."""

    by_step = True

    def __init__(self, rate: Callable[[int], float]) -> None:
        self.rate = rate
        super().__init__(rate(0))

    def get_lr(self) -> float:
        return self.rate(self.last_epoch)


def _units(step: int, decay_steps: float, staircase: bool) -> float:
    return math.floor(step / decay_steps) if staircase else step / decay_steps


def exponential_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> StepSchedule:
    """learning_rate * decay_rate ^ (step / decay_steps)."""
    return StepSchedule(lambda step: learning_rate * decay_rate ** _units(step, decay_steps, staircase))


def natural_exp_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> StepSchedule:
    """learning_rate * e ^ (-decay_rate * step / decay_steps)."""
    return StepSchedule(
        lambda step: learning_rate * math.exp(-decay_rate * _units(step, decay_steps, staircase))
    )


def inverse_time_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> StepSchedule:
    """learning_rate / (1 + decay_rate * step / decay_steps)."""
    return StepSchedule(lambda step: learning_rate / (1 + decay_rate * _units(step, decay_steps, staircase)))


def polynomial_decay(
    learning_rate: float,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> StepSchedule:
    """From learning_rate to end_learning_rate as (1 - step / decay_steps) ^ power."""

    def rate(step: int) -> float:
        steps = decay_steps * (max(math.ceil(step / decay_steps), 1) if cycle else 1)
        return (learning_rate - end_learning_rate) * (
            1 - min(step, steps) / steps
        ) ** power + end_learning_rate

    return StepSchedule(rate)


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> StepSchedule:
    """values[k] while the step is below boundaries[k], the last value after all of them."""
    return StepSchedule(lambda step: values[sum(step >= boundary for boundary in boundaries)])


def noam_decay(d_model: float, warmup_steps: float, learning_rate: float = 1.0) -> StepSchedule:
    """learning_rate * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), steps counting from 1."""
    return StepSchedule(
        lambda step: learning_rate * d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup_steps**-1.5)
    )


def cosine_decay(learning_rate: float, step_each_epoch: int, epochs: int) -> StepSchedule:
    """learning_rate / 2 * (cos(epoch * pi / epochs) + 1)."""
    return StepSchedule(
        lambda step: learning_rate * 0.5 * (math.cos(step // step_each_epoch * math.pi / epochs) + 1)
    )


def linear_lr_warmup(
    learning_rate: float | LRScheduler, warmup_steps: int, start_lr: float, end_lr: float
) -> StepSchedule:
    """From start_lr to end_lr in warmup_steps, then learning_rate: a number or another of these schedules."""

    def rate(step: int) -> float:
        if step < warmup_steps:
            return start_lr + (end_lr - start_lr) * (step / warmup_steps)
        if isinstance(learning_rate, StepSchedule):
            return learning_rate.rate(step)
        return float(learning_rate() if isinstance(learning_rate, LRScheduler) else learning_rate)

    return StepSchedule(rate)


__getattr__, __dir__ = _lazy.attach(__name__)


def decay_step_counter(begin: int = 0) -> Variable:
    """How many runs the program had before this one, and `begin`, counted in the program. Shape: [1]
    float32."""
    from fleetrun import tensor
    from fleetrun.fluid._math import autoincreased_step_counter

    return tensor.cast(autoincreased_step_counter("@LR_DECAY_COUNTER@", begin, 1), "float32")


_decay_step_counter = decay_step_counter
