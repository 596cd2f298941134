"""fluid.layers.*_decay: schedules of Paddle 1.x, which count the steps of the program by themselves.

Each is a paddle.optimizer.lr schedule that Executor.run advances after every step, as a count in the program
did there; decay_steps and staircase are its unit. Where a script takes one for the variable that it is in
Paddle, the program computes it. Formulas are those of Paddle 1.8.
"""

from __future__ import annotations

import math

import numpy

from fleetrun import _lazy, framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Sequence, Variable
from fleetrun.optimizer.lr import LRScheduler
from fleetrun.static._runs import RUNS

__all__ = [
    "cosine_decay", "decay_step_counter", "exponential_decay", "inverse_time_decay", "linear_lr_warmup",
    "natural_exp_decay", "noam_decay", "piecewise_decay", "polynomial_decay", "StepSchedule",
]  # fmt: skip


_COUNTER = "@LR_DECAY_COUNTER@"


class StepSchedule(LRScheduler, framework.Variable):
    """rate(step), `step` counting the runs of the program from 0; computed(step) is the same of a variable.

    As a variable it is the one of the optimizer that it was given to, else what the program computes from
    then on.
    """

    by_step = True

    def __init__(
        self, rate: Callable[[int], float], computed: Callable[[Variable], Variable], begin: int = 0
    ) -> None:
        self.rate = rate
        self._computed, self._begin = computed, begin
        self._variable: Any = None
        super().__init__(rate(0))

    def get_lr(self) -> float:
        return self.rate(self.last_epoch)

    def use(self, variable: Variable) -> None:
        """Lets it be this variable, which an optimizer gives its value, unless it is one already."""
        if self._variable is None:
            self._variable = variable

    def _as_variable(self):
        if self._variable is None:
            main, scope = framework.default_main_program(), framework.global_scope()
            if RUNS.of(main).runner is not None:
                raise Error(
                    "config",
                    "fluid.layers: a schedule that no optimizer has was asked for its variable after a run, "
                    "and has not counted those before",
                    "fetch it from the first run on, or give it to an optimizer",
                )
            with framework.redirected_as(None):
                computed = self._computed(decay_step_counter(self._begin))
                self._variable = tensor.reshape(computed, [1])
                self._variable.stop_gradient = True
            # The start-up program has mostly been run by now.
            if not scope.native.has(_COUNTER):
                scope.native.set_value(_COUNTER, numpy.array([self._begin - 1], dtype="int64"))
        return self._variable

    @property
    def name(self) -> str:  # type: ignore[override]
        """The variable's name."""
        return str(self._as_variable().name)

    @property
    def program(self) -> Any:
        """The program that has the variable."""
        return self._as_variable().program


def _units(step: int, decay_steps: float, staircase: bool) -> float:
    return math.floor(step / decay_steps) if staircase else step / decay_steps


def _counted(step: Variable, decay_steps: float, staircase: bool) -> Variable:
    units = step / float(decay_steps)
    return tensor.floor(units) if staircase else units


def _constant(value: float) -> Variable:
    return tensor.full([1], value, "float32")


def exponential_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> StepSchedule:
    """learning_rate * decay_rate ^ (step / decay_steps)."""
    return StepSchedule(
        lambda step: learning_rate * decay_rate ** _units(step, decay_steps, staircase),
        lambda step: (
            tensor.pow(_constant(decay_rate), _counted(step, decay_steps, staircase)) * learning_rate
        ),
    )


def natural_exp_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> StepSchedule:
    """learning_rate * e ^ (-decay_rate * step / decay_steps)."""
    return StepSchedule(
        lambda step: learning_rate * math.exp(-decay_rate * _units(step, decay_steps, staircase)),
        lambda step: tensor.exp(_counted(step, decay_steps, staircase) * -decay_rate) * learning_rate,
    )


def inverse_time_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> StepSchedule:
    """learning_rate / (1 + decay_rate * step / decay_steps)."""
    return StepSchedule(
        lambda step: learning_rate / (1 + decay_rate * _units(step, decay_steps, staircase)),
        lambda step: _constant(learning_rate) / (_counted(step, decay_steps, staircase) * decay_rate + 1.0),
    )


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

    def computed(step: Variable) -> Variable:
        steps = _constant(decay_steps)
        if cycle:
            steps = tensor.maximum(tensor.ceil(step / steps), _constant(1.0)) * steps
        left = _constant(1.0) - tensor.minimum(step, steps) / steps
        factor = learning_rate - end_learning_rate
        return tensor.pow(left, power) * factor + end_learning_rate

    return StepSchedule(rate, computed)


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> StepSchedule:
    """values[k] while the step is below boundaries[k], the last value after all of them."""

    def computed(step: Variable) -> Variable:
        rate = _constant(values[-1])
        for boundary, value in reversed(list(zip(boundaries, values))):
            rate = tensor.where(step < float(boundary), _constant(value), rate)
        return rate

    return StepSchedule(lambda step: values[sum(step >= boundary for boundary in boundaries)], computed)


def noam_decay(d_model: float, warmup_steps: float, learning_rate: float = 1.0) -> StepSchedule:
    """learning_rate * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), steps counting from 1."""
    scale = learning_rate * d_model**-0.5
    return StepSchedule(
        lambda step: scale * min((step + 1) ** -0.5, (step + 1) * warmup_steps**-1.5),
        lambda step: tensor.minimum(tensor.pow(step, -0.5), step * warmup_steps**-1.5) * scale,
        begin=1,
    )


def cosine_decay(learning_rate: float, step_each_epoch: int, epochs: int) -> StepSchedule:
    """learning_rate / 2 * (cos(epoch * pi / epochs) + 1)."""
    return StepSchedule(
        lambda step: learning_rate * 0.5 * (math.cos(step // step_each_epoch * math.pi / epochs) + 1),
        lambda step: (
            (tensor.cos(tensor.floor(step / float(step_each_epoch)) * (math.pi / epochs)) + 1.0)
            * (learning_rate * 0.5)
        ),
    )


def linear_lr_warmup(
    learning_rate: float | LRScheduler | Variable, warmup_steps: int, start_lr: float, end_lr: float
) -> StepSchedule | Variable:
    """From start_lr to end_lr in warmup_steps, then learning_rate: a number, another of these schedules, or
    a variable that the program computes, which makes this one, too."""

    def computed(step: Variable) -> Variable:
        rising = step * ((end_lr - start_lr) / warmup_steps) + start_lr
        then: Any = learning_rate
        if not isinstance(then, framework.Variable):
            then = _constant(then() if isinstance(then, LRScheduler) else then)
        return tensor.where(step < float(warmup_steps), rising, tensor.reshape(then, [1]))

    def rate(step: int) -> float:
        if step < warmup_steps:
            return start_lr + (end_lr - start_lr) * (step / warmup_steps)
        then: Any = learning_rate
        if isinstance(then, StepSchedule):
            return then.rate(step)
        return float(then() if isinstance(then, LRScheduler) else then)

    if isinstance(learning_rate, framework.Variable) and not isinstance(learning_rate, StepSchedule):
        return computed(decay_step_counter())
    return StepSchedule(rate, computed)


__getattr__, __dir__ = _lazy.attach(__name__)


def decay_step_counter(begin: int = 0) -> Variable:
    """How many runs the program had before this one, and `begin`, counted in the program. Shape: [1]
    float32."""
    from fleetrun.fluid._math import autoincreased_step_counter

    return tensor.cast(autoincreased_step_counter(_COUNTER, begin, 1), "float32")


_decay_step_counter = decay_step_counter
