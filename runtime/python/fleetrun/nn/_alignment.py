"""Losses of sequences of labels, and others with margins and variances. Part of
fleetrun/nn/functional.py."""

from __future__ import annotations

import math

from fleetrun import framework, tensor
from fleetrun._types import Any, Variable
from fleetrun.nn import functional


def aligned_loss(
    logits: Variable,
    labels: Variable,
    blank: int,
    norm_by_times: bool,
    frames: Variable | None,
    counts: Variable | None,
) -> Variable:
    """-log of the chance of all alignments of labels with frames: sequences, or [most, n, C] and [n, most]
    with the lengths of both. Shape: [n, 1]."""
    inputs = [logits, labels] if frames is None else [logits, labels, frames, counts]
    attributes = {"blank": int(blank), "norm_by_times": bool(norm_by_times)}
    loss: Variable = framework.append("warpctc", "ctc_loss", inputs, attributes)
    return loss


def ctc_loss(
    log_probs: Variable,
    labels: Variable,
    input_lengths: Variable,
    label_lengths: Variable,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
) -> Variable:
    """Connectionist temporal classification: -log of the chance of all alignments with the labels, of which
    log_probs are the logits. reduction: "mean" divides by the lengths of the labels first. Shape:
    log_probs[most, n, C], labels[n, most]."""
    loss = aligned_loss(log_probs, labels, blank, norm_by_times, input_lengths, label_lengths)
    loss = tensor.squeeze(loss, -1)
    if reduction == "mean":
        return tensor.mean(loss / tensor.cast(label_lengths, loss.dtype))
    return functional._reduced(loss, reduction)


def gaussian_nll_loss(
    input: Variable,
    label: Variable,
    variance: Variable,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """Half of log(variance) + (input - label)² / variance, reduced; the variance is at least epsilon. full:
    with the constant."""
    if variance.ndim == input.ndim - 1:
        variance = tensor.unsqueeze(variance, -1)
    low = tensor.less_than(variance, float(epsilon))
    variance = tensor.where(low, tensor.full_like(variance, epsilon), variance)
    loss = tensor.scale(tensor.log(variance) + tensor.square(input - label) / variance, 0.5)
    return functional._reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def multi_margin_loss(
    input: Variable,
    label: Variable,
    p: int = 1,
    margin: float = 1.0,
    weight: Variable | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """The mean over the other classes of max(0, weight[label] * (margin - input[label] + input))^p, reduced.
    Shape: input[n, classes], label[n]."""
    label = tensor.reshape(label, [-1, 1])
    own = tensor.take_along_axis(input, label, 1)
    distance = margin - own + input
    scale: Any = 1.0
    if weight is not None:
        scale = tensor.reshape(tensor.gather(weight, tensor.reshape(label, [-1])), [-1, 1])
        distance = distance * scale
    loss = functional.relu(distance)
    loss = tensor.mean(loss if p == 1 else tensor.pow(loss, p), 1, True)
    # Its own class has the distance `margin`; as in Paddle its weight is taken away once, whatever p is.
    return functional._reduced(tensor.squeeze(loss - scale * (margin**p / input.shape[1]), 1), reduction)
