"""Transposed convolutions, and convolutions of volumes, by those of images."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn import _windows


def conv1d_transpose(
    x: Variable,
    weight: Variable,
    bias: Variable | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    output_size: int | Sequence[int] | None = None,
    data_format: str = "NCL",
    name: str | None = None,
) -> Variable:
    """The gradient of conv1d by its input, plus bias[filters]. Shape: x[n, channels, wide], weight[channels,
    filters / groups, kernel]."""
    window = (stride, padding, output_padding, dilation, groups, output_size)
    return _transposed("conv1d_transpose", None, x, weight, bias, *window, data_format)


def conv2d_transpose(
    x: Variable,
    weight: Variable,
    bias: Variable | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_size: int | Sequence[int] | None = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """The gradient of conv2d by its input, plus bias[filters]. Shape: x[n, channels, high, wide],
    weight[channels, filters / groups, kernel, kernel]. output_size: high and wide of the result."""
    window = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return transposed_of(None, x, weight, bias, *window)


def transposed_of(layer: str | None, x: Variable, weight: Variable, *more: Any) -> Variable:
    """conv2d_transpose whose result has the name of `layer`."""
    return _transposed("conv2d_transpose", layer, x, weight, *more)


def _transposed(function, layer, x, weight, bias, stride, padding, more, dilation, groups, size, data_format):
    where = f"paddle.nn.functional.{function}"
    axes = 1 if function == "conv1d_transpose" else 2
    last = _windows._channels_last(where, data_format, ("NCL", "NLC") if axes == 1 else ("NCHW", "NHWC"))
    _windows._expect_axes(where, x, axes)
    x = _windows._first(x, last)
    window = _windows._window(where, x, weight.shape[2:], stride, padding, dilation)
    extra = _windows._each(where, "output_padding", more, axes)
    if size is not None:
        extra = _missing(where, x, weight, window, _windows._each(where, "output_size", size, axes))
    attributes = {**window, "groups": int(groups), "output_padding": extra}
    out = framework.append("conv2d_transpose", "conv2d_transpose", [x, weight], attributes, layer=layer)
    if bias is not None:
        out = out + tensor.reshape(bias, [1, -1] + [1] * axes)
    return _windows._back(out, last)


def _missing(where, x, weight, window, wanted):
    """How much larger than its window says each axis is to be."""
    extra = []
    for axis, size in enumerate(wanted):
        have, step = x.shape[2 + axis], window["strides"][axis]
        if have < 0:
            raise Error(
                "config",
                f"{where}(output_size={wanted}): {x.name} has the shape {list(x.shape)}",
                "the sizes that the window slides over must be known, or leave output_size out",
            )
        before, after = window["paddings"][2 * axis : 2 * axis + 2]
        kernel = window["dilations"][axis] * (weight.shape[2 + axis] - 1) + 1
        least = (have - 1) * step - before - after + kernel
        if not least <= size < least + step:
            raise Error(
                "config",
                f"{where}(output_size={wanted}): axis {axis} can have {least} to {least + step - 1}",
            )
        extra.append(size - least)
    return extra


def conv3d(
    x: Variable,
    weight: Variable,
    bias: Variable | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Variable:
    """The convolution of x[n, channels, deep, high, wide] and weight[filters, channels / groups, kernel,
    kernel, kernel], plus bias[filters]."""
    return conv3d_of(None, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv3d_of(
    layer: str | None,
    x: Variable,
    weight: Variable,
    bias: Variable | None,
    stride: int | Sequence[int],
    padding: int | str | Sequence[Any],
    dilation: int | Sequence[int],
    groups: int,
    data_format: str,
) -> Variable:
    """conv3d whose result has the name of `layer`: what a place covers of the depth lies side by side as
    channels of an image."""
    where = "paddle.nn.functional.conv3d"
    last = _windows._channels_last(where, data_format, ("NCDHW", "NDHWC"))
    _windows._expect_axes(where, x, 3)
    x = _windows._first(x, last)
    window = _windows._window(where, x, weight.shape[2:], stride, padding, dilation)
    (step, *strides), (apart, *dilations) = window["strides"], window["dilations"]
    before, after, *paddings = window["paddings"]
    _, channels, deep, high, wide = x.shape
    kernel = weight.shape[2]
    places = (deep + before + after - apart * (kernel - 1) - 1) // step + 1
    if min(deep, high, wide) < 0 or places < 1:
        raise Error(
            "config",
            f"{where}: {x.name} has the shape {list(x.shape)}, the filter {list(weight.shape)}",
            "the sizes that the window slides over must be known, and as large as it",
        )
    if before or after:
        edges = [
            tensor.zeros([tensor.shape(x)[0], channels, size, high, wide], "float32")
            for size in (before, after)
        ]
        x = tensor.concat([*edges[: before > 0], x, *edges[1 : 1 + (after > 0)]], 2)
    covered = [
        tensor.strided_slice(x, [2], [k * apart], [k * apart + (places - 1) * step + 1], [step])
        for k in range(kernel)
    ]
    # [n, channels, kernel, places, ..] -> [n * places, channels * kernel, ..]
    images = tensor.transpose(tensor.stack(covered, 2), [0, 3, 1, 2, 4, 5])
    images = tensor.reshape(images, [-1, channels * kernel, high, wide])
    flat = tensor.reshape(weight, [weight.shape[0], -1, *weight.shape[3:]])
    inputs = [images, flat] if bias is None else [images, flat, bias]
    attributes = {
        "strides": strides,
        "paddings": paddings,
        "dilations": dilations,
        "groups": int(groups),
    }
    out = framework.append("conv3d", "conv2d", inputs, attributes, layer=layer)
    parted = tensor.reshape(out, [-1, places, *out.shape[1:]])
    return _windows._back(tensor.transpose(parted, [0, 2, 1, 3, 4]), last)
