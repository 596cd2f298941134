"""paddle.dataset.uci_housing: prices of houses. File: DATA_HOME/uci_housing/housing.data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun.dataset import common

__all__ = ["feature_names", "fetch", "test", "train"]

feature_names = [
    "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT",
]  # fmt: skip


def _rows():
    """[houses, 13 features between -1 and 1, and the price]."""
    import numpy

    data = numpy.fromfile(common.local_file("uci_housing", "housing.data"), sep=" ").reshape(-1, 14)
    features = data[:, :-1]
    spread = features.max(axis=0) - features.min(axis=0)
    data[:, :-1] = (features - features.sum(axis=0) / len(data)) / spread
    return data


def _reader(part):
    rows = _rows()
    count = int(len(rows) * 0.8)
    chosen = rows[:count] if part == "train" else rows[count:]

    def reader() -> Iterator[Any]:
        for row in chosen:
            yield row[:-1], row[-1:]

    return reader


def train() -> Callable[[], Iterator[Any]]:
    """A reader of (13 features, price): the first four fifths."""
    return _reader("train")


def test() -> Callable[[], Iterator[Any]]:
    """A reader of the rest."""
    return _reader("test")


fetch = common.fetch_files("uci_housing", "housing.data")

__getattr__, __dir__ = _lazy.attach(__name__)
