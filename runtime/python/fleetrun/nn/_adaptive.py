"""Pools with as many windows as results are asked for: window i of n over `size` values has those from
floor(i * size / n) to ceil((i + 1) * size / n)."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._arguments import as_list, refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
]  # fmt: skip


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
    means = _pool("adaptive_avg_pool2d", "avg_pool2d", first, as_list(output_size, 2))[0]
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
    both = _pool("adaptive_max_pool2d", "max_pool2d", x, as_list(output_size, 2))
    return both if return_mask else both[0]


def adaptive_avg_pool3d(
    x: Variable,
    output_size: int | Sequence[int | None],
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Variable:
    """adaptive_avg_pool2d of volumes x[n, channels, deep, high, wide], of known sizes but n."""
    last = data_format == "NDHWC"
    if not last and data_format != "NCDHW":
        raise Error("config", f'adaptive_avg_pool3d(data_format="{data_format}")', "use NCDHW or NDHWC")
    first = tensor.transpose(x, [0, 4, 1, 2, 3]) if last else x
    means = _volumes("adaptive_avg_pool3d", "avg_pool2d", first, output_size)
    return tensor.transpose(means, [0, 2, 3, 4, 1]) if last else means


def adaptive_max_pool3d(
    x: Variable, output_size: int | Sequence[int | None], return_mask: bool = False, name: str | None = None
) -> Variable:
    """adaptive_max_pool2d of volumes x[n, channels, deep, high, wide], of known sizes but n."""
    refuse("paddle.nn.functional.adaptive_max_pool3d", return_mask=(return_mask, False))
    return _volumes("adaptive_max_pool3d", "max_pool2d", x, output_size)


def _volumes(function, operator, x, output_size):
    """First windows over the pictures, then along the depth: a window is the product of both."""
    channels, deep, high, wide = x.shape[1:]
    if min(x.shape[1:]) < 1:
        raise Error("config", f"paddle.nn.functional.{function}: {x.name} has the shape {list(x.shape)}",
                    "all axes but the first need known sizes")  # fmt: skip
    sizes = [size or own for size, own in zip(as_list(output_size, 3), (deep, high, wide), strict=True)]
    pictures = tensor.reshape(x, [-1, channels * deep, high, wide])
    pictures = _pool(function, operator, pictures, sizes[1:])[0]
    along = tensor.reshape(pictures, [-1, channels, deep, sizes[1] * sizes[2]])
    along = _pool(function, operator, along, [sizes[0], sizes[1] * sizes[2]])[0]
    return tensor.reshape(along, [-1, channels, *sizes])


def _pool(function, operator, x, sizes):
    """The results of the operator, as a tuple."""
    names = framework.temporaries(framework.unique_name(function), 2 if operator == "max_pool2d" else 1)
    attributes = {"ksize": [int(size or 0) for size in sizes], "adaptive": True}
    made = framework.append(function, operator, [x], attributes, names)
    return made if isinstance(made, (list, tuple)) else (made,)
