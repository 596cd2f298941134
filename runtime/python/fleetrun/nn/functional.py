"""Functions of layers: activations, products, lookups, losses. Names, arguments and defaults are Paddle's."""

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun.tensor import _unary, tanh  # noqa: F401, tanh is one of this module's names

relu = _unary("relu", "max(x, 0), value by value.")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)), value by value.")
softsign = _unary("softsign", "x / (1 + |x|), value by value.")


def leaky_relu(x, negative_slope=0.01, name=None):
    """x where it is positive, else negative_slope * x."""
    return framework.append("leaky_relu", "leaky_relu", [x], {"alpha": float(negative_slope)})


def softmax(x, axis=-1, dtype=None, name=None):
    """exp(x) / sum(exp(x)) along the last axis."""
    refuse("paddle.nn.functional.softmax", dtype=(dtype, None))
    _last_axis("softmax", axis, x)
    return framework.append("softmax", "softmax", [x])


def linear(x, weight, bias=None, name=None):
    """x @ weight + bias. Shape: x[.., K], weight[K, M], bias[M] or None -> [.., M]."""
    return framework.append("linear", "linear", [x, weight] if bias is None else [x, weight, bias])


def embedding(x, weight, padding_idx=None, sparse=False, name=None):
    """Rows of `weight` by id. Shape: x[..] int64, weight[V, width] -> [.., width].

    padding_idx: that id gives zeros and learns nothing. sparse: only looked-up rows get gradients.
    """
    return framework.append("embedding", "embedding", [weight, x], {
        "is_sparse": bool(sparse), "padding_idx": _padding(padding_idx, weight.shape[0])})


def _padding(padding_idx, rows):
    if padding_idx is None:
        return -1
    return int(padding_idx) + (rows if padding_idx < 0 else 0)


def dropout(x, p=0.5, axis=None, training=True, mode="upscale_in_train", name=None):
    """Zeroes each value with probability p while training; mode says whether the kept values are scaled then
    ("upscale_in_train") or in a test ("downscale_in_infer")."""
    refuse("paddle.nn.functional.dropout", axis=(axis, None))
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise Error("config", f'paddle.nn.functional.dropout(mode="{mode}"): there is no such mode',
                    'use "upscale_in_train" or "downscale_in_infer"')
    prefix = framework.unique_name("dropout") + ".tmp"
    outputs = [framework.unique_name(prefix) for _ in range(2)]
    return framework.append("dropout", "dropout", [x], {"dropout_prob": float(p), "is_test": not training, "mode": mode},
                            outputs)[0]


def log_loss(input, label, epsilon=0.0001, name=None):  # noqa: A002, Paddle's argument name
    """-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon). Shape: both [batch, 1] float32."""
    return framework.append("log_loss", "log_loss", [input, label], {"epsilon": float(epsilon)})


def square_error_cost(input, label):  # noqa: A002, Paddle's argument name
    """(input - label) squared, value by value. Shape: both the same, float32."""
    return framework.append("square_error_cost", "square_error_cost", [input, label])


def mse_loss(input, label, reduction="mean", name=None):  # noqa: A002, Paddle's argument name
    """square_error_cost, reduced."""
    return _reduced(square_error_cost(input, label), reduction)


def cross_entropy(input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,  # noqa: A002
                  use_softmax=True, label_smoothing=0.0, name=None):
    """-log softmax(input)[label]; with use_softmax=False `input` holds probabilities.

    Shape: input[batch, classes] float32, label[batch, 1] int64, or with soft_label [batch, classes] float32.
    A label of ignore_index gives 0 and learns nothing; with reduction="mean" only its default is taken.
    """
    refuse("paddle.nn.functional.cross_entropy", weight=(weight, None), label_smoothing=(label_smoothing, 0.0))
    if reduction == "mean":
        refuse('paddle.nn.functional.cross_entropy(reduction="mean")', ignore_index=(ignore_index, -100))
    return _reduced(_cross_entropy(input, label, soft_label, ignore_index, axis, use_softmax), reduction)


def _cross_entropy(input, label, soft_label, ignore_index, axis, use_softmax):  # noqa: A002
    _last_axis("cross_entropy", axis, input)
    return framework.append("cross_entropy", "cross_entropy", [input, label], {
        "soft_label": bool(soft_label), "ignore_index": int(ignore_index), "use_softmax": bool(use_softmax)})


def _last_axis(function, axis, x):
    if axis not in (-1, x.ndim - 1):
        raise Error("config", f"paddle.nn.functional.{function}(axis={axis}) of {x.ndim} axes is not supported",
                    "use the last axis, or transpose first")


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """-log softmax(logits)[label], not reduced. Shape: as cross_entropy; the result is [batch, 1]."""
    loss = _cross_entropy(logits, label, soft_label, ignore_index, axis, use_softmax=True)
    return (loss, softmax(logits)) if return_softmax else loss


def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):  # noqa: A002
    """-label * log(input) - (1 - label) * log(1 - input), reduced; 1e-12 is added inside the logarithms."""
    refuse("paddle.nn.functional.binary_cross_entropy", weight=(weight, None))
    return _reduced(log_loss(input, label, epsilon=1e-12), reduction)


def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None, name=None):
    """binary_cross_entropy of sigmoid(logit), computed without overflow, reduced."""
    refuse("paddle.nn.functional.binary_cross_entropy_with_logits", weight=(weight, None), pos_weight=(pos_weight, None))
    loss = framework.append("sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy_with_logits", [logit, label])
    return _reduced(loss, reduction)


def _reduced(loss, reduction):
    if reduction == "mean":
        return tensor.mean(loss)
    if reduction == "sum":
        return tensor.sum(loss)
    if reduction == "none":
        return loss
    raise Error("config", f'reduction="{reduction}" is not a reduction', 'use "mean", "sum" or "none"')


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.nn.functional", {
    **_lazy.names("nn.functional", "relu sigmoid tanh softsign leaky_relu softmax linear embedding dropout log_loss "
                  "square_error_cost mse_loss cross_entropy softmax_with_cross_entropy binary_cross_entropy "
                  "binary_cross_entropy_with_logits"),
    **_lazy.names("nn._windows", "conv1d conv2d max_pool1d max_pool2d avg_pool1d avg_pool2d"),
    **_lazy.names("nn._norms", "layer_norm batch_norm prelu"),
})
