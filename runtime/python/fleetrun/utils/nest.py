"""Nested lists, tuples and dicts, as paddle.utils and fluid.layers.utils take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleetrun import _lazy

__all__ = ["flatten", "map_structure", "pack_sequence_as"]


def flatten(nest: Any) -> list[Any]:
    """What is in it, in order; of a dict by its keys in order."""
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in flatten(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for one in nest for leaf in flatten(one)]
    return [nest]


def pack_sequence_as(structure: Any, flat_sequence: list[Any]) -> Any:
    """The values of flat_sequence in the structure of another nest. Throws: ValueError for another number."""
    leaves = list(flat_sequence)
    if len(leaves) != len(flatten(structure)):
        raise ValueError(f"the structure has {len(flatten(structure))} values, {len(leaves)} are given")
    rest = iter(leaves)

    def packed(one: Any) -> Any:
        if isinstance(one, dict):
            made = {key: packed(one[key]) for key in sorted(one)}
            return type(one)((key, made[key]) for key in one)
        if isinstance(one, (list, tuple)):
            values = [packed(child) for child in one]
            return type(one)(*values) if hasattr(one, "_fields") else type(one)(values)
        return next(rest)

    return packed(structure)


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """func of the values at the same place of each nest, in that structure."""
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])


__getattr__, __dir__ = _lazy.attach(__name__)
