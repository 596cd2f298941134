"""paddle.dataset.mnist: digits. Files: the four *-ubyte.gz in DATA_HOME/mnist."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.dataset import common

__all__ = ["fetch", "reader_creator", "test", "train"]


def reader_creator(image_filename: str, label_filename: str, buffer_size: int) -> Callable[[], Iterator[Any]]:
    """A reader of (784 float32 in [-1, 1], digit). Throws: Error(data) for files that do not belong
    together."""

    def reader() -> Iterator[Any]:
        import numpy

        with gzip.open(image_filename) as file:
            head = numpy.frombuffer(file.read(16), ">u4")
            pixels = numpy.frombuffer(file.read(), "u1").reshape(int(head[1]), -1)
        with gzip.open(label_filename) as file:
            labels = numpy.frombuffer(file.read()[8:], "u1")
        if len(labels) != len(pixels):
            raise Error(
                "data", f"{image_filename} has {len(pixels)} pictures, {label_filename} {len(labels)} labels"
            )
        for start in range(0, len(pixels), buffer_size):
            values = pixels[start : start + buffer_size].astype("float32") / 255.0 * 2.0 - 1.0
            for row, label in zip(values, labels[start : start + buffer_size]):
                yield row, int(label)

    return reader


def _of(name):
    images, labels = f"{name}-images-idx3-ubyte.gz", f"{name}-labels-idx1-ubyte.gz"
    return reader_creator(common.local_file("mnist", images), common.local_file("mnist", labels), 100)


def train() -> Callable[[], Iterator[Any]]:
    """A reader of the training set."""
    return _of("train")


def test() -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _of("t10k")


fetch = common.fetch_files(
    "mnist",
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)

__getattr__, __dir__ = _lazy.attach(__name__)
