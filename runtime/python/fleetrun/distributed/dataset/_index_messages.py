"""paddle.distributed.fleet.proto.index_dataset_pb2: the messages of files that hold a TreeIndex, as protobuf
writes them; nothing but these fields."""

from __future__ import annotations

import struct

from fleetrun._error import Error
from fleetrun._types import Any

__all__ = ["IndexNode", "KVItem", "TreeMeta"]

_VARINT, _FIXED32, _BYTES = 0, 5, 2


class _Message:
    """Fields by number: (name, wire type, type)."""

    _FIELDS: dict[int, tuple[str, int, type]] = {}

    def __init__(self, **fields: Any) -> None:
        for name, _, kind in self._FIELDS.values():
            setattr(self, name, kind(fields.pop(name, kind())))
        if fields:
            raise Error("config", f"{type(self).__name__} has no field {next(iter(fields))}")

    def SerializeToString(self) -> bytes:
        """The message's bytes."""
        return b"".join(
            _varint(number << 3 | wire) + _value(getattr(self, name), wire)
            for number, (name, wire, _) in self._FIELDS.items()
        )

    def ParseFromString(self, serialized: bytes) -> int:
        """Takes the fields from bytes; unknown ones are skipped. Throws: Error(data)."""
        at = 0
        while at < len(serialized):
            key, at = _read_varint(serialized, at)
            value, at = _read_value(serialized, at, key & 7)
            name, _, kind = self._FIELDS.get(key >> 3, ("", 0, bytes))
            if name:
                setattr(self, name, value.decode() if kind is str else kind(value))
        return at

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name, _, _ in self._FIELDS.values())
        return f"{type(self).__name__}({fields})"


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _value(value, wire):
    if wire == _VARINT:
        return _varint(int(value) & (1 << 64) - 1)
    if wire == _FIXED32:
        return struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return _varint(len(data)) + data


def _read_varint(data, at):
    value, shift = 0, 0
    while True:
        if at >= len(data) or shift > 63:
            raise Error("data", "a message of an index ends within a number", "write the file again")
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _read_value(data, at, wire):
    if wire == _VARINT:
        return _read_varint(data, at)
    size, at = (4, at) if wire == _FIXED32 else _read_varint(data, at)
    if wire not in (_FIXED32, _BYTES) or at + size > len(data):
        raise Error(
            "data", f"a message of an index ends within a field of wire type {wire}", "write the file again"
        )
    value = data[at : at + size]
    return struct.unpack("<f", value)[0] if wire == _FIXED32 else value, at + size


class IndexNode(_Message):
    """A node of a tree: a leaf is an item."""

    _FIELDS = {
        1: ("id", _VARINT, int),
        2: ("is_leaf", _VARINT, bool),
        3: ("probability", _FIXED32, float),
        4: ("item_name", _BYTES, str),
    }


class TreeMeta(_Message):
    """A tree's levels, and children of a node."""

    _FIELDS = {1: ("height", _VARINT, int), 2: ("branch", _VARINT, int)}


class KVItem(_Message):
    """One entry of a file: a node under its code, or the TreeMeta under ".tree_meta"."""

    _FIELDS = {1: ("key", _BYTES, bytes), 2: ("value", _BYTES, bytes)}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.encode() if isinstance(value, str) else value)
