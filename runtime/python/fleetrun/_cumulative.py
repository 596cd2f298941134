"""Functions of paddle over the values up to each along an axis. Part of fleetrun/tensor.py."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._graph import append, temporaries, unique_name
from fleetrun._types import DTypeLike, Variable


def _along(operator: str, x: Variable, axis: int | None, dtype: DTypeLike | None) -> Variable:
    x = x if dtype is None else tensor.cast(x, dtype)
    if axis is None:
        x, axis = tensor.flatten(x), 0
    made: Variable = append(operator, operator, [x], {"axis": int(axis)})
    return made


def cumprod(
    x: Variable, dim: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """The product of the values up to each along `dim`, of the flattened x without."""
    return _along("cumprod", x, dim, dtype)


def logcumsumexp(
    x: Variable, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """log(cumsum(exp(x))), without overflow."""
    return _along("logcumsumexp", x, axis, dtype)


def _extreme(operator: str, x: Variable, axis: int | None, dtype: DTypeLike) -> tuple[Variable, Variable]:
    if axis is None:
        x, axis = tensor.flatten(x), 0
    outputs = temporaries(unique_name(operator), 2)
    values, places = append(operator, operator, [x], {"axis": int(axis)}, outputs)
    return values, tensor.cast(places, dtype)


def cummax(
    x: Variable, axis: int | None = None, dtype: DTypeLike = "int64", name: str | None = None
) -> tuple[Variable, Variable]:
    """(the greatest value up to each along `axis`, or of the flattened x, and the last place that has it)."""
    return _extreme("cummax", x, axis, dtype)


def cummin(
    x: Variable, axis: int | None = None, dtype: DTypeLike = "int64", name: str | None = None
) -> tuple[Variable, Variable]:
    """(the smallest value up to each along `axis`, or of the flattened x, and the last place that has it)."""
    return _extreme("cummin", x, axis, dtype)


def cumulative_trapezoid(
    y: Variable, x: Variable | None = None, dx: float | None = None, axis: int = -1, name: str | None = None
) -> Variable:
    """The area below y up to each value but the first, by trapezoids; x: where its values are, else dx (1)
    apart."""
    end = tensor.slice(y, [axis], [1], [2**31 - 1])
    begin = tensor.slice(y, [axis], [0], [-1])
    if x is None:
        return tensor.cumsum(tensor.scale(end + begin, 0.5 * (1.0 if dx is None else dx)), axis)
    width = tensor.diff(x, 1, -1 if x.ndim == 1 else axis)
    return tensor.cumsum(tensor.scale((end + begin) * width, 0.5), axis)
