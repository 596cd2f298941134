"""paddle.compat: what scripts of Paddle 1.x and 2.x use where Python 2 and 3 differ."""

from __future__ import annotations

import math

from fleetrun import _lazy
from fleetrun._types import Any

__all__ = [
    "floor_division", "get_exception_message", "int_type", "long_type", "round", "to_bytes", "to_text",
]  # fmt: skip

int_type = long_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Bytes as text, also within lists, sets and dictionaries; inplace: these themselves are changed."""
    return _each(obj, lambda one: one.decode(encoding) if isinstance(one, bytes) else one, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Text as bytes, also within lists and sets; inplace: these themselves are changed."""
    return _each(obj, lambda one: one.encode(encoding) if isinstance(one, str) else one, inplace)


def _each(obj, change, inplace):
    if isinstance(obj, dict):
        made: Any = {change(key): change(value) for key, value in obj.items()}
    elif isinstance(obj, (list, set)):
        made = type(obj)(map(change, obj))
    else:
        return change(obj)
    if not inplace:
        return made
    obj.clear()
    obj.extend(made) if isinstance(obj, list) else obj.update(made)
    return obj


def round(x: float, d: int = 0) -> float:
    """x to `d` digits, halves away from zero, as in Python 2."""
    scale = 10**d
    return math.copysign(math.floor(abs(x) * scale + 0.5) / scale, x)


def floor_division(x: float, y: float) -> float:
    """x // y."""
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """What the exception says."""
    return str(exc)


__getattr__, __dir__ = _lazy.attach(__name__)
