"""What functions of the package give, by their annotations."""

from __future__ import annotations

import ast
import functools
import sys
from typing import Any

from fleetrun._check.values import UNKNOWN, Abstract, Listing, Made

__all__ = ["is_package", "returned"]


def is_package(name: str) -> bool:
    """Whether a module's name is one of the package's."""
    return name.partition(".")[0] in ("paddle", "fleetrun")


@functools.cache
def _classes() -> dict[str, type]:
    """The classes that annotations name without their module."""
    found: dict[str, type] = {}
    for module in [each for name, each in sys.modules.items() if name.startswith("fleetrun.")]:
        for name, value in vars(module).items():
            if isinstance(value, type) and is_package(value.__module__):
                found.setdefault(name, value)
    return found


@functools.cache
def _promised(function: Any) -> Any:
    notes = getattr(function, "__annotations__", None) or {}
    note = notes.get("return")
    if isinstance(note, type):
        return note
    if note is None:
        return None
    try:
        return ast.parse(str(note), mode="eval").body
    except SyntaxError:
        return None


def returned(function: Any) -> Any:
    """What a function of the package gives, by its annotation."""
    return _of_note(_promised(getattr(function, "__func__", function)), function)


def _of_note(note: Any, function: Any) -> Any:
    if isinstance(note, type):
        return Made(note) if is_package(note.__module__) else UNKNOWN
    if isinstance(note, (ast.Name, ast.Attribute)):
        name = note.id if isinstance(note, ast.Name) else note.attr
        found = getattr(function, "__globals__", {}).get(name)
        found = found if isinstance(found, type) else _classes().get(name)
        return Made(found) if isinstance(found, type) and is_package(found.__module__) else UNKNOWN
    if isinstance(note, ast.Subscript) and isinstance(note.value, ast.Name):
        inner = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
        values = [_of_note(each, function) for each in inner]
        if note.value.id == "tuple" and not isinstance(inner[-1], ast.Constant):
            return tuple(values)
        if note.value.id in ("list", "tuple", "Iterator", "Sequence") and isinstance(values[0], Abstract):
            return Listing([values[0]], exact=False)
    return UNKNOWN
