"""What a process alone saved (fluid.io.save_persistables), for servers that start from it."""

from __future__ import annotations

import contextlib
import os
import tempfile

import numpy

from fleetrun import _lazy, _native
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._types import Any, Iterable, Iterator
from fleetrun.static import server_files
from fleetrun.static.variable_files import value_of_file

__all__ = ["as_saved"]


@contextlib.contextmanager
def as_saved(dirname: str, entries: Iterable[Any]) -> Iterator[str]:
    """A directory from which servers load: dirname; or, where that holds a file for each parameter of the
    entries, as a process alone saves them, one with the same values, which is there within `with`. Throws:
    Error(data) for values that are not such a table's."""
    tables = {entry.parameter: entry.table for entry in entries}
    if server_files.are_in(dirname) or not all(
        os.path.isfile(os.path.join(dirname, name)) for name in tables
    ):
        yield dirname
        return
    client = _native.make_in_process("async", list(tables.values()))
    for name, table in tables.items():
        values = numpy.asarray(value_of_file(os.path.join(dirname, name)), "float32")
        if values.size != table.width if not table.sparse else values.ndim != 2:
            shape = [-1] * table.sparse + [table.width]
            raise Error(
                "data",
                f"{dirname}: {name} has the shape {list(values.shape)} there, and is {shape} in the program",
                "load its model",
            )
        if table.sparse:
            _native.ps_assign(client, table.id, numpy.arange(len(values), dtype="uint64"), values.reshape(-1))
        else:
            client.set_dense(table.id, values.reshape(-1))
    warn_once(
        f"first values of {dirname}",
        f"{dirname} was saved by a process alone: servers take its parameters, and what an optimizer keeps "
        "of them begins anew",
    )
    with tempfile.TemporaryDirectory() as made:
        client.save(made)
        yield made


__getattr__, __dir__ = _lazy.attach(__name__)
