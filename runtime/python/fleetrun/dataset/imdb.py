"""paddle.dataset.imdb: reviews of films. File: DATA_HOME/imdb/aclImdb_v1.tar.gz."""

from __future__ import annotations

import collections
import re
import string
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fleetrun import _lazy
from fleetrun.dataset import common

__all__ = ["build_dict", "fetch", "test", "tokenize", "train", "word_dict"]

_PUNCTUATION = string.punctuation.encode("latin-1")


def tokenize(pattern: re.Pattern[str]) -> Iterator[list[bytes]]:
    """The words of each file whose name matches."""
    with tarfile.open(common.local_file("imdb", "aclImdb_v1.tar.gz")) as archive:
        for member in archive:
            file = archive.extractfile(member) if pattern.match(member.name) else None
            if file is not None:
                yield file.read().rstrip(b"\n\r").translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[Any, int]:
    """{word: number} of the words that are there more often than `cutoff`; <unk> is the last."""
    counts = collections.Counter(word for words in tokenize(pattern) for word in words)
    known = sorted(((-count, word) for word, count in counts.items() if count > cutoff))
    words: dict[Any, int] = {word: number for number, (_, word) in enumerate(known)}
    words["<unk>"] = len(words)
    return words


def _reader(part: str, word_idx: Mapping[Any, int]) -> Callable[[], Iterator[Any]]:
    unknown = word_idx["<unk>"]
    examples = [
        ([word_idx.get(word, unknown) for word in words], label)
        for label, kind in enumerate(("pos", "neg"))
        for words in tokenize(re.compile(rf"aclImdb/{part}/{kind}/.*\.txt$"))
    ]
    return lambda: iter(examples)


def train(word_idx: Mapping[Any, int]) -> Callable[[], Iterator[Any]]:
    """A reader of (numbers of the words, 0 for a good or 1 for a bad review)."""
    return _reader("train", word_idx)


def test(word_idx: Mapping[Any, int]) -> Callable[[], Iterator[Any]]:
    """A reader of the test set."""
    return _reader("test", word_idx)


def word_dict() -> dict[Any, int]:
    """build_dict() of all reviews."""
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


fetch = common.fetch_files("imdb", "aclImdb_v1.tar.gz")

__getattr__, __dir__ = _lazy.attach(__name__)
