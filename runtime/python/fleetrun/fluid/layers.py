"""paddle.fluid.layers: what scripts of Paddle 1.x build a program with, under its names and signatures.
Source: document 000."""

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import refuse
from fleetrun._types import Any, DTypeLike, Initializer, ParamLike, Sequence, Variable
from fleetrun.nn import functional
from fleetrun.nn.functional import log_loss, softmax, softmax_with_cross_entropy, square_error_cost
from fleetrun.static import inputs, nn
from fleetrun.static.inputs import create_global_var
from fleetrun.static.metrics import accuracy, auc
from fleetrun.static.nn import continuous_value_model, sequence_pool
from fleetrun.tensor import cast, matmul, reshape, slice, split, stack

__all__ = [
    "accuracy", "auc", "cast", "concat", "continuous_value_model", "create_global_var", "create_parameter",
    "cross_entropy", "data", "embedding", "fc", "log_loss", "matmul", "mean", "reduce_mean", "reduce_sum",
    "relu", "reshape", "sequence_pool", "sigmoid", "slice", "softmax", "softmax_with_cross_entropy",
    "split", "square_error_cost", "stack",
]  # fmt: skip


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: DTypeLike = "float32",
    lod_level: int = 0,
    type: Any = None,
    stop_gradient: bool = True,
) -> Variable:
    """An input that is fed by name. append_batch_size: shape is that of one example, unless it names the
    batch with -1."""
    refuse("fluid.layers.data", type=(type, None))
    sizes = [-1 if size is None else int(size) for size in shape]
    if append_batch_size and not any(size < 0 for size in sizes):
        sizes = [-1, *sizes]
    variable = inputs.data(name, sizes, dtype, lod_level)
    variable.stop_gradient = stop_gradient
    return variable


def fc(
    input: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: ParamLike | Sequence[ParamLike] = None,
    bias_attr: ParamLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(input @ weight + bias), for a list of inputs the sum of their products."""
    return nn.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamLike = None,
    dtype: DTypeLike = "float32",
) -> Variable:
    """Rows of a new parameter by id. Shape: input[.., 1] int64 -> [.., width]: the last axis of ids has one,
    as here in 1.x."""
    rows = nn.embedding(input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)
    if input.ndim > 1 and input.shape[-1] == 1:
        return tensor.squeeze(rows, [-2])
    return rows


def concat(input: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Variables behind each other along an axis."""
    return tensor.concat(input, axis)


def mean(x: Variable, name: str | None = None) -> Variable:
    """The mean of all values."""
    return tensor.mean(x)


def reduce_sum(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """The sum over axes, all when none is given."""
    return tensor.sum(input, axis=dim, keepdim=keep_dim)


def reduce_mean(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """The mean over axes, all when none is given."""
    return tensor.mean(input, axis=dim, keepdim=keep_dim)


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100
) -> Variable:
    """-log of the label's probability, one for each example: `input` has probabilities, those of a
    softmax."""
    return functional.cross_entropy(
        input, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label, use_softmax=False
    )


def relu(x: Variable, name: str | None = None) -> Variable:
    """max(x, 0)."""
    return functional.relu(x)


def sigmoid(x: Variable, name: str | None = None) -> Variable:
    """1 / (1 + exp(-x))."""
    return functional.sigmoid(x)


def create_parameter(
    shape: Sequence[int],
    dtype: DTypeLike,
    name: str | None = None,
    attr: ParamLike = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Variable:
    """A parameter of `shape`."""
    return framework.create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


__getattr__, __dir__ = _lazy.attach(__name__)
