"""paddle.fluid.optimizer: optimizers under the names and arguments of Paddle 1.x: with the suffix Optimizer,
`regularization` for weight_decay and `parameter_list` for parameters."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._arguments import refuse, warn_once
from fleetrun._types import Any, Callable, Parameter
from fleetrun.nn.clip import Clip
from fleetrun.optimizer import older, optimizers
from fleetrun.optimizer.lr import LRScheduler
from fleetrun.optimizer.optimizers import Optimizer
from fleetrun.regularizer import WeightDecay

__all__ = [
    "Adadelta", "AdadeltaOptimizer", "Adagrad", "AdagradOptimizer", "Adam", "Adamax", "AdamaxOptimizer",
    "AdamOptimizer", "Ftrl", "FtrlOptimizer", "Lamb", "LambOptimizer", "Momentum", "MomentumOptimizer",
    "Optimizer", "RecomputeOptimizer", "RMSProp", "RMSPropOptimizer", "SGD", "SGDOptimizer",
]  # fmt: skip


class SGDOptimizer(optimizers.SGD):
    """paddle.optimizer.SGD."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip)


class MomentumOptimizer(optimizers.Momentum):
    """paddle.optimizer.Momentum."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        momentum: float,
        parameter_list: Any = None,
        use_nesterov: bool = False,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, momentum, parameter_list, use_nesterov, regularization, grad_clip)


class AdagradOptimizer(optimizers.Adagrad):
    """paddle.optimizer.Adagrad."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        epsilon: float = 1e-06,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(
            learning_rate,
            epsilon,
            parameter_list,
            regularization,
            grad_clip,
            initial_accumulator_value=initial_accumulator_value,
        )


class AdamOptimizer(optimizers.Adam):
    """paddle.optimizer.Adam, but that epsilon is added to the root of the moment as it is."""

    older_formula = True

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, lazy_mode
        )


class AdamaxOptimizer(optimizers.Adamax):
    """paddle.optimizer.Adamax."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip)


class AdadeltaOptimizer(optimizers.Adadelta):
    """paddle.optimizer.Adadelta of rate 1, for Paddle 1.x takes a rate and moves by none. In one process it
    moves by a mean of updates that has the one of this step."""

    older_formula = True

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        epsilon: float = 1e-06,
        rho: float = 0.95,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        if learning_rate != 1.0:
            warn_once(
                "rate of Adadelta", "fluid.optimizer.Adadelta: learning_rate has no effect, as in Paddle 1.x"
            )
        super().__init__(1.0, epsilon, rho, parameter_list, regularization, grad_clip)


class LambOptimizer(optimizers.Lamb):
    """paddle.optimizer.Lamb, which has a decay of its own: another is refused. It corrects no bias, and
    scales the steps of parameters without decay, too."""

    older_formula = True

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-06,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        exclude_from_weight_decay_fn: Callable[[Parameter], bool] | None = None,
        name: str | None = None,
    ) -> None:
        refuse("LambOptimizer", regularization=(regularization, None))
        super().__init__(
            learning_rate,
            lamb_weight_decay,
            beta1,
            beta2,
            epsilon,
            parameter_list,
            grad_clip,
            exclude_from_weight_decay_fn,
        )


class RMSPropOptimizer(optimizers.RMSProp):
    """paddle.optimizer.RMSProp."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        rho: float = 0.95,
        epsilon: float = 1e-06,
        momentum: float = 0.0,
        centered: bool = False,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate, rho, epsilon, momentum, centered, parameter_list, regularization, grad_clip
        )


class FtrlOptimizer(older.Ftrl):
    """paddle.optimizer.Ftrl."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Any = None,
        regularization: WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, l1, l2, lr_power, parameter_list, regularization, grad_clip)


class RecomputeOptimizer:
    """The optimizer that it is given: Paddle computes parts of the model twice to save memory, which changes
    no number."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def _set_checkpoints(self, checkpoints: Any) -> None:
        self._checkpoints = checkpoints

    def apply_optimize(self, loss: Any, startup_program: Any, params_grads: Any) -> list[Any]:
        """apply_gradients(), first values in `startup_program` when it is given."""
        self._optimizer._startup = startup_program or self._optimizer._startup
        applied: list[Any] = self._optimizer.apply_gradients(params_grads)
        return applied

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)


SGD = SGDOptimizer
Momentum = MomentumOptimizer
Adagrad = AdagradOptimizer
Adam = AdamOptimizer
Adamax = AdamaxOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer
Lamb = LambOptimizer

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("static.averages", "ExponentialMovingAverage LookaheadOptimizer"),
        **_lazy.names("optimizer.older", "DecayedAdagrad LarsMomentum"),
        "DecayedAdagradOptimizer": "optimizer.older:DecayedAdagrad",
        "LarsMomentumOptimizer": "optimizer.older:LarsMomentum",
        "ModelAverage": "static.averages:OlderModelAverage",
        "GradientMergeOptimizer": "static.merged:GradientMergeOptimizer",
    },
)
