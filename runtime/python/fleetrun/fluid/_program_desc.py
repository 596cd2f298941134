"""A program in Paddle's own format: ProgramDesc of its framework.proto, in files `__model__` and `*.pdmodel`.

Only what a program computes with is read: the first block's variables and operators.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Any, Iterator

__all__ = ["DTYPES", "OperatorDesc", "VariableDesc", "program_desc"]

DTYPES = {
    0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64", 20: "uint8",
    21: "int8", 22: "bfloat16",
}  # fmt: skip
_LOD_TENSOR = 7


class VariableDesc(NamedTuple):
    name: str
    dtype: str | None  # None: no tensor
    shape: list[int]
    lod_level: int
    persistable: bool
    is_parameter: bool
    stop_gradient: bool


class OperatorDesc(NamedTuple):
    type: str
    inputs: dict[str, list[str]]  # names of variables by slot
    outputs: dict[str, list[str]]
    attributes: dict[str, Any]


class _Damaged(Exception):
    pass


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number & (1 << 64) - 1, at
    raise _Damaged


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of each field of a message: an int, or the bytes of the others."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, wire, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise _Damaged
        if at + size > len(data):
            raise _Damaged
        yield key >> 3, wire, data[at : at + size]
        at += size


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _integers(wire: int, value: Any) -> list[int]:
    """Of a repeated field: one, or several that are packed."""
    if wire == 0:
        return [_signed(value)]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(_signed(number))
    return numbers


def _reals(code: str, value: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(value) // struct.calcsize(code)}{code}", value))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _scalar(data: bytes) -> Any:
    for number, wire, value in _fields(data):
        if number == 2:
            return bool(value)
        if number == 3 and wire == 0:
            return _signed(value)
        if number == 4:
            return _reals("d", value)[0]
    return 0


# Fields of an attribute: how each is read, and whether it is one of several.
_ONE: dict[int, Any] = {
    3: lambda wire, value: _integers(wire, value)[0],
    4: lambda wire, value: _reals("f", value)[0],
    5: lambda wire, value: _text(value),
    10: lambda wire, value: bool(value),
    13: lambda wire, value: _integers(wire, value)[0],
    19: lambda wire, value: _reals("d", value)[0],
    20: lambda wire, value: _scalar(value),
}
_SEVERAL: dict[int, Any] = {
    6: _integers,
    7: lambda wire, value: _reals("f", value),
    8: lambda wire, value: [_text(value)],
    11: lambda wire, value: [bool(number) for number in _integers(wire, value)],
    15: _integers,
    16: lambda wire, value: _reals("d", value),
    21: lambda wire, value: [_scalar(value)],
}
_BLOCK, _BLOCKS = 12, 14
_TYPES_OF_SEVERAL = (3, 4, 5, 7, 11, 12, 17)


def _attribute(data: bytes) -> tuple[str, Any]:
    name, value, several, kind = "", None, [], -1
    for number, wire, part in _fields(data):
        if number == 1:
            name = _text(part)
        elif number == 2:
            kind = part
        elif number in (_BLOCK, _BLOCKS):
            name = "sub_block"
        elif number in _ONE:
            value = _ONE[number](wire, part)
        elif number in _SEVERAL:
            several += _SEVERAL[number](wire, part)
    return name, several if kind in _TYPES_OF_SEVERAL else value


def _slot(data: bytes) -> tuple[str, list[str]]:
    name, arguments = "", []
    for number, _, value in _fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            arguments.append(_text(value))
    return name, arguments


def _operator(data: bytes) -> OperatorDesc:
    desc = OperatorDesc("", {}, {}, {})
    for number, _, value in _fields(data):
        if number == 3:
            desc = desc._replace(type=_text(value))
        elif number in (1, 2):
            slot, names = _slot(value)
            (desc.inputs if number == 1 else desc.outputs)[slot] = names
        elif number == 4:
            name, attribute = _attribute(value)
            desc.attributes[name] = attribute
    return desc


def _tensor(data: bytes) -> tuple[str | None, list[int], int]:
    """(type, sizes, lod level) of a LoDTensorDesc."""
    kind, sizes, level = None, [], 0
    for number, _, value in _fields(data):
        if number == 2:
            level = value
        elif number == 1:
            for inner, wire, part in _fields(value):
                if inner == 1:
                    kind = DTYPES.get(part)
                elif inner == 2:
                    sizes += _integers(wire, part)
    return kind, sizes, level


def _variable(data: bytes) -> VariableDesc:
    desc = VariableDesc("", None, [], 0, False, False, False)
    for number, _, value in _fields(data):
        if number == 1:
            desc = desc._replace(name=_text(value))
        elif number == 2:
            inner = dict((part, of) for part, _, of in _fields(value))
            if inner.get(1) == _LOD_TENSOR and 3 in inner:
                kind, sizes, level = _tensor(inner[3])
                desc = desc._replace(dtype=kind, shape=sizes, lod_level=level)
        elif number == 3:
            desc = desc._replace(persistable=bool(value))
        elif number == 5:
            desc = desc._replace(is_parameter=bool(value))
        elif number == 6:
            desc = desc._replace(stop_gradient=bool(value))
    return desc


def program_desc(data: bytes, where: str) -> tuple[dict[str, VariableDesc], list[OperatorDesc]]:
    """The variables, by name, and the operators of the first block. Throws: Error(data) naming `where`."""
    try:
        block = next(value for number, wire, value in _fields(data) if (number, wire) == (1, 2))
        parts = list(_fields(block))
        variables = [_variable(value) for number, wire, value in parts if (number, wire) == (3, 2)]
        operators = [_operator(value) for number, wire, value in parts if (number, wire) == (4, 2)]
    except (_Damaged, AttributeError, IndexError, StopIteration, TypeError, ValueError, struct.error):
        raise Error(
            "data", f"{where} is a program neither of fleetrun nor of Paddle", "save the model again"
        ) from None
    if not operators or not all(op.type for op in operators):
        raise Error("data", f"{where} holds a program without operators", "save the model again")
    return {variable.name: variable for variable in variables}, operators


__getattr__, __dir__ = _lazy.attach(__name__)
