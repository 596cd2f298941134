"""fluid.layers: activations and losses, under the names and arguments of Paddle 1.x."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._types import DTypeLike, Variable
from fleetrun.fluid._math import with_an_axis
from fleetrun.nn import functional

__all__ = [
    "bpr_loss", "brelu", "cross_entropy", "dice_loss", "dropout", "elu", "hard_shrink", "hard_sigmoid",
    "hard_swish", "huber_loss", "kldiv_loss", "label_smooth", "leaky_relu", "margin_rank_loss", "mse_loss",
    "npair_loss", "pow", "rank_loss", "relu", "relu6", "sigmoid", "sigmoid_cross_entropy_with_logits",
    "smooth_l1", "soft_relu", "softmax", "softplus", "softshrink", "stanh", "swish", "thresholded_relu",
]  # fmt: skip


def relu(x: Variable, name: str | None = None) -> Variable:
    """max(x, 0)."""
    return functional.relu(x)


def sigmoid(x: Variable, name: str | None = None) -> Variable:
    """1 / (1 + exp(-x))."""
    return functional.sigmoid(x)


def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """exp(x) / sum(exp(x)) along `axis`."""
    return functional.softmax(input, axis)


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """x where it is positive, else alpha * x."""
    return functional.leaky_relu(x, alpha)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return functional.elu(x, alpha)


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """x cut to [0, threshold]."""
    return tensor.clip(x, 0.0, threshold)


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """x cut to [t_min, t_max]."""
    return tensor.clip(x, t_min, t_max)


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """log(1 + exp(x)), x cut to ±threshold."""
    return tensor.log(tensor.exp(tensor.clip(x, -threshold, threshold)) + 1.0)


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """x to the power of `factor`."""
    return tensor.pow(x, factor)


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """scale_b * tanh(scale_a * x)."""
    return tensor.stanh(x, scale_a, scale_b)


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """slope * x + offset, cut to [0, 1]."""
    return functional.hardsigmoid(x, slope, offset)


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """x * sigmoid(beta * x)."""
    return functional.silu(x) if beta == 1.0 else x * functional.sigmoid(tensor.scale(x, beta))


def hard_swish(
    x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0, name: str | None = None
) -> Variable:
    """x * (x + offset cut to [0, threshold]) / scale."""
    return x * tensor.scale(tensor.clip(x + offset, 0.0, threshold), 1.0 / scale)


def hard_shrink(x: Variable, threshold: float = 0.5) -> Variable:
    """x, 0 within ±threshold."""
    return functional.hardshrink(x, threshold)


def softshrink(x: Variable, alpha: float = 0.5) -> Variable:
    """x moved by alpha towards 0, 0 within ±alpha."""
    return functional.softshrink(x, alpha)


def thresholded_relu(x: Variable, threshold: float = 1.0) -> Variable:
    """x above the threshold, else 0."""
    return functional.thresholded_relu(x, threshold)


def softplus(x: Variable, name: str | None = None) -> Variable:
    """log(1 + exp(x))."""
    return functional.softplus(x)


def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Zeroes each value with this probability while training. dropout_implementation: "downgrade_in_infer"
    scales in a test, "upscale_in_train" while training. seed: zeroes the same values in every run."""
    modes = {"downgrade_in_infer": "downscale_in_infer"}
    mode = modes.get(dropout_implementation, dropout_implementation)
    return functional.seeded_dropout(x, dropout_prob, not is_test, mode, seed or 0)


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior_dist, which is 1 / classes without one."""
    return functional.label_smooth(label, prior_dist, epsilon)


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100
) -> Variable:
    """-log of the label's probability, one for each example: `input` has probabilities, those of a
    softmax."""
    return functional.cross_entropy(
        input, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label, use_softmax=False
    )


def sigmoid_cross_entropy_with_logits(
    x: Variable,
    label: Variable,
    ignore_index: int = -100,
    name: str | None = None,
    normalize: bool = False,
) -> Variable:
    """The cross entropy of sigmoid(x), value by value; 0 where label is ignore_index. normalize: divided by
    the number of the others."""
    loss = functional.binary_cross_entropy_with_logits(x, label, reduction="none")
    counted = tensor.cast(tensor.not_equal(label, float(ignore_index)), "float32")
    loss = loss * counted
    return loss / tensor.clip(tensor.sum(counted), min=1.0) if normalize else loss


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """For each example the sum of 0.5 * (sigma * d)² where |d| < 1 / sigma², else |d| - 0.5 / sigma², d being
    x - y. Shape: [n, ..] -> [n, 1]."""
    square = float(sigma or 1.0) ** 2
    distance = x - y if inside_weight is None else (x - y) * inside_weight
    far = tensor.abs(distance)
    near = tensor.clip(far, max=1.0 / square)
    loss = near * near * (0.5 * square) + (far - near)
    loss = loss if outside_weight is None else loss * outside_weight
    return tensor.sum(loss if loss.ndim == 2 else tensor.flatten(loss, 1, -1), axis=1, keepdim=True)


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Half the square of label - input within ±delta, and delta * (|label - input| - delta / 2) beyond."""
    return functional.smooth_l1_loss(input, label, "none", delta)


def mse_loss(input: Variable, label: Variable) -> Variable:
    """The mean of (input - label)²."""
    return with_an_axis(functional.mse_loss(input, label))


def dice_loss(
    input: Variable, label: Variable, epsilon: float = 0.00001, name: str | None = None
) -> Variable:
    """paddle.nn.functional.dice_loss. Shape: [1]."""
    return with_an_axis(functional.dice_loss(input, label, epsilon))


def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """paddle.nn.functional.npair_loss. Shape: [1]."""
    return with_an_axis(functional.npair_loss(anchor, positive, labels, l2_reg))


def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """target * (log(target) - x), reduced."""
    return with_an_axis(functional.kl_div(x, target, reduction))


def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """log(1 + exp(left - right)) - label * (left - right)."""
    distance = left - right
    return functional.softplus(distance) - label * distance


def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """max(0, -label * (left - right) + margin)."""
    return functional.relu((right - left) * label + margin)


def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """The mean of -log(sigmoid(input[label] - input[other])) over the others. Shape: input[n, classes],
    label[n, 1] -> [n, 1]."""
    positive = tensor.take_along_axis(input, label, 1)
    others = 1.0 - functional.one_hot(tensor.squeeze(label, -1), input.shape[-1])
    loss = functional.softplus(input - positive) * others
    return tensor.scale(tensor.sum(loss, axis=1, keepdim=True), 1.0 / (input.shape[-1] - 1))
