"""Layers that bring values to mean 0 and variance 1, and PReLU: their functions (_norms.py) with the
parameters they need."""

import math

from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr
from fleetrun._types import Any, DTypeLike, ParamLike, Sequence, Variable
from fleetrun.nn import _norms, initializer
from fleetrun.nn._layer import Layer

__all__ = [
    "BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "GroupNorm", "InstanceNorm1D", "InstanceNorm2D",
    "InstanceNorm3D", "LayerNorm", "PReLU",
]  # fmt: skip


class LayerNorm(Layer):
    """functional.layer_norm. weight 1 and bias 0, of as many values as normalized_shape has; an attribute
    False: none."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-05,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._shape = as_list(normalized_shape)
        self._epsilon = epsilon
        size = [math.prod(self._shape)]
        self.weight = (
            None
            if weight_attr is False
            else self.create_parameter(size, attr=weight_attr, default_initializer=initializer.Constant(1.0))
        )
        self.bias: Any = (
            None if bias_attr is False else self.create_parameter(size, attr=bias_attr, is_bias=True)
        )

    def forward(self, input: Variable) -> Variable:
        return _norms.layer_norm(input, self._shape, self.weight, self.bias, self._epsilon)


class _BatchNormBase(Layer):
    def _make(self, channels, weight_attr, bias_attr, mean_name, variance_name):
        self.weight = (
            None
            if weight_attr is False
            else self.create_parameter(
                [channels], attr=weight_attr, default_initializer=initializer.Constant(1.0)
            )
        )
        self.bias = (
            None if bias_attr is False else self.create_parameter([channels], attr=bias_attr, is_bias=True)
        )
        self._mean = self._statistic(channels, mean_name, 0.0)
        self._variance = self._statistic(channels, variance_name, 1.0)

    def _statistic(self, channels, name, value):
        return self.create_parameter(
            [channels], attr=ParamAttr(name=name, initializer=initializer.Constant(value), trainable=False)
        )


class BatchNorm(_BatchNormBase):
    """Batch norm as Paddle 1.x had it, with its activation: `act` is a function's name."""

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        dtype: DTypeLike = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__()
        self._make(num_channels, param_attr, bias_attr, moving_mean_name, moving_variance_name)
        self._act = act
        self._numbers = (momentum, epsilon, data_layout)
        self._attributes = {
            "is_test": bool(is_test),
            "use_global_stats": bool(use_global_stats),
            "trainable_statistics": bool(trainable_statistics),
        }

    def forward(self, input: Variable) -> Variable:
        from fleetrun.static.nn import activated

        out = _norms.batch_norm_with(
            input, self.weight, self.bias, self._mean, self._variance, *self._numbers, self._attributes
        )
        return activated("paddle.nn.BatchNorm", self._act, out)


class _BatchNormOf(_BatchNormBase):
    _dimensions: Any = None
    _formats: Any = None

    def __init__(
        self,
        num_features,
        momentum=0.9,
        epsilon=1e-05,
        weight_attr=None,
        bias_attr=None,
        data_format=None,
        use_global_stats=None,
        name=None,
    ):
        super().__init__()
        if data_format not in self._formats:
            raise Error(
                "config",
                f'paddle.nn.{type(self).__name__}(data_format="{data_format}"): there is no such format',
                f"use {', '.join(self._formats)}",
            )
        self._make(num_features, weight_attr, bias_attr, name and name + "_mean", name and name + "_variance")
        self._arguments = {
            "momentum": momentum,
            "epsilon": epsilon,
            "data_format": data_format,
            "use_global_stats": use_global_stats,
        }

    def forward(self, input):
        if input.ndim not in self._dimensions:
            raise Error(
                "config",
                f"paddle.nn.{type(self).__name__}: {input.name} has the shape {list(input.shape)}",
                f"it needs {' or '.join(map(str, self._dimensions))} dimensions",
            )
        return _norms.batch_norm(
            input,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            training=self.training,
            **self._arguments,
        )


class BatchNorm1D(_BatchNormOf):
    """functional.batch_norm of [n, channels] or [n, channels, wide]. weight 1, bias 0, running mean 0 and
    variance 1."""

    _dimensions = (2, 3)
    _formats = ("NC", "NCL", "NLC")

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name
        )


class BatchNorm2D(_BatchNormOf):
    """functional.batch_norm of [n, channels, high, wide]. weight 1, bias 0, running mean 0 and variance 1."""

    _dimensions = (4,)
    _formats = ("NCHW", "NHWC")

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name
        )


class BatchNorm3D(_BatchNormOf):
    """functional.batch_norm of [n, channels, deep, high, wide]. weight 1, bias 0, running mean 0 and variance
    1."""

    _dimensions = (5,)
    _formats = ("NCDHW", "NDHWC")

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCDHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name
        )


class GroupNorm(Layer):
    """Groups of channels of each example to mean 0 and variance 1; weight 1 and bias 0 of each channel, an
    attribute False: none."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-05,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._groups, self._epsilon, self._format = num_groups, epsilon, data_format
        self.weight, self.bias = _of_channels(self, num_channels, weight_attr, bias_attr)

    def forward(self, input: Variable) -> Variable:
        return _norms.group_norm(input, self._groups, self.weight, self.bias, self._epsilon, self._format)


def _of_channels(layer, channels, weight_attr, bias_attr):
    """(weight 1, bias 0) of each channel; None where an attribute is False."""
    one = initializer.Constant(1.0)
    return (
        None
        if weight_attr is False
        else layer.create_parameter([channels], attr=weight_attr, default_initializer=one),
        None if bias_attr is False else layer.create_parameter([channels], attr=bias_attr, is_bias=True),
    )


class _InstanceNorm(Layer):
    """Each channel of each example to mean 0 and variance 1; scale 1 and bias 0 of each channel, both
    attributes False: none. momentum: no effect, as in Paddle."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-05,
        momentum: float = 0.9,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._epsilon = epsilon
        self.scale, self.bias = _of_channels(self, num_features, weight_attr, bias_attr)

    def forward(self, input: Variable) -> Variable:
        return _norms.instance_norm(input, weight=self.scale, bias=self.bias, eps=self._epsilon)


class InstanceNorm1D(_InstanceNorm):
    """Of [batch, channels, length]."""


class InstanceNorm2D(_InstanceNorm):
    """Of [batch, channels, high, wide]."""


class InstanceNorm3D(_InstanceNorm):
    """Of [batch, channels, deep, high, wide]."""


class PReLU(Layer):
    """functional.prelu. weight[num_parameters] is `init`: one for all, or one for each channel."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: ParamLike = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._weight = self.create_parameter(
            [num_parameters], attr=weight_attr, default_initializer=initializer.Constant(init)
        )
        self._data_format = data_format

    def forward(self, x: Variable) -> Variable:
        return _norms.prelu(x, self._weight, self._data_format)
