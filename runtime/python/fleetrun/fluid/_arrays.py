"""fluid.layers: arrays of variables.

An array whose places the script knows is a list. One that a loop reads or writes is packed: the rows of all
its variables behind each other in one, and how many each has in another; both are carried from step to step
as other variables are, and have gradients. So are the levels of sequences that the first variable has.
"""

from __future__ import annotations

import numpy

from fleetrun import _graph, framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, Sequence, Variable
from fleetrun.static import groups
from fleetrun.static.control_flow import value_of
from fleetrun.static.sequences import lengths_of, with_lengths

__all__ = [
    "array_length", "array_read", "array_write", "create_array", "tensor_array_to_tensor", "TensorArray",
]  # fmt: skip

_BEHIND_ALL = 2**31 - 1


class TensorArray(list[Any]):
    """Variables in order; once it is packed they are there."""

    def __init__(self, items: Sequence[Any] = ()) -> None:
        super().__init__(items)
        self._home = framework.default_main_program()
        self._branch = _graph.branch()
        self._packed: _Packed | None = None

    def packed(self, i: Any, like: Variable | None = None) -> _Packed | None:
        """None for a list at a place that the script knows. `like`: what is written into an array that is
        empty. Throws: Error(config) where there is no variable to know the type from."""
        is_within = framework.default_main_program() is not self._home
        if is_within or (i is not None and value_of(i) is None):
            return self.pack(like)
        return self._packed

    def pack(self, like: Variable | None = None) -> _Packed:
        """Its variables behind each other from now on."""
        if self._packed is None:
            in_groups = like is not None and groups.groups_of(like) is not None
            with framework.program_guard(self._home), framework.redirected_as(self._branch):
                self._packed = _Packed(list(self), like, in_groups)
            self.clear()
        return self._packed


class _Ragged:
    """Values [total, ..] of many places, and how many each has [places] int64. What is written goes into
    these two variables, so that a loop carries them."""

    def __init__(self, items: Sequence[Variable], like: Variable) -> None:
        if items:
            values = tensor.concat(items, 0)
            counts = tensor.concat([_count(one) for one in items], 0)
        else:
            rest = list(like.shape[1:])
            if min(rest, default=1) < 0:
                raise Error(
                    "config",
                    f"fluid.layers.array_write of {like.name}, {list(like.shape)}, within a loop",
                    "write one into the array before the loop",
                )
            values, counts = tensor.zeros([1, *rest], like.dtype), tensor.zeros([1], "int64")
            values, counts = (tensor.slice(one, [0], [0], [0]) for one in (values, counts))
        # Gradients go through it, also where what it begins with has none.
        values.stop_gradient = not values.dtype.name.startswith("float")
        self.values, self.counts = values, counts

    def __getitem__(self, i: Any) -> Variable:
        """What lies at the place i; nothing behind the last one."""
        begin = _sum(self._part(0, i))
        return tensor.slice(self.values, [0], [begin], [begin + _sum(self._part(i, _next(i)))])

    def __setitem__(self, i: Any, x: Variable) -> None:
        head, old, tail = self._part(0, i), self._part(i, _next(i)), self._part(_next(i), _BEHIND_ALL)
        begin = _sum(head)
        gap = tensor.maximum(_number(i) - tensor.shape(self.counts)[0], _number(0))
        counts = tensor.concat([head, tensor.zeros([gap], "int64"), _count(x), tail], 0)
        before = tensor.slice(self.values, [0], [0], [begin])
        behind = tensor.slice(self.values, [0], [begin + _sum(old)], [_BEHIND_ALL])
        tensor.assign(tensor.concat([before, tensor.cast(x, self.values.dtype), behind], 0), self.values)
        tensor.assign(counts, self.counts)

    def _part(self, begin: Any, end: Any) -> Variable:
        return tensor.slice(self.counts, [0], [begin], [end])


