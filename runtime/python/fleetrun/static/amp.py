"""paddle.static.amp, and fluid.contrib.mixed_precision of 1.x. On CPUs Paddle computes float16 programs in
float32, and so does this engine; what is left of mixed precision are the scale of the loss and the steps that
are left out because a gradient is infinite or no number."""

from __future__ import annotations

import contextlib

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import warn_once
from fleetrun._graph import appending_updates, unique_name
from fleetrun._types import Any, Program, Sequence, Variable
from fleetrun.optimizer import optimizers, rates
from fleetrun.static.differentiated import KEYS, grad_var_name
from fleetrun.static.held_back import only_where
from fleetrun.static.inputs import create_global_var
from fleetrun.static.training import training_of

__all__ = [
    "AutoMixedPrecisionLists", "AutoMixedPrecisionListsBF16", "CustomOpLists", "bf16_guard",
    "cast_model_to_bf16", "cast_model_to_fp16", "cast_parameters_to_bf16", "cast_parameters_to_fp16",
    "decorate", "decorate_bf16", "fp16_guard",
]  # fmt: skip


class AutoMixedPrecisionLists:
    """Which operators compute in which type: accepted, all compute in float32."""

    def __init__(
        self,
        custom_white_list: Any = None,
        custom_black_list: Any = None,
        custom_black_varnames: Any = None,
        dtype: str = "float16",
    ) -> None:
        self.white_list, self.black_list = set(custom_white_list or ()), set(custom_black_list or ())
        self.black_varnames = custom_black_varnames
        self.amp_dtype = dtype


CustomOpLists = AutoMixedPrecisionLists


class AutoMixedPrecisionListsBF16(AutoMixedPrecisionLists):
    """The same of bfloat16."""

    def __init__(
        self, custom_bf16_list: Any = None, custom_fp32_list: Any = None, custom_fp32_varnames: Any = None
    ) -> None:
        super().__init__(custom_bf16_list, custom_fp32_list, custom_fp32_varnames, "bfloat16")
        self.bf16_list, self.fp32_list = self.white_list, self.black_list


def fp16_guard() -> contextlib.AbstractContextManager[None]:
    """Accepted: operators within compute in float32, as all do."""
    return contextlib.nullcontext()


bf16_guard = fp16_guard


def cast_model_to_fp16(program: Program, *args: Any, **kwargs: Any) -> set[str]:
    """The names of the parameters that became float16: none."""
    warn_once("amp cast", "paddle.static.amp: parameters stay float32 on the CPU")
    return set()


def cast_parameters_to_fp16(place: Any, program: Program, *args: Any, **kwargs: Any) -> None:
    """Accepted, as cast_model_to_fp16()."""
    cast_model_to_fp16(program)


cast_model_to_bf16, cast_parameters_to_bf16 = cast_model_to_fp16, cast_parameters_to_fp16


# Paddle 2.6.2's that leave a step out.
_LEAVING_OUT = (optimizers.Adam, optimizers.Lamb)


class Decorated:
    """An optimizer whose loss has a scale, which the gradients are free of again. dynamic: in a step with a
    gradient that is infinite or no number Adam, AdamW and Lamb do nothing, and others move parameters as
    gradients of 0 do; the scale is divided after some of these, and multiplied after some good ones. A scale
    that stays, other than 1, lets Adam, AdamW and Lamb leave such steps out as well."""

    def __init__(
        self, optimizer: Any, scale: float, dynamic: bool, rule: tuple[int, int, float, float]
    ) -> None:
        self._optimizer, self._init_loss_scaling = optimizer, float(scale)
        self._use_dynamic_loss_scaling, self._rule = bool(dynamic), rule
        self._loss_scaling: Variable | None = None
        self._scaled_loss: Variable | None = None

    def amp_init(
        self, place: Any, scope: Any = None, test_program: Any = None, use_fp16_test: bool = False
    ) -> None:
        """Accepted: parameters stay float32."""

    def get_loss_scaling(self) -> Variable | None:
        """The variable of the scale, [1]; None before backward() and minimize()."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """The loss times its scale; None before backward() and minimize()."""
        return self._scaled_loss

    def scale(self, loss: Variable, startup: Program | None) -> None:
        """Makes the scale and the scaled loss, which no gradient begins at."""
        self._optimizer._startup = startup
        with framework.program_guard(loss.program, startup or rates.startup_of(loss.program)):
            self._loss_scaling = _counter("loss_scaling", self._init_loss_scaling, "float32")
            self._scaled_loss = loss * self._loss_scaling

    def backward(
        self, loss: Variable, startup_program: Program | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """The optimizer's own: the gradients have no scale."""
        self.scale(loss, startup_program)
        return self._optimizer.backward(loss, startup_program, *args, **kwargs)

    def apply_gradients(self, params_grads: Sequence[Any]) -> Any:
        """The optimizer's own, where a gradient is infinite or no number without effect or of gradients of
        0."""
        given = [pair for pair in params_grads if pair[1] is not None]
        if self._loss_scaling is None or not given or not self._looks:
            return self._optimizer.apply_gradients(params_grads)
        main: Any = self._loss_scaling.program
        held: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        startup = self._optimizer._startup or rates.startup_of(main)
        with framework.program_guard(main, startup), appending_updates():
            good = _all_finite(given)
            taken = given
            if self._use_dynamic_loss_scaling:
                self._update(good)
                taken = _zeros_unless(good, given, main)
        if isinstance(self._optimizer, _LEAVING_OUT):
            held = only_where(good, main, startup)
        with held:
            made = self._optimizer.apply_gradients(taken)
        # Means over replicas come before these updates.
        training: Any = training_of(main)
        training.makes_gradients = any(
            not gradient.name.startswith(grad_var_name(parameter.name)) for parameter, gradient in given
        )
        return made

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Any], list[Any]]:
        """backward() and apply_gradients()."""
        if loss.program.native.has_operator("sparse_embedding") or not self._looks:
            self.scale(loss, startup_program)
            made: tuple[list[Any], list[Any]] = self._optimizer.minimize(
                loss, startup_program, parameter_list, no_grad_set
            )
            return made
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(pairs), pairs

    @property
    def _looks(self):
        """Whether anything depends on gradients being finite."""
        held = self._init_loss_scaling != 1.0 and isinstance(self._optimizer, _LEAVING_OUT)
        return self._use_dynamic_loss_scaling or held

    def _update(self, good):
        every_good, every_bad, more, less = self._rule
        scale: Any = self._loss_scaling
        goods, bads = (_counter(name, 0, "int32") for name in ("num_good_steps", "num_bad_steps"))
        is_good = tensor.cast(good, "int32")
        good_steps, bad_steps = (goods + 1) * is_good, (bads + 1) * (1 - is_good)
        grows, shrinks = good_steps >= every_good, bad_steps >= every_bad
        least = tensor.maximum(scale * less, tensor.ones_like(scale))
        larger = scale * more
        larger = tensor.where(tensor.isfinite(larger), larger, scale + 0.0)
        tensor.assign(tensor.where(shrinks, least, tensor.where(grows, larger, scale + 0.0)), scale)
        tensor.assign(good_steps * (1 - tensor.cast(grows, "int32")), goods)
        tensor.assign(bad_steps * (1 - tensor.cast(shrinks, "int32")), bads)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)


