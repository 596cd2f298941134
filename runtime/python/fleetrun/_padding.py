"""Values around those of a variable. Part of fleetrun/nn/functional.py."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable


def _sizes(x: Variable, axis: int, size: int) -> list[Any]:
    """x's shape with `size` at `axis`; sizes that are not known come from the variable itself."""
    known: Any = (
        tensor.shape(x) if any(one < 0 for place, one in enumerate(x.shape) if place != axis) else None
    )
    return [
        size if place == axis else (one if one >= 0 else known[place]) for place, one in enumerate(x.shape)
    ]


def constant_pad(x: Variable, paddings: Sequence[tuple[int, int]], value: float) -> Variable:
    """x with `value` before and behind each axis; a number below 0 cuts off."""
    if not any(before or behind for before, behind in paddings):
        return tensor.assign(x)
    for axis, (before, behind) in enumerate(paddings):
        if before < 0 or behind < 0:
            end = behind if behind < 0 else 2**31 - 1
            x = tensor.slice(x, [axis], [max(-before, 0)], [end])
        parts = [x]
        if before > 0:
            parts.insert(0, tensor.full(_sizes(x, axis, before), value, x.dtype))
        if behind > 0:
            parts.append(tensor.full(_sizes(x, axis, behind), value, x.dtype))
        x = tensor.concat(parts, axis) if len(parts) > 1 else x
    return x


def _places(size: int, before: int, behind: int, mode: str) -> list[int]:
    """Where the values of a padded axis come from."""
    places = range(-before, size + behind)
    if mode == "circular":
        return [place % size for place in places]
    if mode == "replicate":
        return [min(max(place, 0), size - 1) for place in places]
    return [size - 1 - abs(size - 1 - abs(place)) for place in places]


def pad_last(
    x: Variable, paddings: Sequence[tuple[int, int]], mode: str, value: float, data_format: str
) -> Variable:
    """x with its axes of space padded, the first of `paddings` being the first of them. mode: "constant",
    "reflect", "replicate" or "circular". Throws: Error(config)."""
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise Error("config", f'padding with mode="{mode}"', "use constant, reflect, replicate or circular")
    first = 2 if data_format.startswith("NC") else 1
    if mode == "constant":
        around = [(0, 0)] * x.ndim
        around[first : first + len(paddings)] = list(paddings)
        return constant_pad(x, around, value)
    if not any(before or behind for before, behind in paddings):
        return tensor.assign(x)
    for axis, (before, behind) in enumerate(paddings, first):
        size = x.shape[axis]
        if not before and not behind:
            continue
        if size < 0:
            raise Error("config", f"padding {x.name} {list(x.shape)}: axis {axis} has no fixed size")
        places = tensor.to_tensor(_places(size, before, behind, mode), "int64")
        x = tensor.gather(x, places, axis)
    return x
