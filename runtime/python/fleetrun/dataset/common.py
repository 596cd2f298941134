"""paddle.dataset.common: where the files of data sets lie, and files split among readers."""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error

__all__ = ["cluster_files_reader", "DATA_HOME", "download", "fetch_files", "local_file", "md5file", "split"]

DATA_HOME = os.path.join(os.path.expanduser("~"), ".cache", "paddle", "dataset")


def md5file(fname: str) -> str:
    """The MD5 of a file, in hexadecimal digits."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fname, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def download(url: str, module_name: str, md5sum: str | None, save_name: str | None = None) -> str:
    """DATA_HOME/module_name/FILE, the last part of `url` or save_name. Throws: Error(host) for a file that is
    not there, Error(data) for one with another MD5."""
    path = os.path.join(DATA_HOME, module_name, save_name or url.rpartition("/")[2])
    if not os.path.exists(path):
        raise Error(
            "host", f"{path} is not there, and fleetrun downloads nothing", f"put the file of {url} there"
        )
    if md5sum and md5file(path) != md5sum:
        raise Error("data", f"{path} has the MD5 {md5file(path)}, not {md5sum}", f"put {url} there")
    return path


def local_file(module_name: str, name: str) -> str:
    """The path of a data set's file, also where it was saved under more of its address ("movielens%2F" +
    name). Throws: Error(host) for one that is not there."""
    names = sorted(glob.glob(os.path.join(DATA_HOME, module_name, "*" + name)))
    return names[0] if names else download(name, module_name, None)


def fetch_files(module_name: str, *names: str) -> Callable[[], None]:
    """What a data set's fetch() is here, where nothing is downloaded."""

    def fetch() -> None:
        """Nothing where the files are there. Throws: Error(host) for one that is not."""
        for name in names:
            local_file(module_name, name)

    return fetch


def split(
    reader: Callable[[], Any],
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Callable[[Any, Any], Any] = pickle.dump,
) -> None:
    """Writes the examples of `reader` to files, line_count to each."""
    lines: list[Any] = []
    count = 0
    for example in reader():
        lines.append(example)
        if len(lines) == line_count:
            _dump(lines, suffix % count, dumper)
            lines, count = [], count + 1
    if lines:
        _dump(lines, suffix % count, dumper)


def _dump(lines, name, dumper):
    with open(name, "wb") as file:
        dumper(lines, file)


def cluster_files_reader(
    files_pattern: str,
    trainer_count: int,
    trainer_id: int,
    loader: Callable[[Any], Any] = pickle.load,
) -> Callable[[], Iterator[Any]]:
    """A reader of every trainer_count-th file of the pattern, from trainer_id on."""

    def reader() -> Iterator[Any]:
        for number, name in enumerate(sorted(glob.glob(files_pattern))):
            if number % trainer_count == trainer_id:
                with open(name, "rb") as file:
                    yield from loader(file)

    return reader


__getattr__, __dir__ = _lazy.attach(__name__)
