"""Layers that few models have: their functions with a state or arguments of their own."""

from __future__ import annotations

import math

from fleetrun import tensor
from fleetrun._types import Any, ParamLike, Sequence, Variable
from fleetrun.nn import functional, initializer
from fleetrun.nn._layer import Layer

__all__ = [
    "Bilinear", "CTCLoss", "Softmax2D", "Unflatten", "Unfold", "UpsamplingBilinear2D", "UpsamplingNearest2D",
]  # fmt: skip


class Bilinear(Layer):
    """functional.bilinear with a weight and, unless bias_attr=False, a bias."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(in1_features)
        uniform = initializer.Uniform(-bound, bound)
        shape = [out_features, in1_features, in2_features]
        self.weight = self.create_parameter(shape, attr=weight_attr, default_initializer=uniform)
        self.bias = None
        if bias_attr is not False:
            self.bias = self.create_parameter(
                [1, out_features], attr=bias_attr, is_bias=True, default_initializer=uniform
            )

    def forward(self, x1: Variable, x2: Variable) -> Variable:
        made: Variable = functional.bilinear(x1, x2, self.weight, self.bias)
        return made


class CTCLoss(Layer):
    """functional.ctc_loss."""

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(
        self,
        log_probs: Variable,
        labels: Variable,
        input_lengths: Variable,
        label_lengths: Variable,
        norm_by_times: bool = False,
    ) -> Variable:
        lengths = (input_lengths, label_lengths)
        made: Variable = functional.ctc_loss(
            log_probs, labels, *lengths, self.blank, self.reduction, norm_by_times
        )
        return made


class Softmax2D(Layer):
    """functional.softmax over the channels of [n, channels, high, wide] or [channels, high, wide]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return functional.softmax(x, -3)


class Unflatten(Layer):
    """paddle.unflatten."""

    def __init__(self, axis: int, shape: Sequence[int], name: str | None = None) -> None:
        super().__init__()
        self.axis, self.shape = axis, shape

    def forward(self, input: Variable) -> Variable:
        made: Variable = tensor.unflatten(input, self.axis, self.shape)
        return made


class Unfold(Layer):
    """functional.unfold."""

    def __init__(
        self,
        kernel_sizes: int | Sequence[int],
        dilations: int | Sequence[int] = 1,
        paddings: int | Sequence[int] = 0,
        strides: int | Sequence[int] = 1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._window = (kernel_sizes, strides, paddings, dilations)

    def forward(self, input: Variable) -> Variable:
        made: Variable = functional.unfold(input, *self._window)
        return made


class Fold(Layer):
    """functional.fold."""

    def __init__(
        self,
        output_sizes: int | Sequence[int],
        kernel_sizes: int | Sequence[int],
        dilations: int | Sequence[int] = 1,
        paddings: int | Sequence[int] = 0,
        strides: int | Sequence[int] = 1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._window = (output_sizes, kernel_sizes, strides, paddings, dilations)

    def forward(self, input: Variable) -> Variable:
        made: Variable = functional.fold(input, *self._window)
        return made


class UpsamplingNearest2D(Layer):
    """functional.interpolate of pictures, "nearest"."""

    _how: Any = ("nearest", False)

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.data_format = size, scale_factor, data_format

    def forward(self, x: Variable) -> Variable:
        how = (*self._how, 0, self.data_format)
        made: Variable = functional.interpolate(x, self.size, self.scale_factor, *how)
        return made


class UpsamplingBilinear2D(UpsamplingNearest2D):
    """functional.interpolate of pictures, "bilinear" with align_corners."""

    _how = ("bilinear", True)
