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

__all__ = [
    "CosineAnnealingDecay", "ExponentialDecay", "InverseTimeDecay", "LambdaDecay", "LinearWarmup",
    "LRScheduler", "MultiplicativeDecay", "MultiStepDecay", "NaturalExpDecay", "NoamDecay",
    "PiecewiseDecay", "PolynomialDecay", "StepDecay",
]  # fmt: skip


class LRScheduler:
    """Base of all schedules: get_lr() says the rate of `last_epoch`, and calling the schedule gives the
    current one."""

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float)):
            raise Error(
                "config",
                f"paddle.optimizer.lr.{type(self).__name__}(learning_rate={learning_rate!r}) is not a number",
            )
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = int(last_epoch)
        self.verbose = verbose
        self.step()

    def __call__(self) -> float:
        return self.last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        self.last_lr = float(self.get_lr())
        if not math.isfinite(self.last_lr):
            raise Error(
                "config",
                f"paddle.optimizer.lr.{type(self).__name__}: the learning rate of epoch {self.last_epoch} "
                f"is {self.last_lr}",
                "choose numbers that give a finite rate for every epoch",
            )
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The rate of `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def state_dict(self) -> dict[str, Any]:
        """What set_state_dict() takes to go on from here."""
        return {"last_epoch": self.last_epoch, "last_lr": self.last_lr}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from where state_dict() was made."""
        for key in ("last_epoch", "last_lr"):
            if key not in state_dict:
                raise Error(
                    "config",
                    f"{type(self).__name__}.set_state_dict: {key} is not there",
                    "give it what state_dict() returned",
                )
            setattr(self, key, state_dict[key])

    set_dict = set_state_dict


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
        _above_zero(self, d_model=d_model, warmup_steps=warmup_steps)
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
        _above_zero(self, decay_steps=decay_steps, power=power)
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
        _above_zero(self, warmup_steps=warmup_steps)
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
        _above_zero(self, step_size=step_size)
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


class CosineAnnealingDecay(LRScheduler):
    """eta_min + (learning_rate - eta_min) * (1 + cos(pi * epoch / T_max)) / 2. Source: Loshchilov and Hutter,
    2017."""

    def __init__(
        self,
        learning_rate: float,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _above_zero(self, T_max=T_max)
        self.T_max = T_max
        self.eta_min = float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return (
            self.eta_min
            + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        )


def _above_zero(schedule, **arguments):
    for name, value in arguments.items():
        if not value > 0:
            raise Error(
                "config",
                f"paddle.optimizer.lr.{type(schedule).__name__}: {name}={value!r}",
                "it must be above 0",
            )


def _callable(schedule, function):
    if not callable(function):
        raise Error(
            "config",
            f"paddle.optimizer.lr.{type(schedule).__name__}: lr_lambda={function!r} is not a function",
        )


__getattr__, __dir__ = _lazy.attach(__name__)
