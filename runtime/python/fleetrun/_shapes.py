"""Functions that give values another shape, or part of them. Part of fleetrun/tensor.py."""

from __future__ import annotations

from fleetrun import _numbers
from fleetrun._arguments import plain
from fleetrun._error import Error
from fleetrun._graph import append, temporaries, unique_name
from fleetrun._types import Any, Sequence, Shape, Variable


def concat(x: Variable | Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Variables side by side along `axis`; a copy of one alone."""
    return append("concat", "concat", [x] if isinstance(x, Variable) else list(x), {"axis": int(axis)})


def stack(x: Variable | Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Variables of one shape, stacked along a new axis."""
    return append("stack", "stack", [x] if isinstance(x, Variable) else list(x), {"axis": int(axis)})


def split(
    x: Variable, num_or_sections: int | Sequence[int], axis: int = 0, name: str | None = None
) -> list[Variable]:
    """Parts of x along `axis`: that many equal ones, or of these sizes (one may be -1). Returns a list."""
    kind, num_or_sections = unique_name("split"), plain(num_or_sections)
    if isinstance(num_or_sections, int):
        count, attributes = num_or_sections, {}
    else:
        sections = [int(size) for size in num_or_sections]
        count, attributes = len(sections), {"sections": sections}
    outputs = temporaries(kind, count)
    made = append("split", "split", [x], {"axis": int(axis), **attributes}, outputs)
    return made if isinstance(made, list) else [made]


def reshape(x: Variable, shape: Shape, name: str | None = None) -> Variable:
    """x with another shape: 0 keeps that size, one -1 is computed; sizes may be variables."""
    inputs, attributes = _numbers.resolve("paddle.reshape", [x], shape=_numbers.listed(shape))
    return append("reshape", "reshape", inputs, attributes)


def tile(x: Variable, repeat_times: Shape, name: str | None = None) -> Variable:
    """x repeated so many times along each axis, from the last one; times may be variables."""
    inputs, attributes = _numbers.resolve("paddle.tile", [x], repeat_times=_numbers.listed(repeat_times))
    return append("tile", "tile", inputs, attributes)


def expand(x: Variable, shape: Shape, name: str | None = None) -> Variable:
    """x with axes of 1, and new ones at the front, repeated to `shape`; -1 keeps a size, sizes may be
    variables."""
    inputs, attributes = _numbers.resolve("paddle.expand", [x], shape=_numbers.listed(shape))
    return append("expand", "expand", inputs, attributes)


broadcast_to = expand


def expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """expand() to y's shape."""
    return append("expand_as", "expand_as", [x, y])


def tril(x: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The values up to that diagonal of the last two axes; 0 above it."""
    return append("tril", "tril", [x], {"diagonal": int(diagonal)})


def triu(x: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The values from that diagonal of the last two axes on; 0 below it."""
    return append("triu", "triu", [x], {"diagonal": int(diagonal)})


def shape(input: Variable) -> Variable:
    """The sizes of `input` when the program runs. Shape: [axes] int32."""
    return append("shape", "shape", [input])


def sizes_of(x: Variable, begin: int = 0) -> list[Any]:
    """The sizes of the axes from `begin` on, for reshape(): numbers where they are known, else variables. One
    of 0, by which reshape() means the size of its input there, is a variable, too."""
    known = x.shape[begin:]
    when_run: Any = None if all(size > 0 for size in known) else shape(x)
    return [size if size > 0 else when_run[axis] for axis, size in enumerate(known, begin)]


def flatten(x: Variable, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Variable:
    """x with the axes start_axis … stop_axis joined into one."""
    return append("flatten", "flatten", [x], {"start_axis": int(start_axis), "stop_axis": int(stop_axis)})


def squeeze(x: Variable, axis: int | Sequence[int] | None = None, name: str | None = None) -> Variable:
    """x without the axes `axis` where they are 1, or without all that are 1 as far as is known."""
    return append("squeeze", "squeeze", [x], {"axes": _numbers.axes(axis)})


def unsqueeze(x: Variable, axis: int | Sequence[int], name: str | None = None) -> Variable:
    """x with new axes of size 1 at these places of the result."""
    return append("unsqueeze", "unsqueeze", [x], {"axes": _numbers.axes(axis)})


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """x with its axes in this order."""
    return append("transpose", "transpose", [x], {"perm": [int(axis) for axis in perm]})


def slice(input: Variable, axes: Sequence[int], starts: Shape, ends: Shape) -> Variable:
    """input[starts:ends] along each of `axes`; negative numbers count from the end, variables may be among
    them."""
    return strided_slice(input, axes, starts, ends, None)


def strided_slice(
    x: Variable,
    axes: Sequence[int],
    starts: Shape,
    ends: Shape,
    strides: Sequence[int] | None,
    name: str | None = None,
) -> Variable:
    """slice() that takes every `strides`-th place; below 0 from `starts` down, where an end of -1 is before
    the first place."""
    inputs, attributes = _numbers.resolve(
        "paddle.slice", [x], starts=_numbers.listed(starts), ends=_numbers.listed(ends)
    )
    steps = {} if strides is None else {"steps": [int(one) for one in strides]}
    return append("slice", "slice", inputs, {"axes": [int(one) for one in axes], **attributes, **steps})


def chunk(x: Variable, chunks: int, axis: int = 0, name: str | None = None) -> list[Variable]:
    """`chunks` equal parts of x along `axis`."""
    return split(x, chunks, axis)


def unbind(input: Variable, axis: int = 0) -> list[Variable]:
    """The parts of `input` along `axis` (of fixed size), without that axis."""
    size = input.shape[axis]
    if size < 0:
        raise Error(
            "config", f"paddle.unbind: axis {axis} of {input.name} {list(input.shape)} has no fixed size"
        )
    return [squeeze(part, axis) for part in split(input, size, axis)]


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """unbind()."""
    return unbind(x, axis)
