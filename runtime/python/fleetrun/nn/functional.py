"""Functions of layers: activations, products, lookups, losses. Names, arguments and defaults are Paddle's."""

import sys

from fleetrun import _in_place, _lazy, _more_names, _numbers, framework, tensor
from fleetrun._error import Error
from fleetrun._graph import expect_variable
from fleetrun._types import Any, DTypeLike, Sequence, Variable
from fleetrun.nn._adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
)
from fleetrun.nn._norms import batch_norm, instance_norm, layer_norm, prelu
from fleetrun.nn._windows import avg_pool1d, avg_pool2d, conv1d, conv2d, max_pool1d, max_pool2d
from fleetrun.tensor import _unary, tanh

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "avg_pool1d", "avg_pool2d", "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "conv1d", "conv2d", "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gelu",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "instance_norm", "kl_div", "l1_loss",
    "label_smooth", "layer_norm",
    "leaky_relu", "linear", "log_loss", "log_sigmoid", "log_softmax", "margin_ranking_loss", "max_pool1d",
    "max_pool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "prelu", "relu", "relu6", "selu",
    "sequence_mask", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softmax_with_cross_entropy",
    "softplus", "softsign", "square_error_cost", "swish", "tanh", "tanhshrink",
]  # fmt: skip

relu = _unary("relu", "max(x, 0), value by value.")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)), value by value.")
softsign = _unary("softsign", "x / (1 + |x|), value by value.")
relu6 = _unary("relu6", "x cut to [0, 6], value by value.")
silu = swish = _unary("silu", "x * sigmoid(x), value by value.")
mish = _unary("mish", "x * tanh(softplus(x)), value by value.")
log_sigmoid = _unary("logsigmoid", "log(sigmoid(x)), value by value.")
hardswish = _unary("hard_swish", "x * relu6(x + 3) / 6, value by value.")


def leaky_relu(x: Variable, negative_slope: float = 0.01, name: str | None = None) -> Variable:
    """x where it is positive, else negative_slope * x."""
    return framework.append("leaky_relu", "leaky_relu", [x], {"alpha": float(negative_slope)})


def gelu(x: Variable, approximate: bool = False, name: str | None = None) -> Variable:
    """x times the normal distribution up to x, exactly or through tanh."""
    return framework.append("gelu", "gelu", [x], {"approximate": bool(approximate)})


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return framework.append("elu", "elu", [x], {"alpha": float(alpha)})


def selu(
    x: Variable,
    scale: float = 1.0507009873554804934193349852946,
    alpha: float = 1.6732632423543772848170429916717,
    name: str | None = None,
) -> Variable:
    """scale times elu() with alpha."""
    return framework.append("selu", "selu", [x], {"scale": float(scale), "alpha": float(alpha)})


