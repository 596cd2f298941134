"""Functions of nn.functional that look up images at places, and shift them. Formulas are Paddle's."""

from __future__ import annotations

import math

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn import _windows


def _steps(size: int, align_corners: bool) -> list[float]:
    """Where the places of an axis are in [-1, 1]: its ends are its corners, or half a place within them."""
    if align_corners:
        return [2.0 * k / (size - 1) - 1.0 for k in range(size)] if size > 1 else [-1.0]
    return [(2.0 * k + 1.0) / size - 1.0 for k in range(size)]


def affine_grid(
    theta: Variable, out_shape: Sequence[int], align_corners: bool = True, name: str | None = None
) -> Variable:
    """The places that theta moves the places of an image to. Shape: theta[n, 2, 3] and [n, c, high, wide] ->
    [n, high, wide, 2], theta[n, 3, 4] and [n, c, deep, high, wide] -> [n, deep, high, wide, 3]."""
    if isinstance(out_shape, Variable) or any(not isinstance(size, int) for size in out_shape):
        raise Error("config", "paddle.nn.functional.affine_grid: out_shape is a variable", "give it numbers")
    sizes = list(out_shape)[2:]
    axes = [_steps(size, align_corners) for size in sizes]
    points: list[list[float]] = [[]]
    for axis in axes:
        points = [[*point, step] for point in points for step in axis]
    base = tensor.to_tensor([[*reversed(point), 1.0] for point in points], theta.dtype)
    moved = tensor.matmul(base, tensor.transpose(theta, [0, 2, 1]))
    return tensor.reshape(moved, [-1, *sizes, len(sizes)])


def _on_axis(place: Variable, size: int, padding: str, align_corners: bool) -> Variable:
    """The place in [-1, 1] as one in [0, size), or beyond it where zeros are around."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    place = tensor.scale(place + 1.0, 0.5 * (high - low), low)
    if padding == "reflection" and high > low:
        wide = high - low
        turned = tensor.abs(place - low)
        apart = turned - 2 * wide * tensor.floor(tensor.scale(turned, 0.5 / wide))
        place = tensor.scale(wide - tensor.abs(apart - wide), 1.0, low)
    return place if padding == "zeros" else tensor.clip(place, 0.0, size - 1.0)


def grid_sample(
    x: Variable,
    grid: Variable,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    name: str | None = None,
) -> Variable:
    """The values of images at places in [-1, 1], between those around them. Shape: x[n, c, high, wide] and
    grid[n, .., .., 2] (of x, then y) -> [n, c, .., ..]; x[n, c, deep, high, wide] and grid[n, .., .., .., 3]
    likewise. x has fixed sizes behind its first axis."""
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f'grid_sample(mode="{mode}") is neither "bilinear" nor "nearest"')
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f'grid_sample(padding_mode="{padding_mode}") is not "zeros", "border" or "reflection"'
        )
    channels, *sizes = x.shape[1:]
    if min(sizes) < 0:
        raise Error("config", f"grid_sample of {x.name} {list(x.shape)}: its sizes are not known")
    last = grid.ndim - 1
    places = [
        _on_axis(
            tensor.squeeze(tensor.slice(grid, [last], [len(sizes) - 1 - k], [len(sizes) - k]), -1),
            size, padding_mode, align_corners,
        )
        for k, size in enumerate(sizes)
    ]  # fmt: skip
    flat = tensor.reshape(x, [0, channels, math.prod(sizes)])
    count = math.prod(grid.shape[1:-1]) if min(grid.shape[1:-1]) > 0 else -1
    total: Any = None
    lowest = [tensor.floor(place) if mode == "bilinear" else tensor.round(place) for place in places]
    for one in lowest:
        one.stop_gradient = True
    for corner in range(2 ** len(sizes) if mode == "bilinear" else 1):
        weight: Any = None
        index: Any = None
        inside: Any = None
        for k, size in enumerate(sizes):
            near = lowest[k] + 1.0 if corner >> k & 1 else lowest[k]
            if mode == "bilinear":
                part = places[k] - lowest[k] if corner >> k & 1 else 1.0 - (places[k] - lowest[k])
                weight = part if weight is None else weight * part
            # Paddle asks whether the place itself is in a volume before it takes the nearest one.
            asked = places[k] if mode == "nearest" and len(sizes) == 3 else near
            there = tensor.logical_and(tensor.greater_equal(asked, 0.0), tensor.less_equal(asked, size - 1.0))
            inside = there if inside is None else tensor.logical_and(inside, there)
            at = tensor.cast(tensor.clip(near, 0.0, size - 1.0), "int64")
            index = at if index is None else index * size + at
        index = tensor.expand(tensor.reshape(index, [0, 1, count]), [-1, channels, -1])
        picked = tensor.take_along_axis(flat, index, 2)
        share = tensor.cast(inside, x.dtype)
        share = share if weight is None else share * weight
        picked = picked * tensor.reshape(share, [0, 1, count])
        total = picked if total is None else total + picked
    return tensor.reshape(total, [0, channels, *grid.shape[1:-1]])


def temporal_shift(
    x: Variable,
    seg_num: int,
    shift_ratio: float = 0.25,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """A part shift_ratio of the channels one step of time later, as many one step earlier. Shape: [n *
    seg_num, c, high, wide]."""
    if _windows._channels_last("paddle.nn.functional.temporal_shift", data_format, ("NCHW", "NHWC")):
        moved = temporal_shift(tensor.transpose(x, [0, 3, 1, 2]), seg_num, shift_ratio)
        return tensor.transpose(moved, [0, 2, 3, 1])
    channels = x.shape[1]
    later, earlier = int(channels * shift_ratio), int(channels * 2 * shift_ratio)
    steps = tensor.reshape(x, [-1, seg_num, *x.shape[1:]])
    nothing = tensor.scale(tensor.slice(steps, [1], [0], [1]), 0.0)
    around = tensor.concat([nothing, steps, nothing], 1)
    parts = [
        tensor.slice(around, [1, 2], [begin, low], [begin + seg_num, high])
        for begin, low, high in ((0, 0, later), (2, later, earlier), (1, earlier, channels))
        if high > low
    ]
    return tensor.reshape(tensor.concat(parts, 2), [-1, *x.shape[1:]])
