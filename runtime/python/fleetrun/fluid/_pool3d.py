"""fluid.layers.pool3d: windows over volumes, first over their pictures, then along them."""

from __future__ import annotations

from fleetrun import _lazy, tensor
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn import functional
from fleetrun.nn._windows import avg_pool2d_of_whole, uncut

__all__ = ["pool3d"]


def pool3d(
    input: Variable,
    pool_size: int | Sequence[int] = -1,
    pool_type: str = "max",
    pool_stride: int | Sequence[int] = 1,
    pool_padding: int | str | Sequence[int] = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCDHW",
) -> Variable:
    """The largest value ("max") or the mean ("avg") of windows; of everything with global_pooling. Without
    exclusive a mean is of the whole window, also where ceil_mode cuts it. Shape: [n, channels, deep, high,
    wide], sizes known but for n. pool_padding: one number, one for each axis, or one for each end of each.
    Throws: Error(config)."""
    return pooled_volumes(
        input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, ceil_mode, exclusive,
        data_format, not exclusive,
    )  # fmt: skip


def pooled_volumes(
    input: Variable,
    pool_size: int | Sequence[int],
    pool_type: str,
    pool_stride: int | Sequence[int],
    pool_padding: int | str | Sequence[int],
    global_pooling: bool,
    ceil_mode: bool,
    exclusive: bool,
    data_format: str,
    whole: bool,
) -> Variable:
    """pool3d; whole: means are of whole windows, also where ceil_mode cuts them. Throws: Error(config)."""
    if pool_type not in ("max", "avg"):
        raise Error("config", f'fluid.layers.pool3d(pool_type="{pool_type}")', 'use "max" or "avg"')
    if data_format not in ("NCDHW", "NDHWC"):
        raise Error("config", f'fluid.layers.pool3d(data_format="{data_format}")', 'use "NCDHW" or "NDHWC"')
    last = data_format == "NDHWC"
    x = tensor.transpose(input, [0, 4, 1, 2, 3]) if last else input
    if min(x.shape[1:]) < 1:
        raise Error("config", f"fluid.layers.pool3d: {input.name} has the shape {list(input.shape)}",
                    "all axes but the first need known sizes")  # fmt: skip
    if global_pooling:
        pool_size, pool_stride, pool_padding = list(x.shape[2:]), 1, 0
    sizes, strides = as_list(pool_size, 3), as_list(pool_stride, 3)
    ends = _ends(pool_padding)

    def pooled(x: Variable, axes: slice, sizes: list[int], strides: list[int]) -> Variable:
        padding: Any = ends if isinstance(ends, str) else sum(ends[axes], [])
        if isinstance(padding, list) and len(padding) == 2:
            padding = [*padding, 0, 0]
        if pool_type == "max":
            made: Variable = functional.max_pool2d(x, sizes, strides, padding, ceil_mode=ceil_mode)
            return made
        if not whole:
            return functional.avg_pool2d(x, sizes, strides, padding, ceil_mode, exclusive)
        kept, ceiled = uncut("pool3d", padding, strides, 2) if ceil_mode else (padding, False)
        return avg_pool2d_of_whole(x, sizes, strides, kept, ceiled, exclusive, "NCHW")

    channels, deep, high, wide = x.shape[1:]
    pictures = tensor.reshape(x, [-1, channels * deep, high, wide])
    pictures = pooled(pictures, slice(1, 3), sizes[1:], strides[1:])
    high, wide = pictures.shape[2:]
    along = tensor.reshape(pictures, [-1, channels, deep, high * wide])
    along = pooled(along, slice(0, 1), [sizes[0], 1], [strides[0], 1])
    out = tensor.reshape(along, [-1, channels, along.shape[2], high, wide])
    return tensor.transpose(out, [0, 2, 3, 4, 1]) if last else out


def _ends(padding):
    """Both ends' padding of each axis, or a word."""
    if isinstance(padding, str):
        return padding
    flat = as_list(padding, 3)
    if len(flat) == 3:
        return [[one, one] for one in flat]
    if len(flat) == 6:
        return [flat[0:2], flat[2:4], flat[4:6]]
    raise Error("config", f"fluid.layers.pool3d(pool_padding={padding!r})", "give 1, 3 or 6 numbers")


__getattr__, __dir__ = _lazy.attach(__name__)
