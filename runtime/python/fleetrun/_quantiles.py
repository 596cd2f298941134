"""Quantiles, medians and modes of paddle. Part of fleetrun/tensor.py; formulas are Paddle's."""

from __future__ import annotations

import math

from fleetrun import _numbers, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable


def _in_one(x: Variable, axis: int | Sequence[int] | None) -> tuple[Variable, list[int]]:
    """(x with those axes, all for None, as its last one; which they were)."""
    axes = list(range(x.ndim)) if axis is None else sorted(one % x.ndim for one in _numbers.listed(axis))
    if not axes:
        return tensor.unsqueeze(x, -1), axes
    moved = tensor.moveaxis(x, axes, list(range(x.ndim - len(axes), x.ndim)))
    return tensor.flatten(moved, x.ndim - len(axes), -1), axes


def _kept(made: Variable, x: Variable, axes: Sequence[int], keepdim: bool) -> Variable:
    """`made`, of the last axis's size 1, without it, or with axes of size 1 where the reduced ones were."""
    made = tensor.squeeze(made, -1)
    for axis in axes if keepdim else ():
        made = tensor.unsqueeze(made, axis)
    return made


def _middle(rising: Variable, place: Variable) -> Variable:
    """Between the two values around each place (float64) of the last axis, float64."""
    below, above = tensor.floor(place), tensor.ceil(place)
    pair = [
        tensor.cast(tensor.take_along_axis(rising, tensor.cast(one, "int64"), -1), "float64")
        for one in (below, above)
    ]
    return pair[0] + (pair[1] - pair[0]) * (place - below)


def _quantile(
    function: str, x: Variable, q: float | Sequence[float], axis: Any, keepdim: bool, pass_nan: bool
) -> Variable:
    wanted = [float(one) for one in _numbers.listed(q)]
    if not wanted or not all(0 <= one <= 1 for one in wanted):
        raise ValueError(f"paddle.{function}: q={q} is not in [0, 1]")
    flat, axes = _in_one(x, axis)
    rising = tensor.sort(flat, -1)  # NaNs last
    missing = tensor.cast(tensor.isnan(flat), "float64")
    last = tensor.sum(1.0 - missing, -1, keepdim=True) - 1.0
    made = []
    for one in wanted:
        place = tensor.scale(last, one)
        if pass_nan:
            every = tensor.scale(tensor.sum(tensor.ones_like(missing), -1, keepdim=True), 1.0, -1.0)
            place = tensor.where(tensor.greater_than(every, last), every, place)
        else:
            place = tensor.maximum(place, tensor.zeros_like(place))  # all are NaN: any of them
        place.stop_gradient = True
        made.append(_kept(_middle(rising, place), x, axes, keepdim))
    return tensor.stack(made, 0) if len(made) > 1 else made[0]


def quantile(x: Variable, q: float | Sequence[float], axis: Any = None, keepdim: bool = False) -> Variable:
    """The value below which a part q of those along `axis` lies, float64; NaN where one of them is NaN. A
    list of q gives a first axis."""
    return _quantile("quantile", x, q, axis, keepdim, True)


def nanquantile(x: Variable, q: float | Sequence[float], axis: Any = None, keepdim: bool = False) -> Variable:
    """quantile() of what is not NaN."""
    return _quantile("nanquantile", x, q, axis, keepdim, False)


def nanmedian(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """The middle one of the values along `axis` that are not NaN; the mean of two for an even number."""
    made = tensor.cast(_quantile("nanmedian", x, 0.5, axis, True, False), x.dtype)
    return made if keepdim else tensor.squeeze(made, _in_one(x, axis)[1])


def mode(
    x: Variable, axis: int = -1, keepdim: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """(the most frequent value along `axis`, the least of several; where it is for the last time)."""
    axis %= x.ndim
    if x.shape[axis] < 0:
        raise Error("config", f"paddle.mode: axis {axis} of {x.name} {list(x.shape)} has no fixed size")
    moved = tensor.moveaxis(x, axis, -1)
    same = tensor.equal(tensor.unsqueeze(moved, -1), tensor.unsqueeze(moved, -2))
    counts = tensor.sum(tensor.cast(same, "float32"), -1)
    often = tensor.equal(counts, tensor.max(counts, -1, True))
    values = tensor.cast(moved, "float64")
    least = tensor.min(tensor.where(often, values, tensor.full_like(values, math.inf)), -1, True)
    here = tensor.cast(tensor.equal(values, least), "int64")
    places = tensor.max(here * tensor.arange(1, x.shape[axis] + 1, 1, "int64"), -1, True) - 1
    places.stop_gradient = True
    value, place = (tensor.moveaxis(v, -1, axis) for v in (tensor.take_along_axis(moved, places, -1), places))
    return (value, place) if keepdim else (tensor.squeeze(value, axis), tensor.squeeze(place, axis))
