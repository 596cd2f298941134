"""Nested lists, tuples and dicts, as paddle.utils and fluid.layers.utils take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleetrun import _lazy

__all__ = [
    "assert_same_structure", "convert_to_list", "flatten", "is_sequence", "map_structure", "pack_sequence_as",
]  # fmt: skip


def is_sequence(seq: Any) -> bool:
    """Whether flatten takes it apart."""
    return isinstance(seq, (dict, list, tuple))


def convert_to_list(value: Any, n: int, name: str, dtype: type = int) -> list[Any]:
    """`value` n times, or the list of n values that it is. Throws: ValueError for another number or type."""
    if isinstance(value, dtype):
        return [value] * n
    values = list(value) if isinstance(value, (list, tuple)) else []
    if len(values) != n or not all(isinstance(one, dtype) for one in values):
        raise ValueError(f"{name} is {value!r}: give a number ({dtype.__name__}), or {n} of them")
    return values


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Throws: ValueError for other numbers of values or keys, TypeError for lists in the place of tuples."""
    if is_sequence(nest1) != is_sequence(nest2) or is_sequence(nest1) and len(nest1) != len(nest2):
        raise ValueError(f"the structures differ: {nest1!r} and {nest2!r}")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"the structures differ: {type(nest1).__name__} and {type(nest2).__name__}")
    if isinstance(nest1, dict) and set(nest1) != set(nest2):
        raise ValueError(f"the structures have other keys: {list(nest1)} and {list(nest2)}")
    ones, others = (
        [nest[key] for key in nest1] if isinstance(nest, dict) else nest for nest in (nest1, nest2)
    )
    for one, other in zip(ones, others):
        assert_same_structure(one, other, check_types)


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
