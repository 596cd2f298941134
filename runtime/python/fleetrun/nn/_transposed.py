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


def conv3d_transpose(
    x: Variable,
    weight: Variable,
    bias: Variable | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    output_size: int | Sequence[int] | None = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Variable:
    """The gradient of conv3d by its input, plus bias[filters]. Shape: x[n, channels, deep, high, wide] of
    known sizes but n, weight[channels, filters / groups, kernel, kernel, kernel]."""
    window = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return volumes_of(None, x, weight, bias, *window)


def volumes_of(layer: str | None, x: Variable, weight: Variable, *more: Any) -> Variable:
    """conv3d_transpose whose result has the name of `layer`: each picture is transposed into one for each
    place of the kernel's depth, then these into the places that they add to."""
    bias, stride, padding, output_padding, dilation, groups, output_size, data_format = more
    where = "paddle.nn.functional.conv3d_transpose"
    last = _windows._channels_last(where, data_format, ("NCDHW", "NDHWC"))
    _windows._expect_axes(where, x, 3)
    x = _windows._first(x, last)
    channels, deep, high, wide = x.shape[1:]
    if min(deep, high, wide) < 1:
        raise Error("config", f"{where}: {x.name} has the shape {list(x.shape)}",
                    "all axes but the first need known sizes")  # fmt: skip
    window = _windows._window(where, x, weight.shape[2:], stride, padding, dilation)
    extra = _windows._each(where, "output_padding", output_padding, 3)
    if output_size is not None:
        extra = _missing(where, x, weight, window, _windows._each(where, "output_size", output_size, 3))
    (step, *steps), (apart, *aparts) = window["strides"], window["dilations"]
    (before, after, *edges), (more_deep, *more_edges) = window["paddings"], extra
    filters, kernel = weight.shape[1] * groups, weight.shape[2]
    images = tensor.reshape(tensor.transpose(x, [0, 2, 1, 3, 4]), [-1, channels, high, wide])
    flat = tensor.reshape(weight, [channels, weight.shape[1] * kernel, *weight.shape[3:]])
    attributes = {"strides": steps, "paddings": edges, "dilations": aparts, "groups": int(groups),
                  "output_padding": more_edges}  # fmt: skip
    made = framework.append("pictures", "conv2d_transpose", [images, flat], attributes)
    high, wide = made.shape[2:]
    parts = tensor.reshape(made, [-1, deep, filters * kernel, high * wide])
    places = tensor.tile(tensor.reshape(tensor.eye(kernel), [kernel, 1, kernel, 1]), [filters, 1, 1, 1])
    attributes = {"strides": [step, 1], "paddings": [before, after, 0, 0], "dilations": [apart, 1],
                  "groups": filters, "output_padding": [more_deep, 0]}  # fmt: skip
    inputs = [tensor.transpose(parts, [0, 2, 1, 3]), places]
    made = framework.append("conv3d_transpose", "conv2d_transpose", inputs, attributes, layer=layer)
    out = tensor.reshape(made, [-1, filters, made.shape[2], high, wide])
    if bias is not None:
        out = out + tensor.reshape(bias, [1, -1, 1, 1, 1])
    return _windows._back(out, last)


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
