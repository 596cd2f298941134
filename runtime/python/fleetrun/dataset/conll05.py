"""paddle.dataset.conll05: who does what in a sentence. Files of DATA_HOME/conll05st: conll05st-tests.tar.gz,
wordDict.txt, verbDict.txt, targetDict.txt and emb."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.dataset import common

__all__ = ["get_dict", "get_embedding", "test"]

# The number of words that the dictionary has not.
_UNKNOWN = 0


def _file(name):
    return common.local_file("conll05st", name)


def _numbered(name):
    with open(_file(name), encoding="utf-8") as file:
        return {line.strip(): number for number, line in enumerate(file)}


def _labels():
    """{label: number}: B- and I- of each role in alphabetical order, and O."""
    with open(_file("targetDict.txt"), encoding="utf-8") as file:
        roles = sorted({line.strip()[2:] for line in file if line.startswith(("B-", "I-"))})
    names = [place + role for role in roles for place in ("B-", "I-")]
    return {name: number for number, name in enumerate([*names, "O"])}


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """{word: number}, {verb: number}, {label: number}."""
    return _numbered("wordDict.txt"), _numbered("verbDict.txt"), _labels()


def get_embedding() -> str:
    """The path of the file with vectors of words."""
    return _file("emb")


def _sentences() -> Iterator[tuple[list[str], list[list[str]]]]:
    """(words, columns of each word: its verb or -, and a bracket for each verb)."""
    folder = "conll05st-release/test.wsj"
    path = _file("conll05st-tests.tar.gz")
    with tarfile.open(path) as archive:
        files = [archive.extractfile(f"{folder}/{kind}/test.wsj.{kind}.gz") for kind in ("words", "props")]
        if files[0] is None or files[1] is None:
            raise Error("data", f"{path} has no {folder}/words and {folder}/props")
        words: list[str] = []
        columns: list[list[str]] = []
        with gzip.open(files[0], "rt") as first, gzip.open(files[1], "rt") as second:
            for word, line in zip(first, second):
                if line.split():
                    words.append(word.strip())
                    columns.append(line.split())
                    continue
                yield words, columns
                words, columns = [], []


def _roles(column):
    """Labels of a column of brackets: (A0* begins a role, * goes on with it, *) ends it."""
    labels, role, is_open = [], "", False
    for mark in column:
        if mark.startswith("("):
            role, is_open = mark[1 : mark.index("*")], ")" not in mark
            labels.append("B-" + role)
        elif mark in ("*", "*)"):
            labels.append("I-" + role if is_open or mark == "*)" else "O")
            is_open = is_open and mark == "*"
        else:
            raise Error("data", f"conll05: {mark!r} is no bracket of a role", "use the files of CoNLL-2005")
    return labels


def _example(words, verb, labels, dictionaries):
    word_numbers, verb_numbers, label_numbers = dictionaries
    at, size = labels.index("B-V"), len(labels)
    near = {offset: at + offset for offset in (-2, -1, 0, 1, 2) if 0 <= at + offset < size}
    context = []
    for offset in (-2, -1, 0, 1, 2):
        word = words[near[offset]] if offset in near else ("bos" if offset < 0 else "eos")
        context.append([word_numbers.get(word, _UNKNOWN)] * size)
    return (
        [word_numbers.get(word, _UNKNOWN) for word in words],
        *context,
        [verb_numbers.get(verb)] * size,
        [int(place in near.values()) for place in range(size)],
        [label_numbers.get(label) for label in labels],
    )


def test() -> Callable[[], Iterator[Any]]:
    """A reader of (words, the words two and one before the verb, at it, one and two after it, verb, 1 where
    those words are, labels): lists of numbers, one for each word."""
    dictionaries = get_dict()

    def reader() -> Iterator[Any]:
        for words, columns in _sentences():
            verbs = [each[0] for each in columns if each[0] != "-"]
            for number, verb in enumerate(verbs):
                labels = _roles([each[number + 1] for each in columns])
                yield _example(words, verb, labels, dictionaries)

    return reader


__getattr__, __dir__ = _lazy.attach(__name__)