def softplus(x: Variable, beta: float = 1, threshold: float = 20, name: str | None = None) -> Variable:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold."""
    return framework.append("softplus", "softplus", [x], {"beta": float(beta), "threshold": float(threshold)})


def hardsigmoid(
    x: Variable, slope: float = 0.1666667, offset: float = 0.5, name: str | None = None
) -> Variable:
    """slope * x + offset, cut to [0, 1]."""
    return framework.append(
        "hard_sigmoid", "hard_sigmoid", [x], {"slope": float(slope), "offset": float(offset)}
    )


def hardshrink(x: Variable, threshold: float = 0.5, name: str | None = None) -> Variable:
    """x, 0 within ±threshold."""
    return framework.append("hard_shrink", "hard_shrink", [x], {"threshold": float(threshold)})


def hardtanh(x: Variable, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Variable:
    """x cut to [min, max]."""
    return tensor.clip(x, min, max)


def tanhshrink(x: Variable, name: str | None = None) -> Variable:
    """x - tanh(x)."""
    return x - tanh(x)


def softmax(x: Variable, axis: int = -1, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """exp(x) / sum(exp(x)) along `axis`."""
    x = x if dtype is None else tensor.cast(x, dtype)
    return _along_last(axis, x, lambda last: framework.append("softmax", "softmax", [last]))


def log_softmax(
    x: Variable, axis: int = -1, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """log(softmax(x)) along `axis`, without overflow."""
    x = x if dtype is None else tensor.cast(x, dtype)
    if x.dtype != "float32" or not x.ndim:
        return x - tensor.logsumexp(x, axis, keepdim=True)
    return _along_last(axis, x, lambda last: framework.append("log_softmax", "log_softmax", [last]))


def _along_last(axis, x, function):
    """function(x) with `axis` as the last one."""
    if axis in (-1, x.ndim - 1):
        return function(x)
    to_last, back = _orders(axis, x)
    return tensor.transpose(function(tensor.transpose(x, to_last)), back)


def _orders(axis, x):
    """The axes of x with `axis` as the last one, and how they come back."""
    axis = axis + x.ndim if axis < 0 else axis
    order = [one for one in range(x.ndim) if one != axis] + [axis]
    return order, [order.index(one) for one in range(x.ndim)]


def normalize(
    x: Variable, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: str | None = None
) -> Variable:
    """x / max(its p-norm along `axis`, epsilon)."""
    if p == 2:
        total = tensor.sum(tensor.square(x), axis=axis, keepdim=True)
        return x / tensor.sqrt(tensor.clip(total, min=epsilon * epsilon))
    size = tensor.norm(x, p, axis, keepdim=True)
    return x / tensor.clip(size, min=epsilon)


def cosine_similarity(x1: Variable, x2: Variable, axis: int = 1, eps: float = 1e-8) -> Variable:
    """The cosine of the angle between vectors along `axis`; lengths are at least eps. Shape: without
    `axis`."""
    product = tensor.sum(x1 * x2, axis=axis)
    lengths = tensor.sum(x1 * x1, axis=axis) * tensor.sum(x2 * x2, axis=axis)
    return product / tensor.sqrt(tensor.clip(lengths, min=eps * eps))


def one_hot(x: Variable, num_classes: int, name: str | None = None) -> Variable:
    """1 at the place that x says, else 0. Shape: x[..] of integers -> [.., num_classes] float32."""
    if isinstance(num_classes, framework.Variable):
        raise Error(
            "config",
            f"paddle.nn.functional.one_hot: num_classes is the variable {num_classes.name}",
            "give a number",
        )
    return framework.append("one_hot", "one_hot", [x], {"depth": int(num_classes)})


def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: DTypeLike = "int64", name: str | None = None
) -> Variable:
    """1 at the first x places of maxlen, else 0. Shape: x[..] of integers -> [.., maxlen]."""
    whole = tensor.cast(x, "int64")
    if maxlen is None:
        maxlen = tensor.max(whole)
    if not x.dtype.name.startswith("int"):  # place 2 is one of the first 2.5
        whole = tensor.cast(tensor.ceil(x), "int64")
    places = tensor.arange(0, maxlen, 1, "int64")
    return tensor.cast(tensor.less_than(places, tensor.unsqueeze(whole, -1)), dtype)


def label_smooth(
    label: Variable, prior_dist: Variable | None = None, epsilon: float = 0.1, name: str | None = None
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior_dist, which is 1 / classes without one."""
    label = fixed(label)
    if prior_dist is not None:
        return label * (1.0 - epsilon) + prior_dist * epsilon
    return label * (1.0 - epsilon) + epsilon / label.shape[-1]


def fixed(label: Variable) -> Variable:
    """A label through which no gradient flows: Paddle's losses have none for it."""
    return label if label.stop_gradient else label.detach()


def linear(x: Variable, weight: Variable, bias: Variable | None = None, name: str | None = None) -> Variable:
    """x @ weight + bias. Shape: x[.., K], weight[K, M], bias[M] or None -> [.., M]."""
    return framework.append("linear", "linear", [x, weight] if bias is None else [x, weight, bias])


