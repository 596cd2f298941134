"""Sequences, images and volumes in other sizes, and their windows as columns. Part of
fleetrun/nn/functional.py."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._padding import constant_pad
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn import functional

_METHODS = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
            "bicubic": "cubic"}  # fmt: skip
_AXES = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}


def resized(
    x: Variable,
    size: Any,
    scale: Any,
    mode: str,
    align_corners: bool,
    align_mode: int,
    last: bool,
    by_size: bool = False,
) -> Variable:
    """The operator over channels first. size: numbers, variables of one, or one variable of all; else scale.
    by_size: places are as far apart as the sizes say, as in 1.x, and not as the scale says."""
    axes = x.ndim - 2
    if mode not in _METHODS or _AXES.get(mode, axes) != axes:
        raise Error(
            "config",
            f"interpolate: mode {mode!r} of {x.name} {list(x.shape)}",
            "use nearest, linear (of [n, channels, width]), bilinear or bicubic (of pictures), or trilinear",
        )
    order = [0, x.ndim - 1, *range(1, x.ndim - 1)]
    x = tensor.transpose(x, order) if last else x
    attributes: dict[str, Any] = {
        "interp_method": _METHODS[mode],
        "align_corners": bool(align_corners),
        "align_mode": int(align_mode),
    }
    inputs = [x]
    if isinstance(size, (list, tuple)) and any(isinstance(one, Variable) for one in size):
        whole = [one if isinstance(one, Variable) else tensor.full([1], one, "int32") for one in size]
        size = tensor.concat([tensor.cast(tensor.reshape(one, [1]), "int32") for one in whole])
    if isinstance(size, Variable):
        inputs.append(tensor.reshape(size, [-1]))
    elif size is not None:
        attributes["sizes"] = [int(one) for one in as_list(size, axes)]
    else:
        scales = list(scale) if isinstance(scale, (list, tuple)) else [scale] * axes
        attributes["scales"] = [float(one) for one in scales]
        attributes["by_size"] = by_size
    out: Variable = framework.append("interpolate", "interpolate", inputs, attributes)
    return tensor.transpose(out, [0, *range(2, x.ndim), 1]) if last else out


def interpolate(
    x: Variable,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x with its axes of space in other sizes. mode: "nearest", "linear", "bilinear", "trilinear", "bicubic"
    or "area" (means of windows). Shape: [n, channels, ..] or with data_format="NHWC" and the like [n, ..,
    channels]."""
    if (size is None) == (scale_factor is None):
        raise Error("config", "interpolate: one of size and scale_factor is needed")
    if isinstance(scale_factor, Variable):
        raise Error(
            "config", f"interpolate: scale_factor is {scale_factor.name}", "give it a number, or size"
        )
    mode = mode.lower()
    if mode == "nearest" and align_corners:
        raise Error("config", "interpolate: align_corners with nearest", "leave align_corners out")
    last = data_format in ("NWC", "NHWC", "NDHWC")
    if mode == "area":
        known = [int(one * float(scale_factor)) for one in x.shape[2:]] if size is None else size
        pool = getattr(functional, f"adaptive_avg_pool{x.ndim - 2}d")
        return pool(x, known[0] if x.ndim == 3 and isinstance(known, list) else known)
    return resized(x, size, scale_factor, mode, align_corners, align_mode, last)


def upsample(
    x: Variable,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """interpolate()."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


def pair(value: int | Sequence[int]) -> list[int]:
    """Two numbers of one or two."""
    return [int(one) for one in as_list(value, 2)]


def unfold(
    x: Variable,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """The values under each place of a window, as a column. paddings: one number, two, or top, left, bottom
    and right. Shape: [n, channels, high, wide], sizes known but for n -> [n, channels * window, places]."""
    kernel, step, apart = pair(kernel_sizes), pair(strides), pair(dilations)
    ends = pair(paddings)
    top, left, bottom, right = ends if len(ends) == 4 else ends * 2
    if min(x.shape[1:]) < 1:
        raise Error(
            "config", f"unfold of {x.name} {list(x.shape)}", "all axes but the first need known sizes"
        )
    x = constant_pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)], 0.0) if any(ends) else x
    _, channels, high, wide = x.shape
    rows = (high - apart[0] * (kernel[0] - 1) - 1) // step[0] + 1
    columns = (wide - apart[1] * (kernel[1] - 1) - 1) // step[1] + 1
    parts = []
    for i in range(kernel[0]):
        for k in range(kernel[1]):
            begin = [i * apart[0], k * apart[1]]
            ends = [begin[0] + (rows - 1) * step[0] + 1, begin[1] + (columns - 1) * step[1] + 1]
            parts.append(tensor.strided_slice(x, [2, 3], begin, ends, step))
    return tensor.reshape(tensor.stack(parts, 2), [-1, channels * len(parts), rows * columns])


def pixel_unshuffle(
    x: Variable, downscale_factor: int, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """Space moved to channels, what pixel_shuffle() undoes. Shape: [n, channels, high, wide] -> [n, channels
    * f², high / f, wide / f]."""
    f = int(downscale_factor)
    if data_format == "NHWC":
        moved = pixel_unshuffle(tensor.transpose(x, [0, 3, 1, 2]), f)
        return tensor.transpose(moved, [0, 2, 3, 1])
    _, channels, high, wide = x.shape
    split = tensor.reshape(x, [-1, channels, high // f, f, wide // f, f])
    moved = tensor.transpose(split, [0, 1, 3, 5, 2, 4])
    return tensor.reshape(moved, [-1, channels * f * f, high // f, wide // f])


def local_response_norm(
    x: Variable,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x / (k + alpha * the mean of squares of `size` neighbouring channels) to the power of beta."""
    return over_channels(x, size, alpha / size, beta, k, data_format in ("NLC", "NHWC", "NDHWC"), size // 2)


def over_channels(
    x: Variable, size: int, alpha: float, beta: float, k: float, last: bool, before: int
) -> Variable:
    """x / (k + alpha * the sum of squares of `size` channels, `before` of them before its own)^beta."""
    axis = x.ndim - 1 if last else 1
    around = [(0, 0)] * x.ndim
    around[axis] = (before, size - 1 - before)
    squares = constant_pad(tensor.square(x), around, 0.0)
    channels = x.shape[axis]
    total = tensor.add_n([tensor.slice(squares, [axis], [i], [i + channels]) for i in range(size)])
    return x / tensor.pow(tensor.scale(total, alpha, k), beta)


def max_pool3d(
    x: Variable,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Variable:
    """The largest value of windows over volumes. Shape: [n, channels, deep, high, wide]."""
    return _pool3d(x, "max", kernel_size, stride, padding, return_mask, None, ceil_mode, True, data_format)


def avg_pool3d(
    x: Variable,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: Any = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Variable:
    """The mean of windows over volumes. Shape: [n, channels, deep, high, wide]."""
    return _pool3d(
        x, "avg", kernel_size, stride, padding, False, divisor_override, ceil_mode, exclusive, data_format
    )


def _pool3d(x, kind, size, stride, padding, mask, divisor, ceil_mode, exclusive, data_format):
    from fleetrun._arguments import refuse
    from fleetrun.fluid._pool3d import pooled_volumes

    refuse(f"paddle.nn.functional.{kind}_pool3d", return_mask=(mask, False), divisor_override=(divisor, None))
    padding = padding.upper() if isinstance(padding, str) else padding
    stride = size if stride is None else stride
    return pooled_volumes(x, size, kind, stride, padding, False, ceil_mode, exclusive, data_format, False)
