"""Saving and loading of a process that trains alone: what the servers would hold, and what the scope holds.

DIR/persistables.npz: every persistable variable by name (parameters, optimizer state, metrics).
DIR/tables/: the rows of sparse_embedding, as servers write them (ps/).
"""

import os

import numpy

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._files import replacing
from fleetrun._types import Any


def save(training, program, dirname, mode=0):
    """Writes `training`'s tables and `program`'s (its main program's, when None) persistables below
    `dirname`."""
    program = program or training.main
    scope = framework.global_scope().native
    values: dict[str, Any] = {
        name: numpy.asarray(scope.value(name))
        for name in program.native.variable_names()
        if program.native.variable(name).persistable and scope.has(name)
    }
    with replacing(os.path.join(dirname, "persistables.npz")) as file:
        numpy.savez(file, **values)
    if training.client is not None:
        training.client.save(os.path.join(dirname, "tables"), mode)


def load(training, dirname):
    """Reads back what save() wrote; returns what is wrong with the newest save where an older one was read.
    Throws: Error(data)."""
    path = os.path.join(dirname, "persistables.npz")
    scope = framework.global_scope().native
    try:
        with numpy.load(path) as values:
            for name in values.files:
                scope.set_value(name, numpy.ascontiguousarray(values[name]))
    except OSError as error:
        raise Error(
            "data",
            f"{path} cannot be read: {error.strerror}",
            "give the directory that a process without servers wrote with fleet.save_persistables",
        ) from error
    if training.client is not None:
        return training.client.load(os.path.join(dirname, "tables"))
    return ""
