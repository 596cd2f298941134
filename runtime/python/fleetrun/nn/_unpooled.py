"""Functions of nn.functional that put windows back to where they were taken from."""

from __future__ import annotations

import math

from fleetrun import tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn._windows import _each


def fold(
    x: Variable,
    output_sizes: int | Sequence[int],
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """The sum of the windows of images, each where it was: what unfold() took apart. Shape: [n, c * kernel,
    windows] -> [n, c, high, wide]."""
    where = "paddle.nn.functional.fold"
    high, wide = _each(where, "output_sizes", output_sizes, 2)
    kernel, stride = _each(where, "kernel_sizes", kernel_sizes, 2), _each(where, "strides", strides, 2)
    apart = _each(where, "dilations", dilations, 2)
    four = isinstance(paddings, (list, tuple)) and len(paddings) == 4
    sides: Any = paddings if four else _each(where, "paddings", paddings, 2) * 2
    top, left, bottom, right = sides
    outer = [high + top + bottom, wide + left + right]
    counts = [(outer[k] - apart[k] * (kernel[k] - 1) - 1) // stride[k] + 1 for k in range(2)]
    taken = math.prod(kernel)
    if x.shape[1] % taken or x.shape[2] not in (-1, math.prod(counts)):
        raise Error("config", f"{where} of {x.name} {list(x.shape)}: these sizes give windows "
                    f"of {taken} values, {counts[0]} by {counts[1]}")  # fmt: skip
    places = [
        (row * stride[0] + i * apart[0]) * outer[1] + column * stride[1] + j * apart[1]
        for i in range(kernel[0])
        for j in range(kernel[1])
        for row in range(counts[0])
        for column in range(counts[1])
    ]
    channels = x.shape[1] // taken
    rows = tensor.transpose(tensor.reshape(x, [-1, channels, len(places)]), [2, 0, 1])
    nothing = tensor.scale(tensor.slice(rows, [0], [0], [1]), 0.0)
    nothing = tensor.expand(nothing, [math.prod(outer), -1, -1])
    summed = tensor.scatter(nothing, tensor.to_tensor(places, "int64"), rows, overwrite=False)
    made = tensor.reshape(tensor.transpose(summed, [1, 2, 0]), [-1, channels, *outer])
    return tensor.slice(made, [2, 3], [top, left], [top + high, left + wide])


def _max_unpool(
    axes: int, x: Variable, indices: Variable, kernel_size: Any, stride: Any, padding: Any,
    data_format: tuple[str, str], output_size: Any,
) -> Variable:  # fmt: skip
    where = f"paddle.nn.functional.max_unpool{axes}d"
    refuse(where, data_format=data_format)
    kernel = _each(where, "kernel_size", kernel_size, axes)
    step = kernel if stride is None else _each(where, "stride", stride, axes)
    around = _each(where, "padding", padding, axes)
    sizes = [(x.shape[2 + k] - 1) * step[k] + kernel[k] - 2 * around[k] for k in range(axes)]
    if output_size is not None:
        asked = list(output_size)[-axes:]
        if any(not abs(one - size) < near for one, size, near in zip(asked, sizes, step)):
            raise ValueError(f"{where}: output_size {asked} is not within a stride of {sizes}")
        sizes = asked
    channels, count = x.shape[1], math.prod(sizes)
    flat = tensor.reshape(x, [0, channels, -1])
    nothing = tensor.scale(tensor.slice(flat, [2], [0], [1]), 0.0)
    places = tensor.reshape(tensor.cast(indices, "int64"), [0, channels, -1])
    made = tensor.put_along_axis(tensor.expand(nothing, [-1, -1, count]), places, flat, 2, broadcast=False)
    return tensor.reshape(made, [0, channels, *sizes])


def max_unpool1d(
    x: Variable, indices: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0,
    data_format: str = "NCL", output_size: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """The values of max_pool1d(return_mask=True) where they were, 0 elsewhere. Shape: [n, c, wide]."""
    return _max_unpool(1, x, indices, kernel_size, stride, padding, (data_format, "NCL"), output_size)


def max_unpool2d(
    x: Variable, indices: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0,
    data_format: str = "NCHW", output_size: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """The values of max_pool2d(return_mask=True) where they were, 0 elsewhere. Shape: [n, c, high, wide]."""
    return _max_unpool(2, x, indices, kernel_size, stride, padding, (data_format, "NCHW"), output_size)


def max_unpool3d(
    x: Variable, indices: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0,
    data_format: str = "NCDHW", output_size: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """The values of max_pool3d(return_mask=True) where they were, 0 elsewhere. Shape: [n, c, deep, high,
    wide]."""
    return _max_unpool(3, x, indices, kernel_size, stride, padding, (data_format, "NCDHW"), output_size)
