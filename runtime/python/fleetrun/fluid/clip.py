"""paddle.fluid.clip: clipping of gradients under the names of Paddle 1.x."""

from __future__ import annotations

from fleetrun import _lazy, framework
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Program, Sequence
from fleetrun.nn.clip import KINDS, Clip, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, own_clip
from fleetrun.optimizer.optimizers import CLIPS

__all__ = [
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "GradientClipByGlobalNorm",
    "GradientClipByNorm", "GradientClipByValue", "append_gradient_clip_ops", "set_gradient_clip",
]  # fmt: skip


class GradientClipByGlobalNorm(ClipGradByGlobalNorm):
    """ClipGradByGlobalNorm of the parameters that need_clip(parameter) is true for, of all without it."""

    def __init__(
        self,
        clip_norm: float,
        group_name: str = "default_group",
        need_clip: Callable[[Any], bool] | None = None,
    ) -> None:
        super().__init__(clip_norm, group_name)
        self.need_clip = need_clip


class GradientClipByNorm(ClipGradByNorm):
    """ClipGradByNorm of the parameters that need_clip(parameter) is true for, of all without it."""

    def __init__(self, clip_norm: float, need_clip: Callable[[Any], bool] | None = None) -> None:
        super().__init__(clip_norm)
        self.need_clip = need_clip


class GradientClipByValue(ClipGradByValue):
    """ClipGradByValue of the parameters that need_clip(parameter) is true for, of all without it."""

    def __init__(
        self, max: float, min: float | None = None, need_clip: Callable[[Any], bool] | None = None
    ) -> None:
        super().__init__(max, min)
        self.need_clip = need_clip


def set_gradient_clip(
    clip: Clip, param_list: Sequence[Any] | None = None, program: Program | None = None
) -> None:
    """Clips the gradients of `program`, or those of param_list (parameters or their names), for every
    optimizer that has no grad_clip of its own. Throws: Error(config)."""
    if not isinstance(clip, KINDS):
        raise Error("config", f"fluid.clip.set_gradient_clip({clip!r}) is not supported")
    program = program or framework.default_main_program()
    if param_list is None:
        CLIPS.put(program, clip)
        return
    for each in param_list:
        parameter: Any = program.global_block().var(each) if isinstance(each, str) else each
        parameter.gradient_clip_attr = clip


def append_gradient_clip_ops(param_grads: Sequence[Any]) -> list[Any]:
    """[(parameter, gradient)], clipped as set_gradient_clip() or ParamAttr(gradient_clip=…) says."""
    given = [(parameter, gradient) for parameter, gradient in param_grads if gradient is not None]
    if not given:
        return list(param_grads)
    main = given[0][1].program
    own: set[str] = set()
    clip = CLIPS.of(main)
    if clip is None:
        clip, own = own_clip(main)
    if clip is None:
        return list(param_grads)
    chosen = [pair for pair in given if not own or pair[0].name in own]
    clipped = {parameter.name: gradient for parameter, gradient in clip(chosen)}
    return [(parameter, clipped.get(parameter.name, gradient)) for parameter, gradient in param_grads]


__getattr__, __dir__ = _lazy.attach(__name__)
