"""Metrics that are computed inside the program."""

from fleetrun import framework
from fleetrun._arguments import refuse
from fleetrun.static.inputs import create_global_var


def auc(input, label, curve="ROC", num_thresholds=4095, topk=1, slide_steps=1, ins_tag_weight=None):  # noqa: A002
    """The area under the ROC curve of the last column of `input`: over everything seen, and over the last batches.

    Shape: input[batch, 2] float32 probabilities, label[batch, 1] int64 of 0 and 1; the results are float64.
    Returns (auc, batch_auc, [batch_stat_pos, batch_stat_neg, stat_pos, stat_neg]): the counters of labels 1 and 0
    in num_thresholds + 1 buckets of the probability. batch_auc looks at the last slide_steps batches, with 0 at
    everything seen. Throws: Error(config).
    """
    refuse("paddle.static.auc", curve=(curve, "ROC"), topk=(topk, 1), ins_tag_weight=(ins_tag_weight, None))
    batch, batch_counters = _auc(input, label, num_thresholds, int(slide_steps))
    total, counters = _auc(input, label, num_thresholds, 0)
    return total, batch, [*batch_counters, *counters]


def _auc(predictions, label, num_thresholds, slide_steps):
    buckets = num_thresholds + 1
    size = (slide_steps + 1) * buckets + 1 if slide_steps else buckets
    counters = [create_global_var([size], 0, "int64", persistable=True) for _ in range(2)]
    names = [framework.unique_name(framework.unique_name("auc") + ".tmp"), *(counter.name for counter in counters)]
    attributes = {"num_thresholds": int(num_thresholds), "slide_steps": slide_steps}
    return framework.append("auc", "auc", [predictions, label, *counters], attributes, names)[0], counters


def accuracy(input, label, k=1, correct=None, total=None, name=None):  # noqa: A002
    """The share of examples whose label is among the k largest of `input`.

    Shape: input[batch, classes] float32, label[batch, 1] int64; the result has one value.
    """
    refuse("paddle.static.accuracy", correct=(correct, None), total=(total, None))
    return framework.append("accuracy", "accuracy", [input, label], {"k": int(k)})
