"""Gradient clipping: what an optimizer's grad_clip says. Gradients are cut before weight decay is added, on
trainers before they are sent to servers, and in sync mode, on replicas and on collective trainers when they
are averaged.
ParamAttr(need_clip=False) leaves a parameter out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fleetrun import _lazy, _native
from fleetrun._error import Error

__all__ = ["Clip", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "KINDS", "own_clip"]


class _OnGradients:
    """What a clip does on the gradients of append_backward()."""

    # Whether a parameter's gradient is clipped, by the names of Paddle 1.x; None: by its attribute alone.
    need_clip: Callable[[Any], bool] | None = None

    def takes(self, parameter: Any) -> bool:
        """Whether it clips the gradient of this parameter."""
        return bool(parameter.need_clip and (self.need_clip is None or self.need_clip(parameter)))

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        raise NotImplementedError(f"{type(self).__name__}.put_into")

    def __call__(self, params_grads: Sequence[Any]) -> list[tuple[Any, Any]]:
        """[(parameter, clipped gradient)] of [(parameter, gradient)]; appends the operators that clip. Where
        there is no gradient, or the parameter is not to be clipped, nothing changes."""
        config = _native.OptimizerConfig()
        self.put_into(config)
        chosen = [pair for pair in params_grads if pair[1] is not None and self.takes(pair[0])]
        if not chosen:
            return list(params_grads)
        program: Any = chosen[0][1].program
        keys = program.gradient_keys
        named = [(one.name, gradient.name, keys.get(gradient.name, "")) for one, gradient in chosen]
        clipped = _native.append_clip(program.native, named, config)
        keys.update({gradient: rows for _, gradient, rows in clipped if rows})
        found = {parameter: program.var(gradient) for parameter, gradient, _ in clipped}
        return [(parameter, found.get(parameter.name, gradient)) for parameter, gradient in params_grads]


class ClipGradByValue(_OnGradients):
    """Each value is cut to [min, max]; min is -max when it is not given. Not for embeddings with sparse=True,
    nor sparse tables."""

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        config.clip_kind, config.clip_least, config.clip = (
            _native.OptimizerConfig.Clip.by_value,
            self.min,
            self.max,
        )


class ClipGradByNorm(_OnGradients):
    """The gradient of each parameter is scaled down to a norm of clip_norm where it has a larger one."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        config.clip_kind, config.clip = _native.OptimizerConfig.Clip.by_norm, self.clip_norm


class ClipGradByGlobalNorm(_OnGradients):
    """All gradients are scaled down by one factor where the norm of all of them together is larger than
    clip_norm.

    group_name: accepted; an optimizer's parameters are one group. auto_skip_clip: accepted; nothing is
    scaled where the norm is not larger. With servers the norm is of the mean over trainers in sync mode, and
    in other modes each trainer has its own.
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        self.clip_norm = float(clip_norm)
        self.group_name = group_name

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        config.clip_kind, config.clip = _native.OptimizerConfig.Clip.by_global_norm, self.clip_norm


KINDS = (ClipGradByValue, ClipGradByNorm, ClipGradByGlobalNorm)
Clip: TypeAlias = ClipGradByValue | ClipGradByNorm | ClipGradByGlobalNorm


def own_clip(main: Any) -> tuple[Any, set[str]]:
    """(the ParamAttr(gradient_clip=…) of parameters, their names); (None, no names) where there is none.
    Throws: Error(config) where they differ."""
    found = [each for each in main.all_parameters() if each.gradient_clip_attr is not None]
    for each in found[1:]:
        one, other = found[0].gradient_clip_attr, each.gradient_clip_attr
        if type(one) is not type(other) or vars(one) != vars(other):
            raise Error(
                "config",
                f"the gradient_clip of {found[0].name} is not that of {each.name}",
                "give all the same, or the optimizer a grad_clip",
            )
    return (found[0].gradient_clip_attr if found else None), {each.name for each in found}


__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.names(
        "fluid.clip",
        "append_gradient_clip_ops GradientClipByGlobalNorm GradientClipByNorm GradientClipByValue "
        "set_gradient_clip",
    ),
)
