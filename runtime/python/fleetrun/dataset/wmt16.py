"""paddle.dataset.wmt16: English and German sentences. File: DATA_HOME/wmt16/wmt16.tar.gz."""

from __future__ import annotations

import collections
import functools
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.dataset import common

__all__ = ["fetch", "get_dict", "test", "train", "validation"]

# How many words each language has.
_WORDS = {"en": 11250, "de": 19220}
_MARKS = ("<s>", "<e>", "<unk>")


def _pairs(path: str, member: str) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as archive:
        file = archive.extractfile(member)
        if file is None:
            raise Error("data", f"{path} has no file {member}")
        for line in file:
            parts = line.decode("utf-8").strip().split("\t")
            if len(parts) == 2:
                yield parts[0], parts[1]


def _place(lang: str) -> int:
    if lang not in _WORDS:
        raise ValueError(f"paddle.dataset.wmt16: language {lang!r}; use en or de")
    return 0 if lang == "en" else 1


@functools.cache
def _words(path: str, lang: str, size: int) -> tuple[str, ...]:
    """The marks, and the most frequent words of the training set; equal ones as they come."""
    counts: collections.Counter[str] = collections.Counter()
    place = _place(lang)
    for pair in _pairs(path, "wmt16/train"):
        counts.update(pair[place].split())
    return (*_MARKS, *(word for word, _ in counts.most_common()))[:size]


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[Any, Any]:
    """{word: number} of the dict_size most frequent words, <s>, <e> and <unk> among them; reverse: {number:
    word}."""
    _place(lang)
    path = common.local_file("wmt16", "wmt16.tar.gz")
    words = _words(path, lang, min(int(dict_size), _WORDS[lang]))
    return dict(enumerate(words)) if reverse else {word: number for number, word in enumerate(words)}


def _reader(member: str, sizes: tuple[int, int], src_lang: str) -> Callable[[], Iterator[Any]]:
    place = _place(src_lang)
    other = "de" if src_lang == "en" else "en"

    def reader() -> Iterator[Any]:
        ours, theirs = get_dict(src_lang, sizes[0]), get_dict(other, sizes[1])
        begin, end, unknown = (ours[mark] for mark in _MARKS)
        for pair in _pairs(common.local_file("wmt16", "wmt16.tar.gz"), member):
            source = [ours.get(word, unknown) for word in pair[place].split()]
            target = [theirs.get(word, unknown) for word in pair[1 - place].split()]
            yield [begin, *source, end], [begin, *target], [*target, end]

    return reader


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator[Any]]:
    """A reader of the training set: (source, target behind <s>, target before <e>), as numbers."""
    return _reader("wmt16/train", (src_dict_size, trg_dict_size), src_lang)


def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _reader("wmt16/test", (src_dict_size, trg_dict_size), src_lang)


def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator[Any]]:
    """A reader of the validation set."""
    return _reader("wmt16/val", (src_dict_size, trg_dict_size), src_lang)


fetch = common.fetch_files("wmt16", "wmt16.tar.gz")

__getattr__, __dir__ = _lazy.attach(__name__)