class _Packed:
    """The variables of an array."""

    def __init__(self, items: Sequence[Variable], like: Variable | None, in_groups: bool) -> None:
        like = items[0] if items else like
        if like is None or any(one is None for one in items):
            raise Error(
                "config",
                "fluid.layers.array_read at a place that only a run knows: the array has gaps",
                "write to each place before it is read",
            )
        self.rows = _Ragged(items, like)
        self.lengths: _Ragged | None = None
        self.groups: _Ragged | None = None
        if like.lod_level:
            self.lengths = _Ragged([lengths_of(one, "array_write") for one in items], _NUMBERS)
        found = [groups.groups_of(one) for one in items]
        if None not in found if items else in_groups:
            self.groups = _Ragged([one for one in found if one is not None], _NUMBERS)

    def __getitem__(self, i: Any) -> Variable:
        made = self.rows[i]
        if self.lengths is not None:
            made = with_lengths(made, self.lengths[i])
        return groups.put(made, None if self.groups is None else self.groups[i])

    def __setitem__(self, i: Any, x: Variable) -> None:
        self.rows[i] = x
        if self.lengths is not None:
            self.lengths[i] = lengths_of(x, "array_write")
        if self.groups is not None:
            found = groups.groups_of(x)
            if found is None:
                raise Error(
                    "config",
                    f"fluid.layers.array_write: {x.name} has one level of sequences, others two",
                    "write variables of one lod_level",
                )
            self.groups[i] = found

    def whole(self, axis: int, is_stacked: bool) -> tuple[Variable, Variable]:
        """Variables of one shape side by side along `axis`, or stacked; their sizes along it, int32."""
        rest = list(self.rows.values.shape[1:])
        count = tensor.shape(self.rows.counts)[0]
        if axis == 0 and not is_stacked:
            return self.rows.values, tensor.cast(self.rows.counts, "int32")
        if min(rest, default=1) < 0:
            raise Error(
                "config",
                f"fluid.layers.tensor_array_to_tensor of an array of {[-1, *rest]} from a loop",
                "all sizes but the first must be known",
            )
        stacked = tensor.reshape(self.rows.values, [count, -1, *rest])
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 2)]
        stacked = tensor.transpose(stacked, order)
        if is_stacked:
            return stacked, tensor.full([count], 1, "int32")
        sizes: list[Any] = [-1, *rest]
        each, sizes[axis] = sizes[axis], -1
        sizes[0] = tensor.shape(stacked)[0]
        return tensor.reshape(stacked, sizes), tensor.full([count], each, "int32")


class _Numbers:
    """What levels are like."""

    shape = (-1,)
    dtype = "int64"


_NUMBERS: Any = _Numbers()


def _count(x):
    return tensor.cast(tensor.shape(x)[0:1], "int64")


def _number(i):
    """A place as int64 [1]."""
    if isinstance(i, Variable):
        return tensor.cast(tensor.reshape(i, [1]), "int64")
    return tensor.full([1], int(i), "int64")


def _next(i):
    return _number(i) + 1 if isinstance(i, Variable) else i + 1


def _sum(counts):
    return tensor.sum(counts, 0, keepdim=True)


def create_array(dtype: DTypeLike, initialized_list: Sequence[Any] | None = None) -> TensorArray:
    """An array of these variables."""
    return TensorArray(initialized_list or ())


def array_write(x: Variable, i: Any, array: TensorArray | None = None) -> TensorArray:
    """The array with a copy of x at the place i; before it, nothing where there was none."""
    array = TensorArray() if array is None else array
    packed = array.packed(i, x)
    if packed is not None:
        packed[i] = x
        return array
    place = int(value_of(i))
    array += [None] * (place - len(array))
    array[place : place + 1] = [tensor.assign(x)]
    return array


def array_read(array: TensorArray, i: Any) -> Variable:
    """What lies at the place i."""
    packed = array.packed(i)
    if packed is not None:
        return packed[i]
    place = int(value_of(i))
    if not 0 <= place < len(array) or array[place] is None:
        raise Error("config", f"fluid.layers.array_read at {place} of an array of {len(array)}")
    found: Variable = array[place]
    return found


def array_length(array: TensorArray) -> Variable:
    """How many variables it has. Shape: [1] int64."""
    packed = array.packed(None)
    if packed is not None:
        return tensor.cast(tensor.shape(packed.rows.counts), "int64")
    return tensor.assign(numpy.array([len(array)], dtype="int64"))


def tensor_array_to_tensor(
    input: TensorArray, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """(the variables side by side along `axis`, or stacked; their sizes along it, int32)."""
    packed = input.packed(None)
    if packed is not None:
        return packed.whole(axis, use_stack)
    whole = tensor.stack(input, axis) if use_stack else tensor.concat(input, axis)
    sizes = [1 if use_stack else one.shape[axis] for one in input]
    return whole, tensor.assign(numpy.array(sizes, dtype="int32"))
