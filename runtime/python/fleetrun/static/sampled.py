"""Losses over many classes of which a sample is drawn, and the tree of classes of Paddle 1.x."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun.nn import functional
from fleetrun.nn._hierarchy import hsigmoid_loss

if TYPE_CHECKING:
    from fleetrun._types import Any, ParamLike, Sequence, Variable

__all__ = ["hsigmoid", "nce", "sampled_softmax_with_cross_entropy"]


def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """The cost of telling each label from num_neg_samples classes that are drawn for it. Shape: input[n,
    width], label[n, labels] int64 -> [n, 1].

    sampler: "uniform", "log_uniform" (a class k in proportion to log(1 + 1 / (k + 1))) or "custom_dist". The
    samples are others than Paddle's for the same seed. Source: Gutmann and Hyvärinen, Noise-contrastive
    estimation, 2010.
    """
    layer, classes = name or framework.unique_name("nce"), int(num_total_classes)
    wanted = 10 if num_neg_samples is None else int(num_neg_samples)
    weight, bias = _parameters(layer, classes, input.shape[1], param_attr, bias_attr)
    rows = tensor.shape(input)[:1]
    drawn, chances = _Sampler(sampler, classes, custom_dist).draw(rows, wanted, int(seed))
    label = tensor.cast(tensor.reshape(label, [-1, label.shape[-1]]), "int64")
    samples = tensor.concat([label, drawn], 1)
    score = _scores(input, weight, bias, samples, is_sparse)
    likely = functional.sigmoid(score)
    noise = chances(samples) * float(wanted)
    both = likely + noise
    labels = label.shape[1]
    true, false = tensor.slice(likely, [1], [0], [labels]), tensor.slice(noise, [1], [labels], [_ALL])
    cost = tensor.concat(
        [
            -tensor.log(true / tensor.slice(both, [1], [0], [labels])),
            -tensor.log(false / tensor.slice(both, [1], [labels], [_ALL])),
        ],
        1,
    )
    total = tensor.sum(cost, 1, keepdim=True)
    if sample_weight is not None:
        total = total * tensor.reshape(sample_weight, [-1, 1])
    return total / float(wanted + 1)


_ALL = 1 << 40


def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """nn.functional.hsigmoid_loss with its own weight and, unless bias_attr=False, bias. is_custom: the tree
    is that of path_table and path_code, and has num_classes nodes."""
    if is_custom and (path_table is None or path_code is None):
        raise Error("config", "fluid.layers.hsigmoid(is_custom=True) without path_table and path_code")
    layer = name or framework.unique_name("hierarchical_sigmoid")
    nodes = int(num_classes) if is_custom else int(num_classes) - 1
    weight, bias = _parameters(layer, nodes, input.shape[1], param_attr, bias_attr)
    paths = (path_table, path_code) if is_custom else (None, None)
    return hsigmoid_loss(input, label, num_classes, weight, bias, *paths, is_sparse)


def _parameters(layer, rows, width, param_attr, bias_attr):
    weight = framework.make_parameter(layer, [rows, width], "float32", param_attr, False, None, named=True)
    if bias_attr is False:
        return weight, None
    return weight, framework.make_parameter(layer, [rows, 1], "float32", bias_attr, True, None, named=True)


def _scores(input, weight, bias, samples, is_sparse):
    attributes = {"is_sparse": bool(is_sparse), "padding_idx": -1}
    rows = framework.append("rows_of_classes", "embedding", [weight, samples], attributes)
    score = tensor.squeeze(tensor.matmul(rows, tensor.unsqueeze(input, 2)), 2)
    if bias is None:
        return score
    offsets = framework.append("rows_of_classes", "embedding", [bias, samples], attributes)
    return score + tensor.squeeze(offsets, 2)


class _Sampler:
    """Draws classes, and says how likely each is drawn."""

    def __init__(self, kind: str, classes: int, custom: Sequence[float] | None = None) -> None:
        if kind not in ("uniform", "log_uniform", "custom_dist"):
            raise Error(
                "config",
                f'nce(sampler="{kind}"): there is no such sampler',
                "use uniform, log_uniform or custom_dist",
            )
        if kind == "custom_dist" and (custom is None or len(custom) != classes):
            raise Error(
                "config",
                f'nce(sampler="custom_dist"): {0 if custom is None else len(custom)} probabilities for '
                f"{classes} classes",
                "give it custom_dist, a probability for each class",
            )
        self.kind, self.classes = kind, classes
        self.custom = None if custom is None else numpy.array(custom, dtype="float32")

    def draw(self, rows: Any, count: int, seed: int) -> tuple[Variable, Any]:
        """(classes[rows, count] int64, the function that gives the chances of classes)."""
        at = tensor.uniform([rows, count], "float32", 0.0, 1.0, seed)
        if self.kind == "uniform":
            drawn = tensor.floor(at * float(self.classes))
        elif self.kind == "log_uniform":
            drawn = tensor.floor(tensor.exp(at * math.log(self.classes + 1.0)) - 1.0)
        else:
            assert self.custom is not None
            ends = numpy.cumsum(self.custom, dtype="float64")
            found = tensor.searchsorted(
                tensor.assign((ends / ends[-1]).astype("float32")), tensor.reshape(at, [-1]), right=True
            )
            drawn = tensor.reshape(found, [-1, count])
        last = tensor.full([1], self.classes - 1, "int64")
        drawn = tensor.minimum(tensor.cast(drawn, "int64"), last)
        drawn.stop_gradient = True
        return drawn, self.chances

    def chances(self, samples: Variable) -> Variable:
        """How likely a sample is each of these classes. Shape: that of samples."""
        if self.kind == "uniform":
            return tensor.full_like(tensor.cast(samples, "float32"), 1.0 / self.classes)
        if self.kind == "log_uniform":
            place = tensor.cast(samples, "float32")
            return tensor.log((place + 2.0) / (place + 1.0)) / math.log(self.classes + 1.0)
        assert self.custom is not None
        table = tensor.assign(self.custom.reshape(-1, 1))
        return tensor.squeeze(framework.append("rows_of_classes", "embedding", [table, samples]), 2)


def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """softmax_with_cross_entropy over the label and num_samples classes that are drawn for all examples,
    log-uniformly. Shape: logits[n, classes], label[n, num_true] int64 -> [n, 1].

    Scores are made smaller by the log of how often a class is drawn; with remove_accidental_hits a drawn
    class that is a label counts once. The samples may repeat, others than Paddle's for the same seed.
    """
    rows = tensor.cast(tensor.reshape(label, [-1, int(num_true)]), "int64")
    if use_customized_samples:
        if customized_samples is None or customized_probabilities is None:
            raise Error(
                "config",
                "sampled_softmax_with_cross_entropy(use_customized_samples=True) without them",
                "give it customized_samples and customized_probabilities",
            )
        samples, chances = tensor.cast(customized_samples, "int64"), customized_probabilities
    else:
        sampler = _Sampler("log_uniform", int(logits.shape[1]))
        drawn, of = sampler.draw(1, int(num_samples), int(seed))
        shared = tensor.expand(drawn, [tensor.shape(logits)[0], int(num_samples)])
        samples = tensor.concat([rows, shared], 1)
        chances = of(samples) * float(num_samples)
    score = tensor.take_along_axis(logits, samples, 1) - tensor.log(chances)
    if remove_accidental_hits:
        others = tensor.slice(samples, [1], [int(num_true)], [_ALL])
        hit = tensor.cast(
            tensor.any(tensor.equal(tensor.unsqueeze(others, 2), tensor.unsqueeze(rows, 1)), 2), "float32"
        )
        own = tensor.zeros_like(tensor.cast(rows, "float32"))
        score = score - tensor.concat([own, hit], 1) * 1e20
    wanted = tensor.full([tensor.shape(logits)[0], int(num_true)], 1.0 / int(num_true), "float32")
    rest = tensor.zeros_like(tensor.cast(tensor.slice(samples, [1], [int(num_true)], [_ALL]), "float32"))
    target = tensor.concat([wanted, rest], 1)
    target.stop_gradient = True
    loss: Variable = functional.softmax_with_cross_entropy(score, target, soft_label=True)
    return loss