def embedding(
    x: Variable,
    weight: Variable,
    padding_idx: int | None = None,
    sparse: bool = False,
    name: str | None = None,
) -> Variable:
    """Rows of `weight` by id. Shape: x[..] int64, weight[V, width] -> [.., width].

    padding_idx: that id gives zeros and learns nothing. sparse: only looked-up rows get gradients.
    """
    return framework.append(
        "embedding",
        "embedding",
        [weight, x],
        {"is_sparse": bool(sparse), "padding_idx": _padding(padding_idx, weight.shape[0])},
    )


def _padding(padding_idx, rows):
    if padding_idx is None:
        return -1
    return int(padding_idx) + (rows if padding_idx < 0 else 0)


def dropout(
    x: Variable,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Variable:
    """Zeroes each value with probability p while training; mode says whether the kept values are scaled then
    ("upscale_in_train") or in a test ("downscale_in_infer"). axis: those along which values are zeroed one by
    one, and not together. Returns x itself for p=0, as Paddle does."""
    if axis is None:
        return seeded_dropout(x, p, training, mode, 0)
    others = [one for one in range(x.ndim) if one not in [own % x.ndim for own in _numbers.axes(axis)]]
    first = tensor.slice(x, others, [0] * len(others), [1] * len(others))
    return x * seeded_dropout(tensor.ones_like(first), p, training, mode, 0)


def seeded_dropout(x: Variable, p: float, training: bool, mode: str, seed: int) -> Variable:
    """dropout() that zeroes the same values in every run, where the seed is not 0."""
    if isinstance(p, (int, float)) and p == 0:
        return x
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise Error(
            "config",
            f'paddle.nn.functional.dropout(mode="{mode}"): there is no such mode',
            'use "upscale_in_train" or "downscale_in_infer"',
        )
    outputs = framework.temporaries(framework.unique_name("dropout"), 2)
    attributes = {"dropout_prob": float(p), "is_test": not training, "mode": mode}
    if seed:
        attributes["seed"] = int(seed)
    return framework.append("dropout", "dropout", [x], attributes, outputs)[0]


def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Variable:
    """-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon). Shape: both [batch, 1]
    float32."""
    return framework.append("log_loss", "log_loss", [input, label], {"epsilon": float(epsilon)})


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """(input - label) squared, value by value. Shape: both the same, or a size of 1 in one, float32."""
    if len(input.shape) == len(label.shape) and any(
        1 in sizes and sizes[0] != sizes[1] for sizes in zip(input.shape, label.shape)
    ):
        return tensor.square(input - label)
    # Paddle's is the second of two operators: scripts fetch it by that name.
    outputs = framework.temporaries(framework.unique_name("square_error_cost"), 2)[1:]
    return framework.append("square_error_cost", "square_error_cost", [input, label], outputs=outputs)


def mse_loss(input: Variable, label: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """square_error_cost, reduced."""
    return _reduced(square_error_cost(input, label), reduction)


def l1_loss(input: Variable, label: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """|input - label|, reduced."""
    return _reduced(tensor.abs(input - label), reduction)


def smooth_l1_loss(
    input: Variable, label: Variable, reduction: str = "mean", delta: float = 1.0, name: str | None = None
) -> Variable:
    """Half the square of input - label within ±delta, and delta * (|input - label| - delta / 2) beyond;
    reduced."""
    distance = tensor.abs(input - label)
    near = tensor.clip(distance, max=float(delta))
    return _reduced(near * near * 0.5 + (distance - near) * float(delta), reduction)


def kl_div(input: Variable, label: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """label * (log(label) - input), `input` being logarithms; 0 where label is; reduced, or "batchmean"."""
    label = fixed(label)
    known = tensor.greater_than(label, 0.0)
    logarithm = tensor.log(tensor.where(known, label, tensor.ones_like(label)))
    loss = tensor.where(known, label * (logarithm - input), tensor.zeros_like(label))
    if reduction == "batchmean":
        return tensor.sum(loss) / tensor.cast(tensor.shape(input)[0], "float32")
    return _reduced(loss, reduction)


def nll_loss(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """-input[label], reduced. Shape: input[batch, classes, ..] of logarithms, label[batch, ..] int64,
    weight[classes]. A label of ignore_index gives 0, and is not counted in the mean, which is weighted."""
    counted = tensor.not_equal(label, int(ignore_index))
    known = label * tensor.cast(counted, label.dtype)
    loss = tensor.squeeze(tensor.take_along_axis(input, tensor.unsqueeze(known, 1), 1), 1) * -1.0
    weights = tensor.cast(counted, loss.dtype)
    if weight is not None:
        weights = weights * tensor.gather_nd(weight, tensor.unsqueeze(known, -1))
    loss = loss * weights
    return tensor.sum(loss) / tensor.sum(weights) if reduction == "mean" else _reduced(loss, reduction)


def margin_ranking_loss(
    input: Variable,
    other: Variable,
    label: Variable,
    margin: float = 0.0,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """max(0, -label * (input - other) + margin), reduced."""
    return _reduced(relu((other - input) * label + float(margin)), reduction)


def cross_entropy(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
    name: str | None = None,
) -> Variable:
    """-log softmax(input)[label]; with use_softmax=False `input` holds probabilities. Classes are along
    `axis`.

    Shape: input[.., classes] float32, label[.., 1] or [..] int64, or with soft_label [.., classes] float32;
    weight[classes]. A label of ignore_index gives 0, learns nothing, and is not counted in the mean unless it
    is negative. weight: of each class, by which the mean is weighted.
    """
    for value in (input, label):
        expect_variable("nn.functional.cross_entropy", value)
    flat = label.ndim + 1 == input.ndim
    if axis not in (-1, input.ndim - 1):
        to_last, back = _orders(axis, input)
        loss = cross_entropy(
            tensor.transpose(input, to_last),
            label if flat else tensor.transpose(label, to_last),
            weight,
            ignore_index,
            reduction,
            soft_label,
            -1,
            use_softmax,
            label_smoothing,
        )
        return loss if flat or reduction != "none" else tensor.transpose(loss, back)
    if label_smoothing > 0.0:
        if not soft_label:
            label, soft_label = one_hot(label if flat else tensor.squeeze(label, -1), input.shape[-1]), True
        label = label_smooth(label, epsilon=label_smoothing)
    loss = _cross_entropy(input, label, soft_label, ignore_index, use_softmax)
    if weight is None and (reduction != "mean" or soft_label or ignore_index < 0):
        return _reduced(loss, reduction)
    counted: Any = None if soft_label else tensor.cast(tensor.not_equal(label, int(ignore_index)), "float32")
    if weight is not None:
        counted = _class_weights(input, label, weight, counted)
        loss = loss * counted
    if reduction != "mean":
        return _reduced(loss, reduction)
    total = tensor.sum(counted)
    return tensor.sum(loss) / (total + tensor.cast(tensor.equal(total, 0.0), "float32"))


def _class_weights(input, label, weight, counted):
    """The weight of each example's class, 0 where `counted` is; for soft labels, without `counted`, of their
    mixture."""
    if input.shape[-1] != weight.shape[-1]:
        raise Error(
            "config",
            f"paddle.nn.functional.cross_entropy: {input.name} has {input.shape[-1]} classes, the weight "
            f"{weight.name} {weight.shape[-1]}",
            "give it a weight for each class",
        )
    if counted is None:
        return tensor.unsqueeze(tensor.matmul(label, weight), -1)
    known = label * tensor.cast(counted, label.dtype)
    return tensor.gather_nd(weight, tensor.unsqueeze(known, -1)) * counted


def _cross_entropy(input, label, soft_label, ignore_index, use_softmax):
    return framework.append(
        "cross_entropy",
        "cross_entropy",
        [input, label],
        {"soft_label": bool(soft_label), "ignore_index": int(ignore_index), "use_softmax": bool(use_softmax)},
    )


def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """-log softmax(logits)[label], not reduced. Shape: as cross_entropy; the result is [batch, 1].

    return_softmax: (loss, softmax(logits)); the second has no gradient, as in Paddle.
    """
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    if not return_softmax:
        return loss
    shares = softmax(logits, axis)
    shares.stop_gradient = True
    return loss, shares


def binary_cross_entropy(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """-label * log(input) - (1 - label) * log(1 - input), reduced. As in Paddle the logarithms are at least
    -100, and the slope is (input - label) / max(input * (1 - input), 1e-12)."""
    label, still = fixed(label), input.detach()
    low = tensor.full_like(still, -100.0)
    right, wrong = (tensor.maximum(tensor.log(one), low) for one in (still, 1.0 - still))
    loss = (label - 1.0) * wrong - label * right
    slope = (still - label) / tensor.clip((1.0 - still) * still, min=1e-12)
    # The second term is 0, and has the slope.
    return _weighted(loss + (input - still) * slope, weight, reduction)


def binary_cross_entropy_with_logits(
    logit: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    pos_weight: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """binary_cross_entropy of sigmoid(logit), computed without overflow, reduced. pos_weight: how often the
    part of label 1 counts: (1 - label) * logit + (1 + (pos_weight - 1) * label) * log(1 + exp(-logit)), as
    Paddle's manual has it; 2.6.2 itself leaves part of the weight out, and learns in the wrong direction."""
    if pos_weight is None:
        kind = "sigmoid_cross_entropy_with_logits"
        return _weighted(framework.append(kind, kind, [logit, label]), weight, reduction)
    label = fixed(label)
    counted = (pos_weight - 1.0) * label + 1.0
    return _weighted((1.0 - label) * logit - counted * log_sigmoid(logit), weight, reduction)


def _weighted(loss, weight, reduction):
    return _reduced(loss if weight is None else loss * weight, reduction)


def _reduced(loss, reduction):
    if reduction == "mean":
        return tensor.mean(loss)
    if reduction == "sum":
        return tensor.sum(loss)
    if reduction == "none":
        return loss
    raise Error("config", f'reduction="{reduction}" is not a reduction', 'use "mean", "sum" or "none"')


def __getattr__(name: str) -> Any:
    if name in _more_names.LAYER_FUNCTIONS_IN_PLACE.split():
        return _in_place.of(sys.modules[__name__], name)
    return _named(name)


_named, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("nn._more", _more_names.LAYER_FUNCTIONS),
        **_lazy.names("nn._adaptive", "adaptive_avg_pool3d adaptive_max_pool3d"),
        **_lazy.names("nn._transposed", "conv1d_transpose conv2d_transpose conv3d conv3d_transpose"),
        **_lazy.names(
            "nn._resized",
            "avg_pool3d interpolate local_response_norm max_pool3d pixel_unshuffle unfold upsample",
        ),
        **_lazy.names("nn._random", "alpha_dropout dropout3d gumbel_softmax rrelu"),
        **_lazy.names("nn._alignment", "ctc_loss gaussian_nll_loss multi_margin_loss"),
        **_lazy.names("nn._grids", "affine_grid grid_sample temporal_shift"),
        **_lazy.names("nn._unpooled", "fold max_unpool1d max_unpool2d max_unpool3d"),
        "hsigmoid_loss": "nn._hierarchy:hsigmoid_loss",
        "gather_tree": "fluid._decoding:gather_tree",
        **_lazy.names("nn.functional", _more_names.LAYER_FUNCTIONS_IN_PLACE),
    },
)
