"""paddle.dataset.wmt14: English and French sentences. File: DATA_HOME/wmt14/wmt14.tgz."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.dataset import common

__all__ = ["fetch", "gen", "get_dict", "test", "train"]

_UNKNOWN = 2
# Longer sentences are left out.
_MAX_WORDS = 80


def _lines(end: str) -> Iterator[str]:
    """The lines of the archive's files whose names end so."""
    path = common.local_file("wmt14", "wmt14.tgz")
    with tarfile.open(path) as archive:
        files = [member for member in archive if member.isfile() and member.name.endswith(end)]
        if not files:
            raise Error("data", f"{path} has no file {end}")
        for member in files:
            for line in archive.extractfile(member) or ():
                yield line.decode().strip()


def get_dict(dict_size: int, reverse: bool = True) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """{number: word} of both languages' first dict_size words; {word: number} with reverse=False."""

    def words(end: str) -> dict[Any, Any]:
        numbered = list(enumerate([*_lines(end)][:dict_size]))
        return dict(numbered) if reverse else {word: number for number, word in numbered}

    return words("src.dict"), words("trg.dict")


def _reader(end: str, dict_size: int) -> Callable[[], Iterator[Any]]:
    def reader() -> Iterator[Any]:
        ours, theirs = get_dict(dict_size, reverse=False)
        for line in _lines(end):
            pair = line.split("\t")
            if len(pair) != 2:
                continue
            source = [ours.get(word, _UNKNOWN) for word in ("<s>", *pair[0].split(), "<e>")]
            target = [theirs.get(word, _UNKNOWN) for word in pair[1].split()]
            if max(len(source), len(target)) <= _MAX_WORDS:
                yield source, [theirs["<s>"], *target], [*target, theirs["<e>"]]

    return reader


def train(dict_size: int) -> Callable[[], Iterator[Any]]:
    """A reader of the training set: (source, target behind <s>, target before <e>), as numbers."""
    return _reader("train/train", dict_size)


def test(dict_size: int) -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _reader("test/test", dict_size)


def gen(dict_size: int) -> Callable[[], Iterator[Any]]:
    """A reader of the sentences to translate."""
    return _reader("gen/gen", dict_size)


fetch = common.fetch_files("wmt14", "wmt14.tgz")

__getattr__, __dir__ = _lazy.attach(__name__)