def _all_finite(given):
    """Whether all gradients are, [1]."""
    parts = [tensor.cast(tensor.all(tensor.isfinite(gradient)), "float32") for _, gradient in given]
    return tensor.reshape(tensor.add_n(parts), [1]) >= len(given) - 0.5


def _zeros_unless(good, given, main):
    """[(parameter, gradient)], where the step is not good with gradients of 0."""
    keys, made = KEYS.of(main), []
    for parameter, gradient in given:
        axes = [1] * len(gradient.shape)
        taken = tensor.expand_as(tensor.reshape(good, axes), gradient)
        kept = tensor.where(taken, gradient, tensor.zeros_like(gradient))
        if gradient.name in keys:
            keys[kept.name] = keys[gradient.name]
        made.append((parameter, kept))
    return made


def _counter(name, value, dtype):
    return create_global_var([1], value, dtype, True, name=unique_name(name))


def decorate(optimizer: Any, amp_lists: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The optimizer, of a loss with a scale. Arguments: those of 2.6 (level, dtype, master_weight,
    master_grad, init_loss_scaling, …), or those of before (init_loss_scaling, incr_every_n_steps, …) where
    the first behind amp_lists is a number or use_pure_fp16, use_fp16_guard or use_bf16 is named."""
    older = {"use_pure_fp16", "use_fp16_guard", "use_bf16"}.intersection(kwargs) or (
        args and not isinstance(args[0], str)
    )
    defaults = _OLDER if older else _NEWER
    given = {**defaults, **dict(zip(defaults, args)), **kwargs}
    unknown = sorted(set(given) - set(_OLDER) - set(_NEWER))
    if unknown or len(args) > len(defaults):
        raise TypeError(
            f"paddle.static.amp.decorate() has no argument {unknown[0] if unknown else args[-1]!r}"
        )
    level = str(given.get("level", "O1")).upper()
    if level not in ("O0", "OD", "O1", "O2"):
        raise ValueError(f"paddle.static.amp.decorate(level={level!r}): it is O0, OD, O1 or O2")
    dynamic, scale = given["use_dynamic_loss_scaling"], given["init_loss_scaling"]
    is_half = given.get("dtype", "float16") == "float16" and not given.get("use_bf16", False)
    if dynamic and not is_half:
        warn_once("amp bf16 scale", "paddle.static.amp.decorate: losses of bfloat16 have no scale that moves")
        dynamic, scale = False, 1.0
    rule = (
        given["incr_every_n_steps"],
        given["decr_every_n_nan_or_inf"],
        given["incr_ratio"],
        given["decr_ratio"],
    )
    return Decorated(optimizer, scale, is_half if dynamic is None else dynamic, rule)


_OLDER = {
    "init_loss_scaling": 2.0**15, "incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0,
    "decr_ratio": 0.8, "use_dynamic_loss_scaling": True, "use_pure_fp16": False, "use_fp16_guard": None,
    "use_bf16": False, "use_promote": False,
}  # fmt: skip
_NEWER = {
    "level": "O1", "dtype": "float16", "master_weight": None, "master_grad": False,
    "init_loss_scaling": 2.0**16, "incr_every_n_steps": 2000, "decr_every_n_nan_or_inf": 1, "incr_ratio": 2.0,
    "decr_ratio": 0.5, "use_dynamic_loss_scaling": None, "use_amp_guard": False, "use_promote": False,
}  # fmt: skip


def decorate_bf16(
    optimizer: Any, amp_lists: Any = None, use_pure_bf16: bool = False, use_bf16_guard: Any = None
) -> Any:
    """The optimizer; matrix products, which Paddle computes in bfloat16, are computed in float32."""
    warn_once("amp bf16", "paddle.static.amp.bf16: the program computes in float32, which is more exact")
    return Decorated(optimizer, 1.0, False, (1, 1, 1.0, 1.0))


__getattr__, __dir__ = _lazy.attach(__name__, {"bf16": "static.amp"})
