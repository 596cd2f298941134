"""paddle.dataset.imikolov: sentences of the Penn Treebank. File: DATA_HOME/imikolov/simple-examples.tgz."""

from __future__ import annotations

import collections
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.dataset import common

__all__ = ["build_dict", "DataType", "fetch", "test", "train"]

_TRAIN = "./simple-examples/data/ptb.train.txt"
_TEST = "./simple-examples/data/ptb.valid.txt"


class DataType:
    """What an example is: n words in a row, or a sentence and the same one word on."""

    NGRAM = 1
    SEQ = 2


def _lines(member: str) -> Iterator[bytes]:
    path = common.local_file("imikolov", "simple-examples.tgz")
    with tarfile.open(path) as archive:
        file = archive.extractfile(member)
        if file is None:
            raise Error("data", f"{path} has no file {member}")
        yield from file


def build_dict(min_word_freq: int = 50) -> dict[Any, int]:
    """{word: number} of the words that are there more often, the most frequent first; <unk> is the last."""
    counts: collections.Counter[Any] = collections.Counter()
    for member in (_TRAIN, _TEST):
        for line in _lines(member):
            counts.update(line.strip().split())
            counts.update(["<s>", "<e>"])
    counts.pop("<unk>", None)
    known = [(word, count) for word, count in counts.items() if count > min_word_freq]
    known.sort(key=lambda one: (-one[1], one[0] if isinstance(one[0], bytes) else one[0].encode()))
    words = {word: number for number, (word, _) in enumerate(known)}
    words["<unk>"] = len(words)
    return words


def _reader(member: str, word_idx: Mapping[Any, int], n: int, data_type: int) -> Callable[[], Iterator[Any]]:
    if data_type not in (DataType.NGRAM, DataType.SEQ) or data_type == DataType.NGRAM and n < 1:
        raise Error("config", f"paddle.dataset.imikolov: data_type={data_type!r}, n={n}")

    def reader() -> Iterator[Any]:
        unknown = word_idx["<unk>"]
        for line in _lines(member):
            words: list[Any] = list(line.strip().split())
            if data_type == DataType.NGRAM:
                ids = [word_idx.get(word, unknown) for word in ["<s>", *words, "<e>"]]
                for end in range(n, len(ids) + 1):
                    yield tuple(ids[end - n : end])
                continue
            ids = [word_idx.get(word, unknown) for word in words]
            if n <= 0 or len(ids) + 1 <= n:
                yield [word_idx["<s>"], *ids], [*ids, word_idx["<e>"]]

    return reader


def train(
    word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM
) -> Callable[[], Iterator[Any]]:
    """A reader of the training set."""
    return _reader(_TRAIN, word_idx, n, data_type)


def test(word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM) -> Callable[[], Iterator[Any]]:
    """A reader of the validation set."""
    return _reader(_TEST, word_idx, n, data_type)


fetch = common.fetch_files("imikolov", "simple-examples.tgz")

__getattr__, __dir__ = _lazy.attach(__name__)
