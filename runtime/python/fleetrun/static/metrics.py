"""Metrics that are computed inside the program."""

from fleetrun import framework
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun.static.inputs import create_global_var


def auc(input, label, curve="ROC", num_thresholds=4095, topk=1, slide_steps=1, ins_tag_weight=None):  # noqa: A002
    """The area under the ROC curve of column 1 of `input`, over everything seen and over this batch.

    Shape: input[batch, 2] float32 probabilities, label[batch, 1] int64 of 0 and 1.
    Returns (auc, batch_auc, [batch_stat_pos, batch_stat_neg, stat_pos, stat_neg]); the statistics count
    num_thresholds + 1 buckets of the probability. slide_steps other than 0 and 1 is refused; with 0 the batch's value
    is the one over everything seen, as in Paddle. Throws: Error(config).
    """
    refuse("paddle.static.auc", curve=(curve, "ROC"), topk=(topk, 1), ins_tag_weight=(ins_tag_weight, None))
    if slide_steps not in (0, 1):
        raise Error("config", f"paddle.static.auc(slide_steps={slide_steps}) is not supported",
                    "use 1 (this batch) or 0 (everything seen)")
    buckets = num_thresholds + 1
    total = _statistics(buckets)
    result = _auc(input, label, total, num_thresholds, slide=False)
    if slide_steps == 0:
        return result, result, [*total, *total]
    batch = _statistics(buckets)
    return result, _auc(input, label, batch, num_thresholds, slide=True), [*batch, *total]


def _statistics(buckets):
    return [create_global_var([buckets], 0, "int64", persistable=True) for _ in range(2)]


def _auc(predictions, label, statistics, num_thresholds, slide):
    names = [framework.unique_name(framework.unique_name("auc") + ".tmp"), *(stat.name for stat in statistics)]
    return framework.append("auc", "auc", [predictions, label, *statistics],
                            {"num_thresholds": num_thresholds, "slide": slide}, outputs=names)[0]


def accuracy(input, label, k=1, correct=None, total=None, name=None):  # noqa: A002
    """The share of examples whose label is among the k largest of `input`.

    Shape: input[batch, classes] float32, label[batch, 1] int64; the result has one value.
    """
    refuse("paddle.static.accuracy", correct=(correct, None), total=(total, None))
    return framework.append("accuracy", "accuracy", [input, label], {"k": int(k)})
