"""Functions of nn.functional that slide a window over sequences [n, channels, wide] or images [n, channels,
high, wide].

`padding` is a number for all sides, a list with one for each axis, a list with those before and after each
axis, a list of such pairs for all dimensions, "VALID" (none) or "SAME" (as many places as the axis has steps
of the stride).
"""

from fleetrun import framework, tensor
from fleetrun._arguments import as_list, refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable


def conv1d(
    x: Variable,
    weight: Variable,
    bias: Variable | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = "NCL",
    name: str | None = None,
) -> Variable:
    """The convolution of x[n, channels, wide] and weight[filters, channels / groups, kernel], plus
    bias[filters]."""
    return _convolution(
        "conv1d", x, weight, bias, stride, padding, dilation, groups, data_format, ("NCL", "NLC")
    )


def conv2d(
    x: Variable,
    weight: Variable,
    bias: Variable | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """The convolution of x[n, channels, high, wide] and weight[filters, channels / groups, kernel, kernel],
    plus bias."""
    return conv2d_of(None, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv2d_of(
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
    """conv2d whose result has the name of `layer`."""
    formats = ("NCHW", "NHWC")
    return _convolution(
        "conv2d", x, weight, bias, stride, padding, dilation, groups, data_format, formats, layer
    )


def max_pool1d(
    x: Variable,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[Any] = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Any:
    """The largest value under each window of x[n, channels, wide]; return_mask: and where it was, int32."""
    return _max_pool("max_pool1d", x, 1, kernel_size, stride, padding, return_mask, ceil_mode, "NCL")


def max_pool2d(
    x: Variable,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[Any] = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """The largest value under each window of x[n, channels, high, wide]; return_mask: and where in its
    channel, int32."""
    return _max_pool("max_pool2d", x, 2, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


def avg_pool1d(
    x: Variable,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[Any] = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Variable:
    """The mean under each window of x[n, channels, wide]; exclusive: padding is not counted."""
    return _avg_pool("avg_pool1d", x, 1, kernel_size, stride, padding, exclusive, ceil_mode, None, "NCL")


def avg_pool2d(
    x: Variable,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[Any] = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int | None = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """The mean under each window of x[n, channels, high, wide]; divisor_override: divided by this instead of
    the count."""
    return _avg_pool(
        "avg_pool2d", x, 2, kernel_size, stride, padding, exclusive, ceil_mode, divisor_override, data_format
    )


def avg_pool2d_of_whole(
    x: Variable,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    exclusive: bool,
    data_format: str,
) -> Variable:
    """avg_pool2d of Paddle 1.x: without exclusive all of the padding counts."""
    return _avg_pool(
        "avg_pool2d", x, 2, kernel_size, stride, padding, exclusive, ceil_mode, None, data_format, whole=True
    )


def uncut(
    where: str, padding: int | str | Sequence[Any], stride: int | Sequence[int], axes: int
) -> tuple[Any, bool]:
    """A padding and a ceil_mode: the windows are those of this padding and ceil_mode=True, and none is cut at
    the far edge. Throws: Error(config)."""
    if isinstance(padding, str) and padding.upper() == "SAME":
        return padding, True  # None is cut.
    ends = _paddings(where, padding, axes)
    for axis, step in enumerate(_each(where, "stride", stride, axes)):
        ends[2 * axis + 1] += step - 1
    return ends, False


def _convolution(
    function, x, weight, bias, stride, padding, dilation, groups, data_format, formats, layer=None
):
    where = f"paddle.nn.functional.{function}"
    last = _channels_last(where, data_format, formats)
    axes = len(formats[0]) - 2
    _expect_axes(where, x, axes)
    window = _window(where, _first(x, last), weight.shape[2:], stride, padding, dilation)
    inputs = [_first(x, last), weight] if bias is None else [_first(x, last), weight, bias]
    # The name that Paddle gives the result, and counts.
    each_alone = groups > 1 and weight.shape[1] == 1 and weight.shape[0] % groups == 0
    kind = "depthwise_conv2d" if each_alone else "conv2d"
    return _back(
        framework.append(kind, "conv2d", inputs, {**window, "groups": int(groups)}, layer=layer), last
    )


def _max_pool(function, x, axes, kernel, stride, padding, return_mask, ceil_mode, data_format):
    x, attributes, last = _pool(function, x, axes, kernel, stride, padding, ceil_mode, data_format)
    if return_mask and last:
        raise Error(
            "config",
            f"paddle.nn.functional.{function}(return_mask=True) of {data_format} is not supported",
            "use the data_format with channels first",
        )
    outputs = framework.temporaries(framework.unique_name(function), 2)
    out, mask = framework.append(function, "max_pool2d", [x], attributes, outputs)
    return (out, mask) if return_mask else _back(out, last)


def _avg_pool(
    function, x, axes, kernel, stride, padding, exclusive, ceil_mode, divisor, data_format, whole=False
):
    x, attributes, last = _pool(function, x, axes, kernel, stride, padding, ceil_mode, data_format)
    attributes["exclusive"] = bool(exclusive)
    if not exclusive and not whole and attributes["paddings"][::2] != attributes["paddings"][1::2]:
        attributes["mirrored"] = True
    out = framework.append(function, "avg_pool2d", [x], attributes)
    if divisor is not None:
        size = 1
        for one in attributes["ksize"]:
            size *= one
        out = tensor.scale(out, size / divisor)
    return _back(out, last)


def _pool(function, x, axes, kernel, stride, padding, ceil_mode, data_format):
    where = f"paddle.nn.functional.{function}"
    last = _channels_last(where, data_format, ("NCL", "NLC") if axes == 1 else ("NCHW", "NHWC"))
    _expect_axes(where, x, axes)
    x = _first(x, last)
    kernel = _each(where, "kernel_size", kernel, axes)
    window = _window(where, x, kernel, kernel if stride is None else stride, padding, 1)
    return x, {**window, "ksize": kernel, "ceil_mode": bool(ceil_mode)}, last


def _expect_axes(where, x, axes):
    if x.ndim != axes + 2:
        raise Error(
            "config", f"{where}: {x.name} has the shape {list(x.shape)}", f"it needs {axes + 2} dimensions"
        )


def _channels_last(where, data_format, formats):
    if data_format not in formats:
        raise Error(
            "config",
            f'{where}(data_format="{data_format}"): there is no such format',
            f"use {' or '.join(formats)}",
        )
    return data_format == formats[1]


def _first(x, channels_last):
    if not channels_last:
        return x
    return tensor.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _back(x, channels_last):
    return tensor.transpose(x, [0, *range(2, x.ndim), 1]) if channels_last else x


def _each(where, name, value, axes):
    """A number, or a list with one for each axis, as a list."""
    values = [int(one) for one in as_list(value, axes)]
    if len(values) != axes:
        raise Error("config", f"{where}({name}={value!r}) has {len(values)} numbers for {axes} axes")
    return values


def _window(where, x, kernel, stride, padding, dilation):
    """The engine's attributes of a window over x, whose channels come first."""
    axes = len(kernel)
    strides = _each(where, "stride", stride, axes)
    dilations = _each(where, "dilation", dilation, axes)
    if isinstance(padding, str) and padding.upper() == "SAME":
        paddings, dilations = _same(where, x, kernel, strides), [1] * axes
    else:
        paddings = _paddings(where, padding, axes)
    return {"strides": strides, "paddings": paddings, "dilations": dilations}


def _same(where, x, kernel, strides):
    paddings = []
    for size, one, step in zip(x.shape[2:], kernel, strides):
        if size < 0:
            raise Error(
                "config",
                f'{where}(padding="SAME"): {x.name} has the shape {list(x.shape)}',
                "the sizes that the window slides over must be known",
            )
        missing = max((-(-size // step) - 1) * step + one - size, 0)
        paddings += [missing // 2, missing - missing // 2]
    return paddings


def _paddings(where, padding, axes):
    if isinstance(padding, str):
        if padding.upper() != "VALID":
            raise Error(
                "config",
                f'{where}(padding="{padding}"): there is no such padding',
                'use numbers, "SAME" or "VALID"',
            )
        return [0] * (2 * axes)
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [tuple(pair) for pair in padding]
        spatial = pairs[2:] if pairs[:2] == [(0, 0)] * 2 else pairs[1:-1]
        padding = [side for pair in spatial for side in pair]
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * axes:
        return [int(side) for side in padding]
    return [side for side in _each(where, "padding", padding, axes) for _ in range(2)]


def refuse_padding_mode(layer: str, padding_mode: str) -> None:
    """Throws: Error(config) for a padding that is not of zeros."""
    refuse(f"paddle.nn.{layer}", padding_mode=(padding_mode, "zeros"))
