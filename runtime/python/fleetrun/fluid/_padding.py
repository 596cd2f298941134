"""fluid.layers.pad and its kin: paddle.nn.functional.pad with the arguments of Paddle 1.x."""

from __future__ import annotations

from fleetrun._padding import constant_pad, pad_last
from fleetrun._types import Sequence, Variable

__all__ = ["pad", "pad2d", "pad_constant_like"]


def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """x with paddings[2 * axis] values before and paddings[2 * axis + 1] behind each axis."""
    return constant_pad(x, list(zip(paddings[::2], paddings[1::2])), pad_value)


def pad2d(
    input: Variable,
    paddings: Sequence[int] = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """paddings: above, below, left, right. mode: "constant", "reflect" or "edge"."""
    above, below, left, right = (int(size) for size in paddings)
    sizes = [(above, below), (left, right)]
    return pad_last(input, sizes, {"edge": "replicate"}.get(mode, mode), pad_value, data_format)


def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Variable:
    """y with values behind each axis up to x's size; sizes are fixed."""
    return constant_pad(y, [(0, want - size) for want, size in zip(x.shape, y.shape)], pad_value)
