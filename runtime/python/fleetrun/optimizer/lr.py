"""paddle.optimizer.lr: schedules of the learning rate.

A schedule is a value of `last_epoch`, which counts calls of step(); what a step is (a batch, a pass), the
script says by calling it. The optimizer takes the value that the schedule has when a step, or a pass over a
dataset, begins. Formulas and names are Paddle's.
"""

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.optimizer._schedule import LRScheduler, above_zero
from fleetrun.optimizer.annealing import CosineAnnealingDecay, CosineAnnealingWarmRestarts, LinearLR

__all__ = [
    "CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialDecay",
    "InverseTimeDecay", "LambdaDecay", "LinearLR", "LinearWarmup", "LRScheduler", "MultiplicativeDecay",
    "MultiStepDecay", "NaturalExpDecay", "NoamDecay", "OneCycleLR", "PiecewiseDecay", "PolynomialDecay",
    "ReduceOnPlateau", "StepDecay",
]  # fmt: skip


class NoamDecay(LRScheduler):
    """learning_rate * d_model^-0.5 * min(epoch^-0.5, epoch * warmup_steps^-1.5). Source: Vaswani et al.,
    2017."""

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, d_model=d_model, warmup_steps=warmup_steps)
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        falling = 1.0 if self.last_epoch == 0 else self.last_epoch**-0.5
        return self.base_lr * self.d_model**-0.5 * min(falling, self.warmup_steps**-1.5 * self.last_epoch)


class PiecewiseDecay(LRScheduler):
    """values[k] while `epoch` is below boundaries[k], the last value after all of them."""

    def __init__(
        self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if len(values) != len(boundaries) + 1:
            raise Error(
                "config",
                f"paddle.optimizer.lr.PiecewiseDecay: {len(boundaries)} boundaries and {len(values)} values",
                "give one value more than boundaries",
            )
        self.boundaries = list(boundaries)
        self.values = [float(value) for value in values]
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        return self.values[bisect.bisect_right(self.boundaries, self.last_epoch)]


class NaturalExpDecay(LRScheduler):
    """learning_rate * e^(-gamma * epoch)."""

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(NaturalExpDecay):
    """learning_rate / (1 + gamma * epoch)."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(NaturalExpDecay):
    """learning_rate * gamma^epoch."""

    def get_lr(self) -> float:
        return self.base_lr * self.gamma**self.last_epoch


class PolynomialDecay(LRScheduler):
    """From learning_rate to end_lr as (1 - epoch / decay_steps)^power; with `cycle` decay_steps grows by its
    multiples."""

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, decay_steps=decay_steps, power=power)
        self.decay_steps = decay_steps
        self.end_lr = end_lr
        self.power = power
        self.cycle = cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        steps, epoch = self.decay_steps, self.last_epoch
        if self.cycle:
            steps *= max(math.ceil(epoch / steps), 1)
        else:
            epoch = min(epoch, steps)
        return (self.base_lr - self.end_lr) * (1 - epoch / steps) ** self.power + self.end_lr


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr in warmup_steps, then `learning_rate`: a number, or a schedule that starts
    there."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, warmup_steps=warmup_steps)
        if not end_lr > start_lr:
            raise Error(
                "config",
                f"paddle.optimizer.lr.LinearWarmup: end_lr={end_lr} is not above start_lr={start_lr}",
            )
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.start_lr = start_lr
        self.end_lr = end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            return self.start_lr + (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])

    set_dict = set_state_dict


class MultiStepDecay(LRScheduler):
    """learning_rate * gamma^k, k being the milestones that were reached."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if list(milestones) != sorted(set(milestones)):
            raise Error(
                "config", f"paddle.optimizer.lr.MultiStepDecay: the milestones {list(milestones)} do not rise"
            )
        self.milestones = list(milestones)
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** bisect.bisect_right(self.milestones, self.last_epoch)


class StepDecay(LRScheduler):
    """learning_rate * gamma^(epoch // step_size)."""

    def __init__(
        self,
        learning_rate: float,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, step_size=step_size)
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class LambdaDecay(LRScheduler):
    """learning_rate * lr_lambda(epoch)."""

    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _callable(self, lr_lambda)
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LambdaDecay):
    """learning_rate times lr_lambda(1), lr_lambda(2), … up to lr_lambda(epoch)."""

    def get_lr(self) -> float:
        return self.base_lr * math.prod(self.lr_lambda(epoch) for epoch in range(1, self.last_epoch + 1))


class OneCycleLR(LRScheduler):
    """From max_learning_rate / divide_factor up to max_learning_rate in phase_pct of total_steps, then down
    to end_learning_rate; three_phase: down to where it began first, in as many steps. Source: Smith and
    Topin, 2017."""

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, total_steps=total_steps, divide_factor=divide_factor)
        if anneal_strategy not in ("cos", "linear") or not 0 <= phase_pct <= (0.5 if three_phase else 1):
            raise Error(
                "config",
                f"paddle.optimizer.lr.OneCycleLR: anneal_strategy={anneal_strategy!r}, phase_pct={phase_pct}",
                'use "cos" or "linear", and a share of the steps, below a half with three_phase',
            )
        first = max_learning_rate / divide_factor
        rising = phase_pct * total_steps - 1
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self._ends = [0, rising, 2 * rising, total_steps - 1] if three_phase else [0, rising, total_steps - 1]
        self._rates = [first, max_learning_rate, *([first] if three_phase else []), end_learning_rate]
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise Error(
                "config",
                f"paddle.optimizer.lr.OneCycleLR: step {step} of total_steps={self.total_steps}",
                "give it the number of steps that are trained",
            )
        phase = 0
        while step > self._ends[phase + 1] and phase + 2 < len(self._ends):
            phase += 1
        begin, end = self._rates[phase : phase + 2]
        share = (step - self._ends[phase]) / (self._ends[phase + 1] - self._ends[phase])
        if self.anneal_strategy == "linear":
            return begin + (end - begin) * share
        return end + (begin - end) / 2 * (math.cos(math.pi * share) + 1)


