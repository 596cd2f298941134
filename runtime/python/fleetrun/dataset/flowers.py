"""paddle.dataset.flowers: pictures of flowers of 102 kinds. Files of DATA_HOME/flowers: 102flowers.tgz,
imagelabels.mat and setid.mat; OpenCV decodes the pictures, and SciPy reads the others."""

from __future__ import annotations

import functools
import os
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from fleetrun import _lazy
from fleetrun import reader as readers
from fleetrun.dataset import common, image

__all__ = ["fetch", "test", "train", "valid"]

_MEAN = (103.94, 116.78, 123.68)


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[numpy.ndarray, int]:
    """(picture float32 [3 * 224 * 224], label) of what is in its file, as Paddle has them."""
    picture, label = sample
    made = image.simple_transform(image.load_image_bytes(picture), 256, 224, is_train, mean=_MEAN)
    return made.flatten(), label


train_mapper = functools.partial(default_mapper, True)
test_mapper = functools.partial(default_mapper, False)


def _reader(part, mapper, buffered_size, use_xmap, cycle=False):
    archive, labels, parts = (
        common.local_file("flowers", name) for name in ("102flowers.tgz", "imagelabels.mat", "setid.mat")
    )
    load = image.needed("scipy.io", "scipy").loadmat
    kinds, numbers = load(labels)["labels"][0], load(parts)[part][0]
    label_of = {f"jpg/image_{number:05d}.jpg": int(kinds[number - 1]) - 1 for number in numbers}

    def samples() -> Iterator[Any]:
        while True:
            with tarfile.open(archive) as pictures:
                for member in pictures:
                    file = pictures.extractfile(member) if member.name in label_of else None
                    if file is not None:
                        yield file.read(), label_of[member.name]
            if not cycle:
                return

    if use_xmap:
        return readers.xmap_readers(mapper, samples, min(4, os.cpu_count() or 1), buffered_size, True)
    return readers.map_readers(mapper, samples)


def train(
    mapper: Any = train_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Callable[[], Iterator[Any]]:
    """A reader of (picture float32 [3 * 224 * 224], kind), the larger part. cycle: without an end."""
    return _reader("tstid", mapper, buffered_size, use_xmap, cycle)


def test(
    mapper: Any = test_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _reader("trnid", mapper, buffered_size, use_xmap, cycle)


def valid(
    mapper: Any = test_mapper, buffered_size: int = 1024, use_xmap: bool = True
) -> Callable[[], Iterator[Any]]:
    """A reader of the set for validation."""
    return _reader("valid", mapper, buffered_size, use_xmap)


fetch = common.fetch_files("flowers", "102flowers.tgz", "imagelabels.mat", "setid.mat")

__getattr__, __dir__ = _lazy.attach(__name__)
