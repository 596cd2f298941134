"""paddle.fluid.layers: what scripts of Paddle 1.x build a program with, under its names and signatures. Source: document 000."""

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import refuse
from fleetrun.nn import functional
from fleetrun.static import inputs, nn


def data(name, shape, append_batch_size=True, dtype="float32", lod_level=0, type=None, stop_gradient=True):  # noqa: A002
    """An input that is fed by name. append_batch_size: shape is that of one example, unless it names the batch with -1."""
    refuse("fluid.layers.data", type=(type, None))
    sizes = [-1 if size is None else int(size) for size in shape]
    if append_batch_size and not any(size < 0 for size in sizes):
        sizes = [-1, *sizes]
    variable = inputs.data(name, sizes, dtype, lod_level)
    variable.stop_gradient = stop_gradient
    return variable


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):  # noqa: A002
    """act(input @ weight + bias), for a list of inputs the sum of their products."""
    return nn.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None,  # noqa: A002
              dtype="float32"):
    """Rows of a new parameter by id. Shape: input[.., 1] int64 -> [.., width]: the last axis of ids has one, as here in 1.x."""
    rows = nn.embedding(input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)
    if input.lod_level == 0 and input.ndim > 1 and input.shape[-1] == 1:
        return tensor.squeeze(rows, [-2])
    return rows


def concat(input, axis=0, name=None):  # noqa: A002
    """Variables behind each other along an axis."""
    return tensor.concat(input, axis)


def mean(x, name=None):
    """The mean of all values."""
    return tensor.mean(x)


def reduce_sum(input, dim=None, keep_dim=False, name=None):  # noqa: A002
    """The sum over axes, all when none is given."""
    return tensor.sum(input, axis=dim, keepdim=keep_dim)


def reduce_mean(input, dim=None, keep_dim=False, name=None):  # noqa: A002
    """The mean over axes, all when none is given."""
    return tensor.mean(input, axis=dim, keepdim=keep_dim)


def cross_entropy(input, label, soft_label=False, ignore_index=-100):  # noqa: A002
    """-log of the label's probability, one for each example: `input` has probabilities, those of a softmax."""
    return functional.cross_entropy(input, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label,
                                    use_softmax=False)


def relu(x, name=None):
    """max(x, 0)."""
    return functional.relu(x)


def sigmoid(x, name=None):
    """1 / (1 + exp(-x))."""
    return functional.sigmoid(x)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter of `shape`."""
    return framework.create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.fluid.layers", {
    **{name: f"fluid.layers:{name}" for name in ("data fc embedding concat mean reduce_sum reduce_mean cross_entropy relu sigmoid "
                                                 "create_parameter").split()},
    **_lazy.names("static.metrics", "auc accuracy"),
    **_lazy.names("static.inputs", "create_global_var"),
    **_lazy.names("static.nn", "sequence_pool continuous_value_model"),
    **_lazy.names("nn.functional", "softmax log_loss square_error_cost softmax_with_cross_entropy"),
    **_lazy.names("tensor", "cast reshape stack split slice matmul"),
})
