"""Pools with as many windows as results are asked for: window i of n over `size` values has those from
floor(i * size / n) to ceil((i + 1) * size / n)."""

from __future__ import annotations

import numpy

from fleetrun import tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"]


def adaptive_avg_pool1d(x: Variable, output_size: int, name: str | None = None) -> Variable:
    """The means of output_size windows. Shape: x[n, channels, wide] -> [n, channels, output_size]."""
    return _means(x, 2, output_size)


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
    high, wide = _sizes(output_size)
    axis = 1 if last else 2
    return _means(_means(x, axis, high), axis + 1, wide)


def adaptive_max_pool1d(
    x: Variable, output_size: int, return_mask: bool = False, name: str | None = None
) -> Variable:
    """The largest values of output_size windows. Shape: x[n, channels, wide] -> [n, channels,
    output_size]."""
    refuse("paddle.nn.functional.adaptive_max_pool1d", return_mask=(return_mask, False))
    return _largest(x, 2, output_size)


def adaptive_max_pool2d(
    x: Variable, output_size: int | Sequence[int | None], return_mask: bool = False, name: str | None = None
) -> Variable:
    """The largest values of windows, output_size of them along each axis; None: as many as values. Shape:
    x[n, channels, high, wide]."""
    refuse("paddle.nn.functional.adaptive_max_pool2d", return_mask=(return_mask, False))
    high, wide = _sizes(output_size)
    return _largest(_largest(x, 2, high), 3, wide)


def _sizes(output_size):
    return list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * 2


def _windows(x, axis, count):
    """[(begin, end)] of the windows; None for as many as values."""
    size = x.shape[axis]
    if count is None:
        return None
    if size < 1:
        raise Error(
            "config",
            f"an adaptive pool of {x.name}, which has the shape {list(x.shape)}",
            "the axes that are pooled need known sizes",
        )
    count = int(count)
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _means(x, axis, count):
    windows = _windows(x, axis, count)
    if windows is None:
        return x
    weights = numpy.zeros((x.shape[axis], len(windows)), "float32")
    for i, (begin, end) in enumerate(windows):
        weights[begin:end, i] = 1.0 / (end - begin)
    order: Any = [one for one in range(x.ndim) if one != axis] + [axis]
    back = [order.index(one) for one in range(x.ndim)]
    means = tensor.matmul(tensor.transpose(x, order), tensor.assign(weights))
    return tensor.transpose(means, back)


def _largest(x, axis, count):
    windows = _windows(x, axis, count)
    if windows is None:
        return x
    parts = [tensor.max(tensor.slice(x, [axis], [begin], [end]), axis) for begin, end in windows]
    return tensor.stack(parts, axis)
