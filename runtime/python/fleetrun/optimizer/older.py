"""Optimizers that Paddle 2.6 has not, or in incubate.optimizer alone, with their older arguments."""

from __future__ import annotations

from fleetrun._error import Error
from fleetrun._types import Any, Parameter, Sequence, WeightDecay
from fleetrun.nn.clip import Clip
from fleetrun.optimizer._parameters import without_decay
from fleetrun.optimizer.lr import LRScheduler
from fleetrun.optimizer.optimizers import Optimizer

__all__ = ["DecayedAdagrad", "Ftrl", "LarsMomentum"]


class LarsMomentum(Optimizer):
    """v = momentum * v + r * (g + lars_weight_decay * w); w -= v, r being learning_rate * lars_coeff * |w| /
    (|g| + lars_weight_decay * |w| + epsilon). exclude_from_weight_decay: parameters whose names have one of
    these texts in them move by the learning rate itself, without a decay."""

    kind = "lars_momentum"

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        exclude_from_weight_decay: Sequence[str] | None = None,
        epsilon: float = 0,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
    ) -> None:
        super().__init__(
            learning_rate,
            regularization,
            grad_clip,
            {"rescale_grad": (rescale_grad, 1.0)},
            parameter_list,
            momentum=momentum,
            lars_coefficient=lars_coeff,
            own_decay=lars_weight_decay,
            epsilon=epsilon,
        )
        self._excluded = list(exclude_from_weight_decay or [])

    def _native_config(self, main, rate):
        excluded = self._excluded
        decays = None if not excluded else lambda name: not any(part in name for part in excluded)
        return without_decay(super()._native_config(main, rate), main, decays)


class DecayedAdagrad(Optimizer):
    """m = decay * m + (1 - decay) * g * g; w -= learning_rate * g / (sqrt(m) + epsilon)."""

    kind = "decayed_adagrad"

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        decay: float = 0.95,
        epsilon: float = 1e-06,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate, regularization, grad_clip, {}, parameter_list, rho=decay, epsilon=epsilon
        )


class Ftrl(Optimizer):
    """Follow the regularized leader, with the arguments that Paddle's had up to 2.4; sparse weights by `l1`.

    n += g * g; z += g - (n_new^-p - n_old^-p) / learning_rate * w; w = 0 where |z| <= l1, else (sign(z) * l1
    - z) / (n_new^-p / learning_rate + 2 * l2), p being lr_power. n starts at initial_accumulator_value.
    """

    kind = "ftrl"

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay,
            grad_clip,
            {},
            parameters,
            l1=l1,
            l2=l2,
            learning_rate_power=lr_power,
            initial_accumulator=initial_accumulator_value,
        )

    def get_lr(self) -> float:
        rate = super().get_lr()
        if isinstance(self._learning_rate, LRScheduler) and rate <= 0:
            raise Error(
                "config",
                f"paddle.optimizer.Ftrl: the schedule's learning rate is {rate}",
                "Ftrl divides by it: choose a schedule that stays above 0",
            )
        return rate
