"""Layers with transposed convolutions, convolutions of volumes and trees of classes: their functions
(_transposed.py, _hierarchy.py) with the parameters they need."""

from __future__ import annotations

from fleetrun._error import Error
from fleetrun._types import Any, ParamLike, Sequence, Variable
from fleetrun.nn import _hierarchy, _transposed, _windows, windows
from fleetrun.nn._layer import Layer

__all__ = ["Conv1DTranspose", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "HSigmoidLoss"]


class _Transposed(Layer):
    """weight[in_channels, out_channels / groups, kernel…], bias 0."""

    _axes: Any = None
    _function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise Error(
                "config",
                f"paddle.nn.{type(self).__name__}: {in_channels} channels to {out_channels} do not divide "
                f"into {groups} groups",
            )
        kernel = _windows._each(type(self).__name__, "kernel_size", kernel_size, self._axes)
        shape = [in_channels, out_channels // groups, *kernel]
        self.weight = self.create_parameter(shape, attr=weight_attr)
        self.bias = (
            None
            if bias_attr is False
            else self.create_parameter([out_channels], attr=bias_attr, is_bias=True)
        )
        self._arguments = {
            "stride": stride,
            "padding": padding,
            "output_padding": output_padding,
            "dilation": dilation,
            "groups": groups,
            "data_format": data_format or ("NCL", "NCHW", "NCDHW")[self._axes - 1],
        }

    def forward(self, x: Variable, output_size: int | Sequence[int] | None = None) -> Variable:
        """The transposed convolution of x, which output_size says the size of, instead of output_padding."""
        given = dict(self._arguments)
        if output_size is not None:
            given.update(output_size=output_size, output_padding=0)
        made: Variable = type(self)._function(x, self.weight, self.bias, **given)
        return made


class Conv1DTranspose(_Transposed):
    """functional.conv1d_transpose with a weight and, unless bias_attr=False, a bias."""

    _axes = 1
    _function = staticmethod(_transposed.conv1d_transpose)


class Conv3DTranspose(_Transposed):
    """functional.conv3d_transpose with a weight and, unless bias_attr=False, a bias."""

    _axes = 3
    _function = staticmethod(_transposed.conv3d_transpose)


class Conv2DTranspose(_Transposed):
    """functional.conv2d_transpose with a weight and, unless bias_attr=False, a bias."""

    _axes = 2
    _function = staticmethod(_transposed.conv2d_transpose)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCHW",
    ) -> None:
        sizes = (stride, padding, output_padding, groups, dilation)
        super().__init__(in_channels, out_channels, kernel_size, *sizes, weight_attr, bias_attr, data_format)


class Conv3D(windows._Convolution):
    """functional.conv3d with a weight and, unless bias_attr=False, a bias."""

    _axes = 3
    _function = staticmethod(_transposed.conv3d)

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
        data_format: str = "NCDHW",
    ) -> None:
        window = (stride, padding, dilation, groups, padding_mode)
        super().__init__(in_channels, out_channels, kernel_size, *window, weight_attr, bias_attr, data_format)


class HSigmoidLoss(Layer):
    """functional.hsigmoid_loss with a weight and, unless bias_attr=False, a bias."""

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._classes, self._is_sparse = num_classes, is_sparse
        nodes = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([nodes, feature_size], attr=weight_attr)
        self.bias = (
            None if bias_attr is False else self.create_parameter([nodes, 1], attr=bias_attr, is_bias=True)
        )

    def forward(
        self,
        input: Variable,
        label: Variable,
        path_table: Variable | None = None,
        path_code: Variable | None = None,
    ) -> Variable:
        """The cost of each label's way, [n, 1]."""
        paths = (path_table, path_code)
        return _hierarchy.hsigmoid_loss(
            input, label, self._classes, self.weight, self.bias, *paths, self._is_sparse
        )
