"""Layers that slide a window over sequences and images: their functions (_windows.py) with the parameters
they need."""

import math

from fleetrun._error import Error
from fleetrun._types import Any, ParamLike, Sequence
from fleetrun.nn import _windows, initializer
from fleetrun.nn._layer import Layer

__all__ = ["AvgPool1D", "AvgPool2D", "Conv1D", "Conv2D", "MaxPool1D", "MaxPool2D"]


class _Convolution(Layer):
    """weight[out_channels, in_channels / groups, kernel…] Normal of deviation sqrt(2 / (kernel… *
    in_channels)), bias 0."""

    _axes: Any = None
    _function: Any = None

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        padding_mode="zeros",
        weight_attr=None,
        bias_attr=None,
        data_format=None,
    ):
        super().__init__()
        _windows.refuse_padding_mode(type(self).__name__, padding_mode)
        if in_channels % groups or out_channels % groups:
            raise Error(
                "config",
                f"paddle.nn.{type(self).__name__}: {in_channels} channels to {out_channels} do not divide "
                f"into {groups} groups",
            )
        kernel = _windows._each(f"paddle.nn.{type(self).__name__}", "kernel_size", kernel_size, self._axes)
        deviation = math.sqrt(2.0 / (math.prod(kernel) * in_channels))
        self.weight = self.create_parameter(
            [out_channels, in_channels // groups, *kernel],
            attr=weight_attr,
            default_initializer=initializer.Normal(0.0, deviation),
        )
        self.bias = (
            None
            if bias_attr is False
            else self.create_parameter([out_channels], attr=bias_attr, is_bias=True)
        )
        self._arguments = {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
            "data_format": data_format,
        }

    def forward(self, x):
        return type(self)._function(x, self.weight, self.bias, **self._arguments)


class Conv1D(_Convolution):
    """functional.conv1d with a weight and, unless bias_attr=False, a bias."""

    _axes = 1
    _function = staticmethod(_windows.conv1d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            padding_mode,
            weight_attr,
            bias_attr,
            data_format,
        )


class Conv2D(_Convolution):
    """functional.conv2d with a weight and, unless bias_attr=False, a bias."""

    _axes = 2
    _function = staticmethod(_windows.conv2d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            padding_mode,
            weight_attr,
            bias_attr,
            data_format,
        )


class _Pool(Layer):
    _function: Any = None

    def __init__(self, **arguments):
        super().__init__()
        self._arguments = arguments

    def forward(self, x):
        return type(self)._function(x, **self._arguments)


class MaxPool1D(_Pool):
    """functional.max_pool1d with these arguments."""

    _function = staticmethod(_windows.max_pool1d)

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | str | Sequence[Any] = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
        )


class MaxPool2D(_Pool):
    """functional.max_pool2d with these arguments."""

    _function = staticmethod(_windows.max_pool2d)

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | str | Sequence[Any] = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )


class AvgPool1D(_Pool):
    """functional.avg_pool1d with these arguments."""

    _function = staticmethod(_windows.avg_pool1d)

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | str | Sequence[Any] = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size, stride=stride, padding=padding, exclusive=exclusive, ceil_mode=ceil_mode
        )


class AvgPool2D(_Pool):
    """functional.avg_pool2d with these arguments."""

    _function = staticmethod(_windows.avg_pool2d)

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | str | Sequence[Any] = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )
