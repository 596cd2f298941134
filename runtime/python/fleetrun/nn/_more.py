"""Functions of layers that are made of several operators. Part of fleetrun/nn/functional.py; formulas are
Paddle's."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._padding import constant_pad, pad_last
from fleetrun._shapes import sizes_of
from fleetrun._types import Callable, Sequence, Variable
from fleetrun.nn import functional


def celu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    # As in Paddle 0 is among what is not positive, with the slope 1, and alpha may be below 0.
    under = tensor.where(tensor.greater_than(x, 0.0), tensor.zeros_like(x), x)
    below = tensor.expm1(tensor.scale(under, 1.0 / alpha))
    return functional.relu(x) + tensor.scale(below, alpha)


def softshrink(x: Variable, threshold: float = 0.5, name: str | None = None) -> Variable:
    """x moved by the threshold towards 0, 0 within ±threshold."""
    beyond = functional.hardshrink(x, threshold)
    return beyond - tensor.scale(tensor.sign(beyond), threshold)


def thresholded_relu(x: Variable, threshold: float = 1.0, name: str | None = None) -> Variable:
    """x above the threshold, else 0."""
    above = tensor.cast(tensor.greater_than(x, float(threshold)), x.dtype)
    above.stop_gradient = True
    return x * above


def maxout(x: Variable, groups: int, axis: int = 1, name: str | None = None) -> Variable:
    """The largest of each `groups` neighbours along `axis`, of fixed size."""
    axis %= x.ndim
    sizes = [0 if size < 0 else size for size in x.shape]
    grouped = [*sizes[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :]]
    parts = tensor.reshape(x, grouped)
    # As in Paddle the first of equal ones alone has a slope.
    first = tensor.argmax(parts, axis + 1, keepdim=True)
    return tensor.squeeze(tensor.take_along_axis(parts, first, axis + 1), axis + 1)


def glu(x: Variable, axis: int = -1, name: str | None = None) -> Variable:
    """The first half of x along `axis` times the sigmoid of the second."""
    value, gate = tensor.split(x, 2, axis)
    return value * functional.sigmoid(gate)


def pad(
    x: Variable,
    pad: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x with values around it: 2 * x.ndim numbers are those of every axis, else those of the axes of space,
    from the last one. mode: "constant", "reflect", "replicate" or "circular"."""
    sizes = [int(size) for size in pad]
    pairs = list(zip(sizes[::2], sizes[1::2]))
    if len(pairs) == x.ndim and mode == "constant":
        return constant_pad(x, pairs, value)
    return pad_last(x, pairs[::-1], mode, value, data_format)


def zeropad2d(
    x: Variable, padding: int | Sequence[int], data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """x with zeros to the left, right, above and below."""
    return pad(x, [padding] * 4 if isinstance(padding, int) else padding, "constant", 0.0, data_format)


def pairwise_distance(
    x: Variable,
    y: Variable,
    p: float = 2.0,
    epsilon: float = 1e-6,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The p-norm of x - y + epsilon along the last axis."""
    return tensor.norm(x - y + epsilon, p, -1, keepdim)


def bilinear(
    x1: Variable, x2: Variable, weight: Variable, bias: Variable | None = None, name: str | None = None
) -> Variable:
    """x1 @ weight[k] @ x2 for each k. Shape: x1[n, a], x2[n, b], weight[m, a, b], bias[1, m] -> [n, m]."""
    framework.unique_name("bilinear")  # as in Paddle, where it counts among the layers of this name
    made = tensor.einsum("nmb,nb->nm", tensor.einsum("na,mab->nmb", x1, weight), x2)
    return made if bias is None else made + bias


def dropout2d(
    x: Variable,
    p: float = 0.5,
    training: bool = True,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Zeroes each channel of each example with probability p while training. Shape: [n, channels, high,
    wide]."""
    if not training or isinstance(p, (int, float)) and p == 0:
        return x
    first = 2 if data_format == "NCHW" else 1
    one = tensor.slice(x, [first, first + 1], [0, 0], [1, 1])
    return x * functional.dropout(tensor.ones_like(one), p)


def dice_loss(input: Variable, label: Variable, epsilon: float = 1e-05, name: str | None = None) -> Variable:
    """1 - 2 * |input · label| / (|input| + |label|), the mean over examples. Shape: input[n, .., classes],
    label[n, .., 1]."""
    hot = functional.one_hot(tensor.squeeze(label, -1), input.shape[-1])
    axes = list(range(1, input.ndim))
    both = tensor.sum(input * hot, axes)
    total = tensor.sum(input, axes) + tensor.sum(hot, axes)
    return tensor.mean(1.0 - tensor.scale(both, 2.0) / (total + epsilon))


def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """The n-pair loss. Shape: anchor[n, width], positive[n, width], labels[n]."""
    column = tensor.reshape(labels, [-1, 1])
    same = tensor.cast(tensor.equal(column, tensor.transpose(column, [1, 0])), "float32")
    same = same / tensor.sum(same, 1, keepdim=True)
    size = tensor.mean(tensor.sum(tensor.square(anchor), 1)) + tensor.mean(
        tensor.sum(tensor.square(positive), 1)
    )
    logits = tensor.matmul(anchor, positive, transpose_y=True)
    entropy = functional.cross_entropy(logits, same, soft_label=True, reduction="none")
    return tensor.scale(size, 0.25 * l2_reg) + tensor.mean(tensor.sum(same * entropy, 0))


def hinge_embedding_loss(
    input: Variable, label: Variable, margin: float = 1.0, reduction: str = "mean", name: str | None = None
) -> Variable:
    """input where label is 1, max(0, margin - input) where it is -1; reduced."""
    near = tensor.cast(tensor.equal(label, 1.0), "float32") * input
    far = tensor.cast(tensor.equal(label, -1.0), "float32") * functional.relu(margin - input)
    return functional._reduced(near + far, reduction)


def cosine_embedding_loss(
    input1: Variable,
    input2: Variable,
    label: Variable,
    margin: float = 0,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """1 - cosine where label is 1, max(0, cosine - margin) where it is -1; reduced."""
    product = tensor.sum(input1 * input2, -1)
    lengths = tensor.sum(tensor.square(input1), -1) + 1e-11, tensor.sum(tensor.square(input2), -1) + 1e-11
    cosine = product / tensor.sqrt(lengths[0] * lengths[1])
    near = tensor.cast(tensor.equal(label, 1), "float32") * (1.0 - cosine)
    far = tensor.cast(tensor.equal(label, -1), "float32") * functional.relu(cosine - margin)
    return functional._reduced(near + far, reduction)


def triplet_margin_with_distance_loss(
    input: Variable,
    positive: Variable,
    negative: Variable,
    distance_function: Callable[..., Variable] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """max(0, distance to positive - distance to negative + margin), reduced. swap: the nearer of input's and
    positive's distance to negative."""
    distance = distance_function or (lambda a, b: pairwise_distance(a, b, 2.0))
    far = distance(input, negative)
    if swap:
        far = tensor.minimum(far, distance(positive, negative))
    return functional._reduced(functional.relu(distance(input, positive) - far + margin), reduction)


def triplet_margin_loss(
    input: Variable,
    positive: Variable,
    negative: Variable,
    margin: float = 1.0,
    p: float = 2.0,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """triplet_margin_with_distance_loss() of pairwise_distance()."""

    def distance(a: Variable, b: Variable) -> Variable:
        return pairwise_distance(a, b, p, epsilon)

    return triplet_margin_with_distance_loss(input, positive, negative, distance, margin, swap, reduction)


def soft_margin_loss(
    input: Variable, label: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """log(1 + exp(-label * input)), reduced."""
    exponent = tensor.exp(tensor.cast(label, input.dtype) * input * -1.0)
    return functional._reduced(tensor.log(exponent + 1.0), reduction)


def multi_label_soft_margin_loss(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """The mean over classes of the cross entropy of sigmoid(input), reduced."""
    loss = label * functional.log_sigmoid(input)
    loss = (loss + (1.0 - label) * functional.log_sigmoid(tensor.scale(input, -1.0))) * -1.0
    loss = loss if weight is None else loss * weight
    return functional._reduced(tensor.mean(loss, -1), reduction)


def poisson_nll_loss(
    input: Variable,
    label: Variable,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """exp(input) - label * input, or input - label * log(input + epsilon); reduced. full: with Stirling's
    term where label is above 1."""
    import math

    loss = tensor.exp(input) - label * input if log_input else input - label * tensor.log(input + epsilon)
    if full:
        safe = tensor.clip(label, min=1.0)
        term = safe * tensor.log(safe) - safe + tensor.scale(tensor.log(tensor.scale(safe, 2 * math.pi)), 0.5)
        loss = loss + term * tensor.cast(tensor.greater_than(label, 1.0), "float32")
    return functional._reduced(loss, reduction)


def sigmoid_focal_loss(
    logit: Variable,
    label: Variable,
    normalizer: Variable | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: str | None = None,
) -> Variable:
    """The focal loss of sigmoid(logit); divided by the normalizer, and reduced."""
    loss = functional.binary_cross_entropy_with_logits(logit, label, reduction="none")
    chance = functional.sigmoid(logit)
    right = chance * label + (1.0 - chance) * (1.0 - label)
    share = tensor.scale(label, alpha) + tensor.scale(1.0 - label, 1.0 - alpha)
    loss = share * loss * tensor.pow(1.0 - right, gamma)
    return functional._reduced(loss if normalizer is None else loss / normalizer, reduction)


def scaled_dot_product_attention(
    query: Variable,
    key: Variable,
    value: Variable,
    attn_mask: Variable | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    name: str | None = None,
) -> Variable:
    """softmax(query @ key / sqrt(width) + attn_mask) @ value. Shape: [n, length, heads, width] each."""
    q, k, v = (tensor.transpose(one, [0, 2, 1, 3]) for one in (query, key, value))
    scores = tensor.matmul(tensor.scale(q, query.shape[-1] ** -0.5), k, transpose_y=True)
    if is_causal:
        below = tensor.tril(tensor.ones_like(scores))
        scores = tensor.where(tensor.equal(below, 1.0), scores, tensor.full_like(scores, -1e30))
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = functional.softmax(scores)
    if dropout_p:
        weights = functional.dropout(weights, dropout_p, training=training)
    return tensor.transpose(tensor.matmul(weights, v), [0, 2, 1, 3])


def pixel_shuffle(
    x: Variable, upscale_factor: int, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """Channels moved to space. Shape: [n, channels * f², high, wide] -> [n, channels, high * f, wide * f], or
    with data_format="NHWC" the channels last."""
    if data_format not in ("NCHW", "NHWC"):
        raise Error(
            "config", f'paddle.nn.functional.pixel_shuffle(data_format="{data_format}")', "use NCHW or NHWC"
        )
    last, f = data_format == "NHWC", upscale_factor
    x = tensor.transpose(x, [0, 3, 1, 2]) if last else x
    channels = x.shape[1] // (f * f)
    high, wide = sizes_of(x, 2)
    split = tensor.reshape(x, [0, channels, f, f, high, wide])
    made = tensor.reshape(tensor.transpose(split, [0, 1, 4, 2, 5, 3]), [0, channels, high * f, wide * f])
    return tensor.transpose(made, [0, 2, 3, 1]) if last else made


def channel_shuffle(x: Variable, groups: int, data_format: str = "NCHW", name: str | None = None) -> Variable:
    """Channels of `groups` groups in turn. Shape: [n, channels, high, wide]."""
    axis = 1 if data_format == "NCHW" else 3
    sizes = [0, *sizes_of(x, 1)]
    split = [*sizes[:axis], groups, x.shape[axis] // groups, *sizes[axis + 1 :]]
    order = list(range(x.ndim + 1))
    order[axis], order[axis + 1] = axis + 1, axis
    return tensor.reshape(tensor.transpose(tensor.reshape(x, split), order), sizes)
