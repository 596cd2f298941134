"""Metrics that are computed inside the program."""

from fleetrun import framework, tensor
from fleetrun._arguments import refuse
from fleetrun._types import Variable
from fleetrun.nn import functional
from fleetrun.static.inputs import create_global_var

__all__ = ["accuracy", "auc", "ctr_metric_bundle"]


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
    ins_tag_weight: Variable | None = None,
) -> tuple[Variable, Variable, list[Variable]]:
    """The area under the ROC curve of the last column of `input`: over everything seen, and over the last
    batches.

    Shape: input[batch, 2] float32 probabilities, label[batch, 1] int64 or int32 of 0 and 1; the results are
    float64.
    Returns (auc, batch_auc, [batch_stat_pos, batch_stat_neg, stat_pos, stat_neg]): the counters of labels 1
    and 0 in num_thresholds + 1 buckets of the probability. batch_auc looks at the last slide_steps batches,
    with 0 at everything seen. Shape of counters of everything seen: [1, num_thresholds + 1]. Throws:
    Error(config).
    """
    refuse("paddle.static.auc", curve=(curve, "ROC"), topk=(topk, 1), ins_tag_weight=(ins_tag_weight, None))
    batch, batch_counters = _auc(input, label, num_thresholds, int(slide_steps))
    total, counters = _auc(input, label, num_thresholds, 0)
    return total, batch, [*batch_counters, *counters]


def _auc(predictions, label, num_thresholds, slide_steps):
    buckets = num_thresholds + 1
    shape = [(slide_steps + 1) * buckets + 1] if slide_steps else [1, buckets]
    counters = [create_global_var(shape, 0, "int64", persistable=True) for _ in range(2)]
    names = [
        framework.unique_name(framework.unique_name("auc") + ".tmp"),
        *(counter.name for counter in counters),
    ]
    attributes = {"num_thresholds": int(num_thresholds), "slide_steps": slide_steps}
    return framework.append("auc", "auc", [predictions, label, *counters], attributes, names)[0], counters


def ctr_metric_bundle(
    input: Variable, label: Variable, ins_tag_weight: Variable | None = None
) -> tuple[Variable, ...]:
    """Sums over everything seen, as variables of one value: squared errors, absolute errors, predictions,
    sigmoids of the predictions, labels, examples. What is computed from them is left to the caller (the mean
    squared error is the first by the last).

    Shape: input[batch, 1] float32, label[batch, 1] of any numbers. ins_tag_weight[.., 1]: its first value is
    0 where the batch is filling.
    """
    weight = (
        tensor.ones([1, 1])
        if ins_tag_weight is None
        else tensor.slice(tensor.cast(ins_tag_weight, "float32"), [0], [0], [1])
    )
    label = tensor.cast(label, "float32")
    error = tensor.subtract(input, label)
    ones = tensor.ones_like(label)
    batch = [
        tensor.sum(tensor.square(error)),
        tensor.sum(tensor.abs(error)),
        tensor.sum(input),
        tensor.sum(functional.sigmoid(input)),
        tensor.sum(label),
        tensor.sum(ones),
    ]
    batch[3], batch[5] = tensor.multiply(batch[3], weight), tensor.multiply(batch[5], weight)
    batch = [value if value.shape else tensor.reshape(value, [1]) for value in batch]
    totals = [create_global_var(list(value.shape), 0.0, "float32", persistable=True) for value in batch]
    for total, value in zip(totals, batch):
        framework.append("ctr_metric_bundle", "elementwise_add", [total, value], outputs=[total.name])
    return tuple(totals)


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The share of examples whose label is among the k largest of `input`.

    Shape: input[batch, classes] float32, label[batch, 1] int64 or int32; the result has one value. correct,
    total: variables that get the number of those examples, and of all.
    """
    share = framework.append("accuracy", "accuracy", [input, label], {"k": int(k)})
    examples = tensor.slice(tensor.shape(label), [0], [0], [1])
    if total is not None:
        tensor.assign(tensor.cast(examples, total.dtype), total)
    if correct is not None:
        right = tensor.round(tensor.reshape(share, [1]) * tensor.cast(examples, "float32"))
        tensor.assign(tensor.cast(right, correct.dtype), correct)
    return share
