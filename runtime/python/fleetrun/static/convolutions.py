"""Layers of paddle.static.nn with transposed convolutions, and convolutions of volumes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fleetrun import framework
from fleetrun._error import Error
from fleetrun.nn import _transposed, _windows, initializer
from fleetrun.static.activated import activated

if TYPE_CHECKING:
    from fleetrun._types import Any, ParamLike, Sequence, Variable

__all__ = ["conv2d_transpose", "conv3d", "conv3d_transpose"]


def conv2d_transpose(
    input: Variable,
    num_filters: int,
    output_size: int | Sequence[int] | None = None,
    filter_size: int | Sequence[int] | None = None,
    padding: int | str | Sequence[Any] = 0,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """nn.functional.conv2d_transpose with its own weight and, unless bias_attr=False, bias. Shape: input[n,
    channels, high, wide]. Without filter_size the kernel is what output_size needs."""
    window = (output_size, filter_size, padding, stride, dilation, groups)
    channels = input.shape[1 if data_format == "NCHW" else -1]
    # Paddle counts the layers that its own kernel computes by another name.
    kind = "depthwise_conv2d" if channels == groups == num_filters and not use_cudnn else "conv2d"
    layer = name or framework.unique_name(kind + "_transpose")
    return _transposed_layer(2, input, num_filters, *window, param_attr, bias_attr, act, layer, data_format)


def conv3d_transpose(
    input: Variable,
    num_filters: int,
    output_size: int | Sequence[int] | None = None,
    filter_size: int | Sequence[int] | None = None,
    padding: int | str | Sequence[Any] = 0,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """conv2d_transpose of volumes: input[n, channels, deep, high, wide]."""
    window = (output_size, filter_size, padding, stride, dilation, groups)
    layer = name or framework.unique_name("conv3d_transpose")
    return _transposed_layer(3, input, num_filters, *window, param_attr, bias_attr, act, layer, data_format)


def _transposed_layer(
    axes, input, filters, size, kernel, padding, stride, dilation, groups, weight, bias, act, layer,
    data_format,
):  # fmt: skip
    where = f"paddle.static.nn.conv{axes}d_transpose"
    first = data_format.startswith("NC")
    channels = input.shape[1 if first else -1]
    if kernel is None:
        sizes = input.shape[2:] if first else input.shape[1:-1]
        kernel = _kernel(where, size, sizes, stride, padding, dilation)
    else:
        kernel = _windows._each(where, "filter_size", kernel, axes)
    parts = groups or 1
    shape = [channels, filters // parts, *kernel]
    weight = framework.make_parameter(layer, shape, "float32", weight, False, None, named=True)
    bias = _bias(layer, filters, bias)
    window = (stride, padding, 0, dilation, parts, size, data_format)
    made = _transposed.transposed_of if axes == 2 else _transposed.volumes_of
    return activated(where, act, made(layer, input, weight, bias, *window))


def _kernel(where, output_size, sizes, stride, padding, dilation):
    """The kernel that makes output_size of these sizes."""
    if output_size is None or min(sizes) < 0:
        raise Error(
            "config",
            f"{where} without filter_size: output_size is {output_size}, the input {list(sizes)}",
            "give it filter_size",
        )
    axes = len(sizes)
    steps, apart = (_windows._each(where, "stride", one, axes) for one in (stride, dilation))
    edges = _windows._paddings(where, padding, axes)
    wanted = _windows._each(where, "output_size", output_size, axes)
    return [
        (wanted[i] - (sizes[i] - 1) * steps[i] + edges[2 * i] + edges[2 * i + 1] - 1) // apart[i] + 1
        for i in range(axes)
    ]


def conv3d(
    input: Variable,
    num_filters: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """nn.functional.conv3d with its own weight and, unless bias_attr=False, bias. Shape: input[n, channels,
    deep, high, wide]."""
    where, layer = "paddle.static.nn.conv3d", name or framework.unique_name("conv3d")
    channels = input.shape[1 if data_format == "NCDHW" else -1]
    kernel = _windows._each(where, "filter_size", filter_size, 3)
    deviation = math.sqrt(2.0 / (math.prod(kernel) * channels))
    weight = framework.make_parameter(
        layer,
        [num_filters, channels // (groups or 1), *kernel],
        "float32",
        param_attr,
        False,
        initializer.Normal(0.0, deviation),
        named=True,
    )
    bias = _bias(layer, num_filters, bias_attr)
    window = (stride, padding, dilation, groups or 1, data_format)
    return activated(where, act, _transposed.conv3d_of(layer, input, weight, bias, *window))


def _bias(layer, count, attr):
    if attr is False:
        return None
    return framework.make_parameter(layer, [count], "float32", attr, True, None, named=True)
