"""save_vars and load_vars: values in Paddle's own files, one for each variable, or all in one file.

A value is, all little-endian: 0 (4 bytes, a version), the number of levels of sequences (8 bytes) and for
each its bytes (8 bytes) and offsets; 0 (4 bytes), the size (4 bytes) of a message of type and shape, the
message (field 1 the type, 2 a size), and the numbers. A file of several has them behind each other in the
order of their names, and says none of these. Source: files of Paddle 1.8.5.
"""

from __future__ import annotations

import math
import os
import re
import struct

import numpy

from fleetrun import _lazy, framework
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Iterable, Program, Variable
from fleetrun.static import io, server_files
from fleetrun.static.paddle_state import with_powers

__all__ = ["folder_values", "load_vars", "save_vars", "value_of_file", "values_of_file"]

# Paddle's numbers of types.
_TYPES = {
    0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64", 20: "uint8",
    21: "int8",
}  # fmt: skip
_NUMBERS = {name: number for number, name in _TYPES.items()}
# Where these calls wrote pickles of {name: array} before.
_OLDER = ("variables.pdparams", "params.pdparams", "persistables.pdparams")


def save_vars(
    executor: Any,
    dirname: str,
    main_program: Program | None = None,
    vars: Iterable[Variable] | None = None,
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | None = None,
) -> None:
    """Values of `vars`, or of those of the program for which predicate(variable), to files of their names in
    dirname, or all to dirname/filename."""
    program = main_program or _program_of(vars) or framework.default_main_program()
    chosen = _chosen(program, vars, predicate)
    if not chosen:
        return
    kept = io._kept(program)
    missing = sorted(name for name in chosen if name not in kept)
    if missing:
        raise Error(
            "config",
            f"paddle.static.save_vars: {missing[0]} has no value to save",
            "save persistable variables, after the start-up program has run",
        )
    values = _as_paddle(program, {name: kept[name] for name in chosen})
    if filename:
        io._write(os.path.join(dirname, filename), b"".join(_packed(values[name]) for name in sorted(values)))
        return
    for name, value in values.items():
        io._write(os.path.join(dirname, name), _packed(value))


def load_vars(
    executor: Any,
    dirname: str,
    main_program: Program | None = None,
    vars: Iterable[Variable] | None = None,
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | None = None,
) -> None:
    """Reads back what save_vars wrote, here or in Paddle. Throws: Error(data) for a file that is missing or
    holds something else."""
    program = main_program or _program_of(vars) or framework.default_main_program()
    chosen = _chosen(program, vars, predicate)
    if not chosen:
        return
    values = _read_values(program, chosen, dirname, filename)
    io.set_values(program, values, dirname)


def folder_values(dirname: str) -> dict[str, Any]:
    """{name: array} of a folder with a file for each variable. Throws: Error(data)."""
    found = {}
    for folder, _, files in os.walk(dirname):
        for file in sorted(files):
            path = os.path.join(folder, file)
            found[os.path.relpath(path, dirname)] = value_of_file(path)
    return found


def value_of_file(path: str) -> Any:
    """The array of a file of one variable. Throws: Error(data)."""
    (value,) = _unpacked(io._read(path), path, 1)
    return value


def values_of_file(path: str) -> list[Any]:
    """The arrays of a file of several variables, in its order. Throws: Error(data)."""
    return _unpacked(io._read(path), path)


def _program_of(variables):
    """The one whose variables are listed, which is the default program's or another."""
    return next((each.program for each in variables or () if isinstance(each, framework.Variable)), None)


def _chosen(program, vars, predicate):
    listed = program.list_vars() if vars is None else vars
    return {
        variable if isinstance(variable, str) else variable.name
        for variable in listed
        if (predicate is None or predicate(variable)) and not _is_fed(program, variable)
    }


def _is_fed(program, variable):
    """Whether it is an input, which a script may have made persistable."""
    name = variable if isinstance(variable, str) else variable.name
    return program.has_var(name) and program.native.variable(name).is_data


def _as_paddle(program, values):
    """`values` under the names that Paddle has for them."""
    powers = with_powers(program, values)
    for name in powers:
        if _is_rate(name):
            powers[name] = numpy.reshape(powers[name], -1)
    if len(powers) == len(values):
        return powers
    return {name: value for name, value in powers.items() if not _is_step(name, values)}


def _is_rate(name):
    return name.startswith("learning_rate_")


def _is_step(name, values):
    return re.search(r"_step_\d+$", name) is not None and name in values and values[name].dtype == numpy.int64