class CyclicLR(LRScheduler):
    """From base_learning_rate up to max_learning_rate in step_size_up, down again in step_size_down, and so
    on. mode: "triangular", "triangular2" (each cycle half as high) or "exp_range" (exp_gamma^step as high);
    scale_fn: the height instead, of the cycle (from 1) or with scale_mode="iterations" of the step. Source:
    Smith, 2017."""

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        step_size_down = step_size_up if step_size_down is None else step_size_down
        above_zero(self, step_size_up=step_size_up, step_size_down=step_size_down)
        heights: dict[str, tuple[Callable[[float], float], str]] = {
            "triangular": (lambda cycle: 1.0, "cycle"),
            "triangular2": (lambda cycle: 2.0 ** (1 - cycle), "cycle"),
            "exp_range": (lambda step: exp_gamma**step, "iterations"),
        }
        if scale_fn is None and mode not in heights or scale_mode not in ("cycle", "iterations"):
            raise Error(
                "config",
                f"paddle.optimizer.lr.CyclicLR: mode={mode!r}, scale_mode={scale_mode!r}",
                f'use one of {", ".join(heights)}, and "cycle" or "iterations"',
            )
        self.scale_fn, self.scale_mode = (scale_fn, scale_mode) if scale_fn is not None else heights[mode]
        self.cycle_size = step_size_up + step_size_down
        self.step_size_up = step_size_up
        self.max_lr = float(max_learning_rate)
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        cycle, step = divmod(self.last_epoch, self.cycle_size)
        rising = step <= self.step_size_up
        height = (
            step / self.step_size_up
            if rising
            else (self.cycle_size - step) / (self.cycle_size - self.step_size_up)
        )
        scale = self.scale_fn(1 + cycle if self.scale_mode == "cycle" else self.last_epoch)
        return self.base_lr + (self.max_lr - self.base_lr) * height * scale


class ReduceOnPlateau(LRScheduler):
    """learning_rate, times `factor` whenever the metric that step() is told has not become better for more
    than `patience` steps, down to min_lr. mode: "min" or "max" is better; by `threshold`, a share of the best
    so far or with threshold_mode="abs" a number. cooldown: steps after a change that do not count. epsilon: a
    smaller change is none."""

    _STATE = ("cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr")

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ) -> None:
        self.mode, self.threshold_mode = mode.lower(), threshold_mode.lower()
        if self.mode not in ("min", "max") or self.threshold_mode not in ("rel", "abs") or factor >= 1:
            raise Error(
                "config",
                f"paddle.optimizer.lr.ReduceOnPlateau: mode={mode!r}, threshold_mode={threshold_mode!r}, "
                f"factor={factor}",
                'use "min" or "max", "rel" or "abs", and a factor below 1',
            )
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.epsilon = epsilon
        self.cooldown_counter = 0
        self.best: float | None = None
        self.num_bad_epochs = 0
        self._said = float(learning_rate)
        super().__init__(learning_rate, -1, verbose)

    def get_lr(self) -> float:
        return self.last_lr

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Goes on to the next epoch, or to `epoch`, at the end of which the metric is `metrics`: one
        number."""
        if metrics is not None:
            self._judge(_one_number(metrics))
        super().step(epoch)

    def _say(self) -> None:
        """Says nothing where the rate stays."""
        before, self._said = self._said, self.last_lr
        if before != self.last_lr:
            super()._say()

    def _judge(self, metric: float) -> None:
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self._is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            rate = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - rate > self.epsilon:
                self.last_lr = rate

    def _is_better(self, metric: float) -> bool:
        if self.best is None:
            return True
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1.0)
        return metric < self.best - margin if self.mode == "min" else metric > self.best + margin

    def state_dict(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in self._STATE}


def _one_number(metrics):
    # What Executor.run() fetches of a loss is an array, of no axis or one.
    values = getattr(metrics, "reshape", lambda _: [metrics])(-1)
    if len(values) != 1:
        raise Error(
            "config",
            f"paddle.optimizer.lr.ReduceOnPlateau.step: the metric is {len(values)} values",
            "give it one, as the mean of the losses",
        )
    return float(values[0])


def _callable(schedule, function):
    if not callable(function):
        raise Error(
            "config",
            f"paddle.optimizer.lr.{type(schedule).__name__}: lr_lambda={function!r} is not a function",
        )


__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.names(
        "fluid.schedules",
        "cosine_decay exponential_decay inverse_time_decay linear_lr_warmup natural_exp_decay noam_decay "
        "piecewise_decay polynomial_decay",
    ),
)
