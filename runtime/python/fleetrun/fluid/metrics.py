"""paddle.fluid.metrics: metrics that a script keeps from what it fetched, as Paddle 1.x has them."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Any
from fleetrun.metric import Auc as _Auc

__all__ = [
    "Accuracy", "Auc", "ChunkEvaluator", "CompositeMetric", "EditDistance", "MetricBase", "Precision",
    "Recall",
]  # fmt: skip


class MetricBase:
    """Base: update() takes arrays, eval() gives the metric of all of them."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name or type(self).__name__
        self.reset()

    def reset(self) -> None:
        """Begins again."""

    def update(self, preds: Any, labels: Any) -> None:
        """One more batch."""
        raise NotImplementedError(f"{type(self).__name__}.update")

    def eval(self) -> Any:
        """The metric of everything since reset()."""
        raise NotImplementedError(f"{type(self).__name__}.eval")


class Accuracy(MetricBase):
    """The mean of accuracies by their weights: update(value, weight)."""

    def reset(self) -> None:
        self.value = self.weight = 0.0

    def update(self, value: Any, weight: Any) -> None:
        import numpy

        self.value += float(numpy.asarray(value).ravel()[0]) * weight
        self.weight += weight

    def eval(self) -> float:
        if self.weight == 0:
            raise ValueError("There is no data in Accuracy Metrics. Please check layers.accuracy output.")
        return self.value / self.weight


class Precision(MetricBase):
    """Of those that are predicted (rounded) 1, the share that is. Shape: preds[n, 1], labels[n, 1]."""

    def reset(self) -> None:
        self.tp = self.fp = 0

    def update(self, preds: Any, labels: Any) -> None:
        import numpy

        said = numpy.rint(numpy.asarray(preds).ravel()) == 1
        true = numpy.asarray(labels).ravel() == 1
        self.tp += int((said & true).sum())
        self.fp += int((said & ~true).sum())

    def eval(self) -> float:
        said = self.tp + self.fp
        return self.tp / said if said else 0.0


class Recall(MetricBase):
    """Of those that are 1, the share that is predicted (rounded) so. Shape: preds[n, 1], labels[n, 1]."""

    def reset(self) -> None:
        self.tp = self.fn = 0

    def update(self, preds: Any, labels: Any) -> None:
        import numpy

        said = numpy.rint(numpy.asarray(preds).ravel()) == 1
        true = numpy.asarray(labels).ravel() == 1
        self.tp += int((said & true).sum())
        self.fn += int((~said & true).sum())

    def eval(self) -> float:
        true = self.tp + self.fn
        return self.tp / true if true else 0.0


class Auc(MetricBase):
    """The area under the ROC curve. Shape: preds[n, 2], labels[n, 1]."""

    def __init__(self, name: str | None = None, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        self._auc = _Auc(curve, num_thresholds)
        super().__init__(name)

    def reset(self) -> None:
        self._auc.reset()

    def update(self, preds: Any, labels: Any) -> None:
        self._auc.update(preds, labels)

    def eval(self) -> float:
        return float(self._auc.accumulate())


class ChunkEvaluator(MetricBase):
    """(precision, recall, F1) of pieces: update() takes the last three results of layers.chunk_eval."""

    def reset(self) -> None:
        """Back to no pieces."""
        self.num_infer_chunks = self.num_label_chunks = self.num_correct_chunks = 0

    def update(  # type: ignore[override]
        self, num_infer_chunks: Any, num_label_chunks: Any, num_correct_chunks: Any
    ) -> None:
        """Adds one result, numbers or arrays of one."""
        self.num_infer_chunks += _one(num_infer_chunks)
        self.num_label_chunks += _one(num_label_chunks)
        self.num_correct_chunks += _one(num_correct_chunks)

    def eval(self) -> tuple[float, float, float]:
        """(precision, recall, F1), 0 where nothing is counted."""
        correct = self.num_correct_chunks
        precision = correct / self.num_infer_chunks if self.num_infer_chunks else 0.0
        recall = correct / self.num_label_chunks if self.num_label_chunks else 0.0
        return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


def _one(number):
    import numpy

    return int(numpy.asarray(number).reshape(-1)[0])


class EditDistance(MetricBase):
    """The mean of distances, and the share that is not 0: update(distances, seq_num)."""

    def reset(self) -> None:
        self.total_distance, self.seq_num, self.instance_error = 0.0, 0, 0

    def update(self, distances: Any, seq_num: int) -> None:
        import numpy

        values = numpy.asarray(distances)
        self.total_distance += float(values.sum())
        self.seq_num += seq_num
        self.instance_error += seq_num - int((values == 0).sum())

    def eval(self) -> tuple[float, float]:
        if self.seq_num == 0:
            raise ValueError("There is no data in EditDistance Metric.")
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


class CompositeMetric(MetricBase):
    """Several metrics of the same arrays."""

    def reset(self) -> None:
        if not hasattr(self, "_metrics"):
            self._metrics: list[MetricBase] = []
        for metric in self._metrics:
            metric.reset()

    def add_metric(self, metric: MetricBase) -> None:
        """One more. Throws: Error(config) for what is not a metric."""
        if not isinstance(metric, MetricBase):
            raise Error("config", f"CompositeMetric.add_metric({metric!r}) is not a metric")
        self._metrics.append(metric)

    def update(self, preds: Any, labels: Any) -> None:
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        return [metric.eval() for metric in self._metrics]


__getattr__, __dir__ = _lazy.attach(__name__)
