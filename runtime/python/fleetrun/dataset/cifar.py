"""paddle.dataset.cifar: small pictures. Files of DATA_HOME/cifar: cifar-10-python.tar.gz and
cifar-100-python.tar.gz."""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from fleetrun import _lazy
from fleetrun.dataset import common

__all__ = ["fetch", "test10", "test100", "train10", "train100"]


def _reader(classes: int, part: str, cycle: bool = False) -> Callable[[], Iterator[Any]]:
    path = common.local_file("cifar", f"cifar-{classes}-python.tar.gz")

    def reader() -> Iterator[Any]:
        while True:
            with tarfile.open(path) as archive:
                for member in archive:
                    file = archive.extractfile(member) if part in member.name else None
                    if file is not None:
                        yield from _examples(pickle.load(file, encoding="bytes"))
            if not cycle:
                return

    return reader


def _examples(batch):
    labels = batch[b"labels"] if b"labels" in batch else batch[b"fine_labels"]
    for picture, label in zip(batch[b"data"], labels):
        yield (picture / 255.0).astype(numpy.float32), int(label)


def train10(cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of (picture float32 [3072] in [0, 1], class of 10). cycle: without an end."""
    return _reader(10, "data_batch", cycle)


def test10(cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _reader(10, "test_batch", cycle)


def train100() -> Callable[[], Iterator[Any]]:
    """A reader of (picture float32 [3072] in [0, 1], class of 100)."""
    return _reader(100, "train")


def test100() -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _reader(100, "test")


fetch = common.fetch_files("cifar", "cifar-10-python.tar.gz", "cifar-100-python.tar.gz")

__getattr__, __dir__ = _lazy.attach(__name__)
