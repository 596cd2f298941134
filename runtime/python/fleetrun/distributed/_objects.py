"""Objects as bytes, and back, without running code that a sender chose.

text    JSON of the values; what JSON does not tell apart is {"kind": [...]} : tuples, sets, dicts (as pairs),
        bytes and arrays, whose contents lie behind the text
bytes   "D" │ u64 length of the text │ text │ contents          or "P" │ pickle, where both ends allow it

Data are None, bool, int, float, str, bytes, list, tuple, set, dict of them, numpy's arrays and numbers, and
tensors of PyTorch (in the host's memory when they arrive).
"""

import json
import sys

from fleetrun._error import Error
from fleetrun._types import Any

__all__ = ["from_bytes", "to_bytes"]

_HINT = "give values that JSON has, bytes and arrays, or allow_pickle=True on all ranks"


def to_bytes(value: object, allow_pickle: bool) -> bytes:
    """Throws: Error(config) naming the type that is not data, unless allow_pickle."""
    contents: list[bytes] = []
    try:
        text = json.dumps(_plain(value, contents)).encode()
    except (Error, RecursionError) as error:
        if not allow_pickle:
            if isinstance(error, Error):
                raise
            raise Error(
                "config", "an object that holds itself, or too many others, is not data", _HINT
            ) from None
        import pickle

        return b"P" + pickle.dumps(value)
    return b"".join([b"D", len(text).to_bytes(8, "little"), text, *contents])


def from_bytes(received: bytes, allow_pickle: bool) -> Any:
    """The object that to_bytes() was given. Throws: Error(config) for a pickle, unless allow_pickle."""
    if received[:1] == b"P":
        if not allow_pickle:
            raise Error("config", "an object arrived as a pickle, and this rank did not allow it", _HINT)
        import pickle

        return pickle.loads(received[1:])
    end = 9 + int.from_bytes(received[1:9], "little")
    return _value(json.loads(received[9:end]), _Contents(received, end))


def _plain(value: Any, contents: list[bytes]) -> Any:
    """What JSON keeps of a value, whose contents go behind those that are there."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_plain(each, contents) for each in value]
    if kind in (tuple, set, frozenset):
        return {kind.__name__: [_plain(each, contents) for each in value]}
    if kind is dict:
        return {"dict": [[_plain(key, contents), _plain(each, contents)] for key, each in value.items()]}
    if kind in (bytes, bytearray):
        contents.append(bytes(value))
        return {kind.__name__: len(value)}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        return _plain_tensor(torch, value.detach(), contents)
    is_array = numpy is not None and kind is numpy.ndarray
    if (is_array or (numpy is not None and isinstance(value, numpy.generic))) and not value.dtype.hasobject:
        contents.append(value.tobytes())
        name = "array" if is_array else "number"
        return {name: [_described(value.dtype), list(value.shape), len(contents[-1])]}
    raise Error("config", f"an object of type {kind.__module__}.{kind.__qualname__} is not data", _HINT)


def _described(dtype):
    """A dtype as its own text, or as the list of its fields."""
    return dtype.str if dtype.names is None else [list(field) for field in dtype.descr]


def _plain_tensor(torch, tensor, contents):
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise Error("config", f"a tensor of layout {tensor.layout} is not data", _HINT)
    flat = tensor.cpu().contiguous().reshape(-1)
    contents.append(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return {"tensor": [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), len(contents[-1])]}


class _Contents:
    """Takes the contents one after the other."""

    def __init__(self, received: bytes, start: int) -> None:
        self._received, self._start = received, start

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        self._start += length
        return self._received[self._start - length : self._start]


def _value(plain: Any, contents: _Contents) -> Any:
    if isinstance(plain, list):
        return [_value(each, contents) for each in plain]
    if not isinstance(plain, dict):
        return plain
    ((name, held),) = plain.items()
    if name in ("bytes", "bytearray"):
        return {"bytes": bytes, "bytearray": bytearray}[name](contents.take(held))
    if name == "dict":
        return {_value(key, contents): _value(each, contents) for key, each in held}
    if name in ("tuple", "set", "frozenset"):
        made = {"tuple": tuple, "set": set, "frozenset": frozenset}[name]
        return made(_value(each, contents) for each in held)
    return _array(name, held, contents)


def _array(name, held, contents):
    dtype, shape, length = held
    data = bytearray(contents.take(length))
    if name == "tensor":
        import torch

        if not length:
            return torch.empty(shape, dtype=getattr(torch, dtype))
        return torch.frombuffer(data, dtype=torch.uint8).view(getattr(torch, dtype)).view(shape)
    import numpy

    if isinstance(dtype, list):
        dtype = [tuple(tuple(part) if isinstance(part, list) else part for part in field) for field in dtype]
    array = numpy.frombuffer(data, dtype=numpy.dtype(dtype)).reshape(shape)
    return array[()] if name == "number" else array
