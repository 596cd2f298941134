"""Gradient clipping: what an optimizer's grad_clip says. Gradients are cut before weight decay is added, on
trainers before they are sent to servers, and on replicas and collective trainers when they are averaged.
ParamAttr(need_clip=False) leaves a parameter out."""

from typing import TypeAlias

from fleetrun import _native

__all__ = ["Clip", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "KINDS"]


class ClipGradByValue:
    """Each value is cut to [min, max]; min is -max when it is not given. Not for embeddings with sparse=True,
    nor sparse tables."""

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        config.clip_kind, config.clip_least, config.clip = (
            _native.OptimizerConfig.Clip.value,
            self.min,
            self.max,
        )


class ClipGradByNorm:
    """The gradient of each parameter is scaled down to a norm of clip_norm where it has a larger one."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        config.clip_kind, config.clip = _native.OptimizerConfig.Clip.norm, self.clip_norm


class ClipGradByGlobalNorm:
    """All gradients are scaled down by one factor where the norm of all of them together is larger than
    clip_norm.

    group_name: accepted; an optimizer's parameters are one group. On several trainers with servers each has
    its own norm.
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group") -> None:
        self.clip_norm = float(clip_norm)
        self.group_name = group_name

    def put_into(self, config: _native.OptimizerConfig) -> None:
        """Sets the clipping of an engine's OptimizerConfig."""
        config.clip_kind, config.clip = _native.OptimizerConfig.Clip.global_norm, self.clip_norm


KINDS = (ClipGradByValue, ClipGradByNorm, ClipGradByGlobalNorm)
Clip: TypeAlias = ClipGradByValue | ClipGradByNorm | ClipGradByGlobalNorm
