"""Functions that select, sort and scatter values. Part of fleetrun/tensor.py."""

from __future__ import annotations

import numpy as np

from fleetrun import _dtypes as dtypes
from fleetrun import _numbers
from fleetrun._arguments import refuse
from fleetrun._creation import to_tensor
from fleetrun._error import Error
from fleetrun._graph import append, expect_variable, temporaries, unique_name
from fleetrun._shapes import expand, squeeze
from fleetrun._types import Any, DTypeLike, Sequence, Variable


def gather(x: Variable, index: Variable, axis: int | None = None, name: str | None = None) -> Variable:
    """x with the axis `axis` (the first when None) replaced by the places in index[n]; without it where the
    index has no axis."""
    axis = 0 if axis is None else int(axis)
    made = append("gather", "gather", [x, _vector(index)], {"axis": axis})
    return made if index.ndim else squeeze(made, axis)


def index_select(x: Variable, index: Variable, axis: int = 0, name: str | None = None) -> Variable:
    """gather() along any axis."""
    return gather(x, index, axis)


def gather_nd(x: Variable, index: Variable, name: str | None = None) -> Variable:
    """The parts of x at index[.., k]: one place for each of its first k axes."""
    return append("gather_nd", "gather_nd", [x, index])


def take_along_axis(arr: Variable, indices: Variable, axis: int, broadcast: bool = True) -> Variable:
    """Along `axis`, of each line of arr those places that the line of `indices` says; with broadcast one line
    says it of all."""
    wide = [size if i == axis % arr.ndim else arr.shape[i] for i, size in enumerate(indices.shape)]
    if broadcast and any(size == 1 < other for size, other in zip(indices.shape, wide)):
        indices = expand(indices, wide)
    return append("take_along_axis", "take_along_axis", [arr, indices], {"axis": int(axis)})


def scatter(
    x: Variable, index: Variable, updates: Variable, overwrite: bool = True, name: str | None = None
) -> Variable:
    """x with the rows index[n] replaced by updates[n, ..]; overwrite=False: by the sums of the updates of
    each."""
    return append("scatter", "scatter", [x, _vector(index), updates], {"overwrite": bool(overwrite)})


def _vector(index):
    expect_variable("gather", index)
    if index.ndim == 1:
        return index
    return append("flatten", "flatten", [index]) if index.ndim else index.unsqueeze(0)


def masked_select(x: Variable, mask: Variable, name: str | None = None) -> Variable:
    """The values of x where `mask` (bool) holds, both brought to one shape. Shape: [how many]."""
    if x.shape != mask.shape and -1 not in (*x.shape, *mask.shape):
        shape = np.broadcast_shapes(x.shape, mask.shape)
        x, mask = expand(x, shape), expand(mask, shape)
    return append("masked_select", "masked_select", [x, mask])


def nonzero(x: Variable, as_tuple: bool = False) -> Any:
    """Where x is not 0. Shape: [how many, axes of x] int64; as_tuple: one [how many, 1] for each axis."""
    found = append("where_index", "where_index", [x if x.dtype == dtypes.bool else x.cast("bool")])
    if not as_tuple:
        return found
    return tuple(found[:, axis : axis + 1] for axis in range(x.ndim))


def _two(kind, operator, inputs, attributes):
    outputs = temporaries(unique_name(kind), 2)
    return tuple(append(kind, operator, inputs, attributes, outputs))


def topk(
    x: Variable,
    k: int | Variable,
    axis: int | None = None,
    largest: bool = True,
    sorted: bool = True,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """(values, places) of the k largest, or smallest, along `axis` (the last when None), in order. k: a
    number or a variable of one integer."""
    inputs, number = ([x, k], {}) if isinstance(k, Variable) else ([x], {"k": int(k)})
    return _two(
        "topk",
        "top_k",
        inputs,
        {**number, "axis": -1 if axis is None else int(axis), "largest": bool(largest)},
    )


def argsort(x: Variable, axis: int = -1, descending: bool = False, name: str | None = None) -> Variable:
    """The places of the values along `axis` in rising, or falling, order; equal ones as Paddle has
    them, in no order of their own."""
    return _two("argsort", "argsort", [x], {"axis": int(axis), "descending": bool(descending)})[1]


def sort(x: Variable, axis: int = -1, descending: bool = False, name: str | None = None) -> Variable:
    """The values along `axis` in rising, or falling, order."""
    return _two("sort", "argsort", [x], {"axis": int(axis), "descending": bool(descending)})[0]


def _best(operator, x, axis, keepdim, dtype):
    attributes = {"keepdim": bool(keepdim), **({} if axis is None else {"axis": int(axis)})}
    made = append(operator, operator, [x], attributes)
    return made if dtypes.name_of(dtype) == "int64" else made.cast(dtype)


def argmax(
    x: Variable,
    axis: int | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = "int64",
    name: str | None = None,
) -> Variable:
    """The place of the largest value along `axis`, or of all; the first of equal ones."""
    return _best("arg_max", x, axis, keepdim, dtype)


def argmin(
    x: Variable,
    axis: int | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = "int64",
    name: str | None = None,
) -> Variable:
    """The place of the smallest value along `axis`, or of all; the first of equal ones."""
    return _best("arg_min", x, axis, keepdim, dtype)


def unique(
    x: Variable,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike = "int64",
    name: str | None = None,
) -> Any:
    """The different values of x in rising order; and, as asked for, their first places in the flattened x,
    for each value of x which one it is, and how often each is there."""
    refuse("paddle.unique", axis=(axis, None))
    made = append("unique", "unique", [x], {}, temporaries(unique_name("unique"), 4))
    places = [
        one if dtypes.name_of(dtype) == "int64" else one.cast(dtype)
        for one, wanted in zip(made[1:], (return_index, return_inverse, return_counts))
        if wanted
    ]
    return (made[0], *places) if places else made[0]


def cumsum(
    x: Variable,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """Each value and those before it along `axis`, or in the flattened x, added up."""
    x = x if dtype is None else x.cast(dtype)
    return append("cumsum", "cumsum", [x], {} if axis is None else {"axis": int(axis)})


def flip(x: Variable, axis: int | Sequence[int], name: str | None = None) -> Variable:
    """x with the values along the axes `axis` in reverse order."""
    axes = _numbers.listed(axis)
    down = {"starts": [2**31 - 1] * len(axes), "ends": [-1] * len(axes), "steps": [-1] * len(axes)}
    return append("flip", "slice", [x], {"axes": [int(one) for one in axes], **down})


def roll(
    x: Variable, shifts: int | Sequence[int], axis: int | Sequence[int] | None = None, name: str | None = None
) -> Variable:
    """x with the values along the axes `axis` (of fixed size) moved by `shifts`, around the end."""
    if axis is None:
        shape = x.shape
        return roll(x.flatten(), shifts, 0).reshape(list(shape))
    for one, shift in zip(_numbers.listed(axis), _numbers.listed(shifts)):
        size = x.shape[one]
        if size < 0:
            raise Error("config", f"paddle.roll: axis {one} of {x.name} {list(x.shape)} has no fixed size")
        x = gather(x, to_tensor([(place - shift) % size for place in range(size)], "int64"), axis=one)
    return x
