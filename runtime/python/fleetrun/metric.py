"""paddle.metric: metrics that a script keeps from arrays that it fetched. Formulas are Paddle's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetrun import _lazy
from fleetrun._error import Error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleetrun.static.metrics import accuracy as accuracy

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall"]


class Metric:
    """Base: update() takes arrays, accumulate() gives the metric of everything since reset()."""

    _name: Any = ""

    def reset(self) -> None:
        """Begins again."""
        raise NotImplementedError(f"{type(self).__name__}.reset")

    def update(self, *args: Any) -> Any:
        """One more batch."""
        raise NotImplementedError(f"{type(self).__name__}.update")

    def accumulate(self) -> Any:
        """The metric."""
        raise NotImplementedError(f"{type(self).__name__}.accumulate")

    def name(self) -> Any:
        """Its name, or names."""
        return self._name

    def compute(self, *args: Any) -> Any:
        """What update() is given of a batch: here the same."""
        return args


class Accuracy(Metric):
    """The share of examples whose label is among the k largest, for each k of `topk`."""

    def __init__(self, topk: Sequence[int] = (1,), name: str | None = None) -> None:
        self.topk = tuple(topk)
        self.total: list[float] = []
        self.count: list[int] = []
        base = name or "acc"
        self._name = [base] if self.topk == (1,) else [f"{base}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred: Any, label: Any, *args: Any) -> Any:
        """Whether the k-th largest is the label. Shape: pred[n, classes], label[n], [n, 1] or, one hot,
        [n, classes] -> [n, max k]."""
        import numpy

        pred, label = numpy.asarray(pred), numpy.asarray(label)
        order = numpy.argsort(-pred, axis=-1, kind="stable")[..., : max(self.topk)]
        if label.ndim == 1 or label.shape[-1] == 1:
            label = label.reshape(-1, 1)
        else:
            label = label.argmax(-1)[..., None]
        return (order == label).astype("float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Takes what compute() gave. Returns the accuracy of this batch."""
        import numpy

        correct = numpy.asarray(correct)
        count = int(numpy.prod(correct.shape[:-1]))
        sums = [float(correct[..., :k].sum()) for k in self.topk]
        self.total = [total + one for total, one in zip(self.total, sums)]
        self.count = [known + count for known in self.count]
        shares = [one / count if count else 0.0 for one in sums]
        return shares[0] if len(shares) == 1 else shares

    def reset(self) -> None:
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        shares = [total / count if count else 0.0 for total, count in zip(self.total, self.count)]
        return shares[0] if len(shares) == 1 else shares


class Precision(Metric):
    """Of those that are predicted above 0.5, the share that is 1. Shape: preds[n, 1], labels[n, 1]."""

    def __init__(self, name: str | None = "precision") -> None:
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        import numpy

        said = numpy.floor(numpy.asarray(preds).ravel() + 0.5) == 1
        true = numpy.asarray(labels).ravel() == 1
        self.tp += int((said & true).sum())
        self.fp += int((said & ~true).sum())

    def reset(self) -> None:
        self.tp = self.fp = 0

    def accumulate(self) -> float:
        said = self.tp + self.fp
        return self.tp / said if said else 0.0


class Recall(Metric):
    """Of those that are 1, the share that is predicted above 0.5. Shape: preds[n, 1], labels[n, 1]."""

    def __init__(self, name: str | None = "recall") -> None:
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        import numpy

        said = numpy.rint(numpy.asarray(preds).ravel()) == 1
        true = numpy.asarray(labels).ravel() == 1
        self.tp += int((said & true).sum())
        self.fn += int((~said & true).sum())

    def reset(self) -> None:
        self.tp = self.fn = 0

    def accumulate(self) -> float:
        true = self.tp + self.fn
        return self.tp / true if true else 0.0


class Auc(Metric):
    """The area under the ROC curve, in num_thresholds + 1 buckets of the probability. Shape: preds[n, 2] of
    probabilities in [0, 1], labels[n, 1] of 0 and 1. Throws: Error(config), Error(data)."""

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str | None = "auc") -> None:
        if curve != "ROC":
            raise Error("config", f'paddle.metric.Auc(curve="{curve}") is not supported', 'use "ROC"')
        self._num_thresholds = int(num_thresholds)
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        import numpy

        values = numpy.asarray(preds)[:, 1]
        places = (values * self._num_thresholds).astype("int64")
        if len(places) and not (places.min() >= 0 and places.max() <= self._num_thresholds):
            raise Error(
                "data", "paddle.metric.Auc: a prediction is not within [0, 1]", "give it probabilities"
            )
        true = numpy.asarray(labels).ravel() != 0
        numpy.add.at(self._stat_pos, places[true], 1.0)
        numpy.add.at(self._stat_neg, places[~true], 1.0)

    def reset(self) -> None:
        import numpy

        self._stat_pos = numpy.zeros(self._num_thresholds + 1)
        self._stat_neg = numpy.zeros(self._num_thresholds + 1)

    def accumulate(self) -> float:
        positive, negative = self._stat_pos[::-1], self._stat_neg[::-1]
        true = positive.cumsum()
        area = float((negative * (2 * true - positive)).sum() / 2)
        total = float(true[-1] * negative.sum())
        return area / total if total > 0.0 else 0.0


__getattr__, __dir__ = _lazy.attach(__name__, {"accuracy": "static.metrics:accuracy"})
