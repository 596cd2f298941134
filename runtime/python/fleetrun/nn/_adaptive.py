"""Pools with as many windows as results are asked for: window i of n over `size` values has those from
floor(i * size / n) to ceil((i + 1) * size / n)."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"]


def adaptive_avg_pool1d(x: Variable, output_size: int, name: str | None = None) -> Variable:
    """The means of output_size windows. Shape: x[n, channels, wide] -> [n, channels, output_size]."""
    return _pool("adaptive_avg_pool1d", "avg_pool2d", x, [output_size])[0]


def adaptive_avg_pool2d(
    x: Variable,
    output_size: int | Sequence[int | None],
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """The means of windows, output_size of them along each axis; None: as many as values. Shape: x[n,
    channels, high, wide]."""
    last = data_format == "NHWC"
    if not last and data_format != "NCHW":
        raise Error("config", f'adaptive_avg_pool2d(data_format="{data_format}")', "use NCHW or NHWC")
    first = tensor.transpose(x, [0, 3, 1, 2]) if last else x
    means = _pool("adaptive_avg_pool2d", "avg_pool2d", first, _sizes(output_size))[0]
    return tensor.transpose(means, [0, 2, 3, 1]) if last else means


def adaptive_max_pool1d(
    x: Variable, output_size: int, return_mask: bool = False, name: str | None = None
) -> Any:
    """The largest values of output_size windows; return_mask: and where they were, int32. Shape: x[n,
    channels, wide] -> [n, channels, output_size]."""
    both = _pool("adaptive_max_pool1d", "max_pool2d", x, [output_size])
    return both if return_mask else both[0]


def adaptive_max_pool2d(
    x: Variable, output_size: int | Sequence[int | None], return_mask: bool = False, name: str | None = None
) -> Any:
    """The largest values of windows, output_size of them along each axis; None: as many as values;
    return_mask: and where in their channel they were, int32. Shape: x[n, channels, high, wide]."""
    both = _pool("adaptive_max_pool2d", "max_pool2d", x, _sizes(output_size))
    return both if return_mask else both[0]


def _sizes(output_size):
    return list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * 2


def _pool(function, operator, x, sizes):
    """The results of the operator, as a tuple."""
    names = framework.temporaries(framework.unique_name(function), 2 if operator == "max_pool2d" else 1)
    attributes = {"ksize": [int(size or 0) for size in sizes], "adaptive": True}
    made = framework.append(function, operator, [x], attributes, names)
    return made if isinstance(made, (list, tuple)) else (made,)
