"""Functions of paddle that put values at places of a tensor, or count them. Part of fleetrun/tensor.py."""

from __future__ import annotations

import math

from fleetrun import tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable


def _strides(function: str, x: Variable) -> list[int]:
    """How far values of each axis are apart. Throws: Error(config) where that is not known."""
    if min(x.shape[1:], default=1) < 0:
        raise Error("config", f"paddle.{function} of {x.name} {list(x.shape)}: sizes behind the first axis "
                    "are not known", "give it fixed sizes")  # fmt: skip
    return [math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]


def _put(x: Variable, places: Variable, values: Variable, add: bool) -> Variable:
    """x with values at places of the flattened x, or added there."""
    flat = tensor.reshape(x, [-1])
    places, values = tensor.reshape(places, [-1]), tensor.reshape(values, [-1])
    if add:
        flat = flat + tensor.scatter(tensor.zeros_like(flat), places, values, overwrite=False)
    else:
        flat = tensor.scatter(flat, places, values)
    return tensor.reshape(flat, [0, *x.shape[1:]] if x.shape[:1] == (-1,) else x.shape)


def _from_start(index: Variable, size: Any) -> Variable:
    """Negative places count from the end."""
    return tensor.where(tensor.less_than(index, 0), index + size, index)


def _size(x: Variable, axis: int, dtype: Any) -> Any:
    return x.shape[axis] if x.shape[axis] >= 0 else tensor.cast(tensor.shape(x)[axis], dtype)


def put_along_axis(
    arr: Variable,
    indices: Variable,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Variable:
    """arr with `values` at the places `indices` along `axis`; reduce "assign" or "add". Shape: indices have
    arr's axes; with broadcast their sizes but that of `axis` are repeated to arr's."""
    refuse("paddle.put_along_axis", include_self=(include_self, True))
    if reduce not in ("assign", "add"):
        raise Error("config", f'paddle.put_along_axis(reduce="{reduce}")', 'use "assign" or "add"')
    axis %= arr.ndim
    steps = _strides("put_along_axis", arr)
    wanted = [
        indices.shape[i] if i == axis or not broadcast else _size(arr, i, "int64") for i in range(arr.ndim)
    ]
    indices = tensor.cast(indices, "int64")
    if broadcast and [*wanted] != [*indices.shape]:
        indices = tensor.expand(indices, wanted)
    values = values if isinstance(values, Variable) else tensor.full([1], values, arr.dtype)
    values = values if values.shape == indices.shape else tensor.expand_as(values, indices)
    places = _from_start(indices, _size(arr, axis, "int64")) * steps[axis]
    for i in range(arr.ndim):
        if i != axis:
            numbers = tensor.arange(0, _size(indices, i, "int64"), 1, "int64")
            shape = [-1 if k == i else 1 for k in range(arr.ndim)]
            places = places + tensor.reshape(numbers * steps[i], shape)
    return _put(arr, places, values, reduce == "add")


def index_put(
    x: Variable,
    indices: Sequence[Variable],
    value: Variable,
    accumulate: bool = False,
    name: str | None = None,
) -> Variable:
    """x with `value` at the places that the indices say, one tensor of places for each of x's first axes, or
    one mask; accumulate: added there."""
    listed = list(indices)
    if any(one.dtype.name == "bool" for one in listed):
        found = [
            list(tensor.nonzero(one, as_tuple=True)) if one.dtype.name == "bool" else [one] for one in listed
        ]
        listed = [tensor.flatten(one) for group in found for one in group]
    steps = _strides("index_put", x)
    total: Any = None
    for axis, one in enumerate(listed):
        part = _from_start(tensor.cast(one, "int64"), _size(x, axis, "int64")) * steps[axis]
        total = part if total is None else total + part
    rest = x.shape[len(listed) :]
    inner = math.prod(rest)
    places = tensor.unsqueeze(total, -1) + tensor.arange(0, inner, 1, "int64")
    shaped = tensor.reshape(places, [*([-1] if -1 in total.shape else total.shape), *rest])
    if value.shape != shaped.shape:
        value = tensor.expand_as(value, shaped)
    return _put(x, shaped, value, accumulate)


def index_fill(x: Variable, index: Variable, axis: int, value: Any, name: str | None = None) -> Variable:
    """x with one value at the places `index` along `axis`."""
    moved = tensor.moveaxis(x, axis, 0)
    row = tensor.slice(tensor.zeros_like(moved), [0], [0], [1])
    number = value if isinstance(value, Variable) else tensor.full([1], value, x.dtype)
    rows = tensor.gather(row, tensor.zeros_like(tensor.cast(index, "int64"))) + number
    places = _from_start(tensor.cast(index, "int64"), _size(moved, 0, "int64"))
    return tensor.moveaxis(tensor.scatter(moved, places, rows), 0, axis)


def bincount(
    x: Variable, weights: Variable | None = None, minlength: int = 0, name: str | None = None
) -> Variable:
    """How often each whole number from 0 up to the greatest one is there, or the sum of its weights."""
    values = tensor.cast(tensor.flatten(x), "int64")
    most = tensor.reshape(tensor.max(values) + 1, [1])
    if minlength:
        most = tensor.maximum(most, tensor.full([1], minlength, "int64"))
    counts = tensor.ones_like(values, "float32") if weights is None else tensor.flatten(weights)
    made = tensor.scatter(tensor.full([most], 0.0, "float32"), values, counts, overwrite=False)
    made.stop_gradient = True
    return tensor.cast(made, "int64") if weights is None else made


def histogram(
    input: Variable, bins: int = 100, min: float = 0, max: float = 0, name: str | None = None
) -> Variable:
    """How many values lie in each of `bins` equal parts of [min, max], int64; of the values' own range where
    both are equal."""
    values = tensor.cast(tensor.flatten(input), "float32")
    low, high = tensor.full([1], min, "float32"), tensor.full([1], max, "float32")
    if min == max:
        low, high = tensor.reshape(tensor.min(values), [1]), tensor.reshape(tensor.max(values), [1])
        same = tensor.cast(tensor.equal(low, high), "float32")
        low, high = low - same, high + same
    inside = tensor.logical_and(
        tensor.greater_equal(values, tensor.expand_as(low, values)),
        tensor.less_equal(values, tensor.expand_as(high, values)),
    )
    place = tensor.cast((values - low) * float(bins) / (high - low), "int64")
    last = tensor.full_like(place, bins - 1)
    place = tensor.minimum(tensor.maximum(place, tensor.zeros_like(place)), last)
    counts = tensor.scatter(
        tensor.full([bins], 0.0, "float32"), place, tensor.cast(inside, "float32"), overwrite=False
    )
    counts.stop_gradient = True
    return tensor.cast(counts, "int64")
