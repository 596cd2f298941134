"""The layers: each is its function (functional.py) with the parameters that it needs."""

from fleetrun._types import Any, ParamLike, Sequence, Variable
from fleetrun.nn import functional, initializer
from fleetrun.nn._layer import Layer

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "LeakyReLU",
    "Linear", "MSELoss", "ReLU", "Sigmoid", "Softmax", "Tanh",
]  # fmt: skip


class Linear(Layer):
    """x @ weight + bias. weight[in_features, out_features] XavierUniform, bias[out_features] 0;
    bias_attr=False: none."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()  # `name` names no parameter, in Paddle as here
        self.weight = self.create_parameter([in_features, out_features], attr=weight_attr)
        self.bias = (
            None
            if bias_attr is False
            else self.create_parameter([out_features], attr=bias_attr, is_bias=True)
        )

    def forward(self, input: Variable) -> Variable:
        return functional.linear(input, self.weight, self.bias)


class Embedding(Layer):
    """Rows of weight[num_embeddings, embedding_dim] by id; XavierUniform. Shape: ids[...] int64 -> [...,
    embedding_dim].

    sparse: only looked-up rows get gradients, and on servers the table is a sparse one.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()  # `name` names no parameter, in Paddle as here
        self._sparse = bool(sparse)
        self._padding_idx = padding_idx
        self.weight = self.create_parameter(
            [num_embeddings, embedding_dim], attr=weight_attr, default_initializer=initializer.XavierUniform()
        )

    def forward(self, x: Variable) -> Variable:
        return functional.embedding(x, self.weight, padding_idx=self._padding_idx, sparse=self._sparse)


class Dropout(Layer):
    """functional.dropout, switched off by eval() and in a program cloned for test."""

    def __init__(
        self,
        p: float = 0.5,
        axis: int | Sequence[int] | None = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.p = p
        self.axis = axis
        self.mode = mode

    def forward(self, input: Variable) -> Variable:
        return functional.dropout(input, p=self.p, axis=self.axis, training=self.training, mode=self.mode)


class Flatten(Layer):
    """Joins the axes start_axis … stop_axis into one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self._axes = (start_axis, stop_axis)

    def forward(self, input: Variable) -> Variable:
        from fleetrun import tensor

        return tensor.flatten(input, *self._axes)


class ReLU(Layer):
    """functional.relu."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return functional.relu(x)


class Sigmoid(Layer):
    """functional.sigmoid."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return functional.sigmoid(x)


class Tanh(Layer):
    """functional.tanh."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return functional.tanh(x)


class LeakyReLU(Layer):
    """functional.leaky_relu."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def forward(self, x: Variable) -> Variable:
        return functional.leaky_relu(x, self._negative_slope)


class Softmax(Layer):
    """functional.softmax."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis = axis

    def forward(self, x: Variable) -> Variable:
        return functional.softmax(x, axis=self._axis)


class CrossEntropyLoss(Layer):
    """functional.cross_entropy with these arguments."""

    def __init__(
        self,
        weight: Variable | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int | Sequence[int] = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._arguments: dict[str, Any] = {
            "weight": weight,
            "ignore_index": ignore_index,
            "reduction": reduction,
            "soft_label": soft_label,
            "axis": axis,
            "use_softmax": use_softmax,
            "label_smoothing": label_smoothing,
        }

    def forward(self, input: Variable, label: Variable) -> Variable:
        return functional.cross_entropy(input, label, **self._arguments)


class BCELoss(Layer):
    """functional.binary_cross_entropy with these arguments."""

    def __init__(
        self, weight: Variable | None = None, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__()
        self._arguments: dict[str, Any] = {"weight": weight, "reduction": reduction}

    def forward(self, input: Variable, label: Variable) -> Variable:
        return functional.binary_cross_entropy(input, label, **self._arguments)


class BCEWithLogitsLoss(Layer):
    """functional.binary_cross_entropy_with_logits with these arguments."""

    def __init__(
        self,
        weight: Variable | None = None,
        reduction: str = "mean",
        pos_weight: Variable | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._arguments: dict[str, Any] = {"weight": weight, "reduction": reduction, "pos_weight": pos_weight}

    def forward(self, logit: Variable, label: Variable) -> Variable:
        return functional.binary_cross_entropy_with_logits(logit, label, **self._arguments)


class MSELoss(Layer):
    """functional.mse_loss with these arguments."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self._reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return functional.mse_loss(input, label, reduction=self._reduction)
