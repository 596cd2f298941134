"""paddle.fluid.clip: clipping of gradients under the names of Paddle 1.x."""

from __future__ import annotations

from fleetrun import _lazy, framework
from fleetrun._error import Error
from fleetrun._types import Any, Program, Sequence
from fleetrun.nn.clip import KINDS, Clip, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from fleetrun.optimizer.optimizers import CLIPS

__all__ = [
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "GradientClipByGlobalNorm",
    "GradientClipByNorm", "GradientClipByValue", "set_gradient_clip",
]  # fmt: skip

GradientClipByGlobalNorm = ClipGradByGlobalNorm
GradientClipByNorm = ClipGradByNorm
GradientClipByValue = ClipGradByValue


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


__getattr__, __dir__ = _lazy.attach(__name__)