def _read_values(program, chosen, dirname, filename):
    older = [name for name in (filename, *_OLDER) if name and _is_pickle(os.path.join(dirname, name))]
    if older and (filename or not _has_own_files(dirname, chosen)):
        values = io._unpickled(os.path.join(dirname, older[0]))
        return {name: value for name, value in values.items() if name in chosen}
    if not filename and not _has_own_files(dirname, chosen) and server_files.are_in(dirname):
        return server_files.read(program, chosen, dirname)
    expected = {name: numpy.zeros(1, program.native.variable(name).type) for name in chosen}
    names = sorted(_as_paddle(program, expected))
    if filename:
        return _of_one_file(program, names, os.path.join(dirname, filename))
    # What Paddle keeps besides of an optimizer, it may lack, and of older files the learning rate; each other
    # variable of the program must be there.
    wanted = [
        name
        for name in names
        if (name in chosen and not _is_rate(name)) or os.path.exists(os.path.join(dirname, name))
    ]
    paths = {name: os.path.join(dirname, name) for name in wanted}
    return {name: _unpacked(io._read(path), path, 1)[0] for name, path in paths.items()}


def _of_one_file(program, names, path):
    values = _unpacked(io._read(path), path)
    if len(values) == len(names) + 1 and "learning_rate_0" not in names:
        names = sorted([*names, "learning_rate_0"])
    elif len(values) == len(names) - 1:
        names = [name for name in names if not _is_rate(name)]  # older files have none
    if len(values) != len(names):
        raise Error(
            "data",
            f"{path} holds {len(values)} values, and {len(names)} are to be loaded",
            "load the variables that were saved to it",
        )
    return dict(zip(names, values))


def _has_own_files(dirname, names):
    return any(os.path.exists(os.path.join(dirname, name)) for name in names)


def _is_pickle(path):
    try:
        with open(path, "rb") as file:
            return file.read(1) == b"\x80"
    except OSError:
        return False


def _packed(value: Any) -> bytes:
    array = numpy.ascontiguousarray(value)
    message = b"\x08" + _varint(_NUMBERS[array.dtype.name])
    for size in numpy.shape(value):
        message += b"\x10" + _varint(size)
    head = struct.pack("<IQIi", 0, 0, 0, len(message))
    return head + message + array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


class _Reader:
    """Takes numbers from bytes. Throws: Error(data) behind their end."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path, self.at = data, path, 0

    def damaged(self, what: str) -> Error:
        return Error("data", f"{self.path} holds no value of a variable: {what}", "save it again")

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise self.damaged(f"{size} bytes are to follow byte {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, kind: str) -> int:
        return int(struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))[0])

    def value(self) -> Any:
        if self.number("I") != 0:
            raise self.damaged("its version is not 0")
        for _ in range(self.number("Q")):
            self.take(self.number("Q"))
        if self.number("I") != 0:
            raise self.damaged("its second version is not 0")
        kind, shape = self.message(self.take(self.number("i")))
        if kind not in _TYPES:
            raise self.damaged(f"its type is {kind}")
        dtype = numpy.dtype(_TYPES[kind]).newbyteorder("<")
        data = self.take(math.prod(shape) * dtype.itemsize)
        return numpy.frombuffer(data, dtype).reshape(shape).astype(_TYPES[kind])

    def message(self, data: bytes) -> tuple[int, list[int]]:
        kind, shape = -1, []
        inner, ends = _Reader(data, self.path), len(data)
        while inner.at < ends:
            key = inner.varint()
            if key == 0x12:  # sizes, packed
                packed = _Reader(inner.take(inner.varint()), self.path)
                while packed.at < len(packed.data):
                    shape.append(packed.varint())
            elif key == 0x08:
                kind = inner.varint()
            elif key == 0x10:
                shape.append(inner.varint())
            else:
                raise self.damaged(f"its message has a field {key}")
        return kind, shape

    def varint(self) -> int:
        number, shift = 0, 0
        while shift < 63:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
        raise self.damaged("a number is too long")


def _unpacked(data: bytes, path: str, count: int = 0) -> list[Any]:
    """The values of a file, `count` of them where it is given."""
    reader, values = _Reader(data, path), []
    while reader.at < len(data):
        values.append(reader.value())
    if count and len(values) != count:
        raise reader.damaged(f"it holds {len(values)} values, not {count}")
    return values


__getattr__, __dir__ = _lazy.attach(__name__)
