"""Programs that Paddle wrote, made anew of the operators here."""

from __future__ import annotations

import os

from fleetrun import _graph as graph
from fleetrun import _lazy, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Mapping, Program, Variable
from fleetrun.fluid import _by_type
from fleetrun.fluid._operator import Operator
from fleetrun.fluid._program_desc import OperatorDesc, VariableDesc, program_desc
from fleetrun.static import io, variable_files
from fleetrun.static.inputs import data
from fleetrun.static.undone import renamed

__all__ = ["program_of"]

_ENDS = ("feed", "fetch")  # what says the inputs and outputs of a model


def program_of(written: bytes, where: str) -> tuple[Program, list[str], list[Variable]]:
    """(program, names to feed, variables to fetch) of a ProgramDesc; its parameters have no values yet.

    Throws: Error(data) naming `where` for bytes that are none, Error(config) naming the operators that are
    not known here.
    """
    variables, operators = program_desc(written, where)
    unknown = {op.type for op in operators} - {*_by_type.types(), *_ENDS}
    if unknown:
        raise Error(
            "config",
            f"{where} holds a program of Paddle with operators that are not known here: "
            + ", ".join(sorted(unknown)),
            "write it before minimize(), or build it with the script that made it and load its parameters",
        )
    try:
        return _made(variables, operators, where)
    except Error:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Error("data", f"{where} is damaged: {error!r}", "save the model again") from error


def _made(variables, operators, where):
    program = Program()
    # Names of its own until the end, where they become those of the file.
    with graph.program_guard(program, Program()), graph.unique_name_guard("of_paddle/"):
        names = _Names(variables, where)
        feeds = _in_order(operators, "feed", "outputs", "Out")
        for name in feeds or names.fed(operators):
            names.declare(name)
        for op in operators:
            if op.type not in _ENDS:
                names.append(op)
    renamed(program, names.found())
    fetched = _in_order(operators, "fetch", "inputs", "X")
    return program, feeds, [program.var(name) for name in fetched]


def load_model(written: bytes, path: str, values: str) -> list[Any]:
    """[program, names to feed, variables to fetch] of an inference model of Paddle, whose parameters go into
    the scope: from the file `values`, or from files of their names in a folder. Throws: Error(data,
    config)."""
    program, feeds, fetches = program_of(written, path)
    names = sorted(
        name for name in program.native.variable_names() if program.native.variable(name).persistable
    )
    if os.path.isdir(values):
        found = {name: variable_files.value_of_file(os.path.join(values, name)) for name in names}
    else:
        listed = variable_files.values_of_file(values) if names or os.path.exists(values) else []
        if len(listed) != len(names):
            raise Error(
                "data",
                f"{values} holds {len(listed)} values, and the program in {path} keeps {len(names)}",
                "give the two files that were saved together",
            )
        found = dict(zip(names, listed))
    io.set_values(program, found, values)
    return [program, feeds, fetches]


def _in_order(operators, type, side, slot):
    of_type = [op for op in operators if op.type == type]
    of_type.sort(key=lambda op: op.attributes.get("col", 0))
    return [getattr(op, side)[slot][0] for op in of_type]


class _Names:
    """What the names of a file stand for, operator after operator."""

    def __init__(self, variables: Mapping[str, VariableDesc], where: str) -> None:
        self._variables, self._where = variables, where
        self._of: dict[str, Variable] = {}
        self._taken: set[str] = set()  # names here of variables that a name of the file stands for
        program = graph.default_main_program()
        for variable in variables.values():
            if variable.persistable and variable.dtype is not None:
                self._bind(variable.name, _kept(program, variable))

    def fed(self, operators: list[OperatorDesc]) -> list[str]:
        """What a program without operators that feed reads before it writes it."""
        known, found = set(self._of), []
        for op in operators:
            read = [name for names in op.inputs.values() for name in names if name not in known]
            found += read
            known.update(read, (name for names in op.outputs.values() for name in names))
        return found

    def declare(self, name: str) -> None:
        """An input."""
        known = self._variables.get(name)
        if known is None or known.dtype is None:
            raise Error("data", f"{self._where}: {name} is fed and is no tensor", "save the model again")
        self._bind(name, data(name, known.shape, known.dtype, known.lod_level))

    def append(self, op: OperatorDesc) -> None:
        """Computes an operator."""
        inputs = {slot: [self._variable(op, name) for name in names] for slot, names in op.inputs.items()}
        try:
            made = _by_type.compute(Operator(op.type, inputs, op.attributes))
        except Error as error:
            raise Error("config", f"{self._where}: operator {op.type}: {error.what}", error.hint) from error
        for slot, results in made.items():
            for name, result in zip(op.outputs.get(slot, ()), results):
                self._write(name, result)

    def _variable(self, op, name):
        if name not in self._of:
            raise Error(
                "config", f"{self._where}: operator {op.type} reads {name}, which nothing computes here"
            )
        return self._of[name]

    def _write(self, name, result):
        # Paddle 2 reduces to no axis, and 1.x to one of size 1.
        known = self._variables.get(name)
        if known is not None and known.shape in ([], [1]) and list(result.shape) in ([], [1]):
            result = result if known.shape == list(result.shape) else tensor.reshape(result, known.shape)
        before = self._of.get(name)
        if before is not None and graph.default_main_program().native.variable(before.name).persistable:
            if before.name != result.name:
                tensor.assign(result, before)
            return
        # Each name is of one variable alone, and no input is another's output.
        self._bind(name, tensor.assign(result) if result.name in self._taken else result)

    def _bind(self, name, variable):
        self._of[name] = variable
        self._taken.add(variable.name)

    def found(self) -> dict[str, str]:
        """{name here: name in the file}."""
        return {variable.name: name for name, variable in self._of.items()}


def _kept(program: Any, variable: VariableDesc) -> Variable:
    trained = variable.is_parameter and not variable.stop_gradient
    program.native.add_variable(
        variable.name,
        variable.dtype,
        variable.shape,
        persistable=True,
        trainable=trained,
        stop_gradient=not trained,
    )
    if variable.is_parameter:
        return program.add_parameter(variable.name, None, 1.0)
    return program.var(variable.name)


__getattr__, __dir__ = _lazy.attach(__name__)
