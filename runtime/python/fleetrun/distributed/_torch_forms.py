"""The forms in which native process groups take a call: with options, without, and with what is in them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["in_every_form"]

_NAMES = {"root": "rootRank", "op": "reduceOp", "timeout": "timeout"}


def in_every_form(kind: type, tensors: int, *fields: str, lists: bool = True) -> Callable[[Any], Any]:
    """A decorator of a method (tensors…, options), with as many arguments before its options. A caller may
    leave these out, or give what is in them: `fields` and a timeout. Where it takes `lists`, it may then give
    a tensor for a list of one, and a list for a list of one list."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def inner(self: Any, *given: Any, **named: Any) -> Any:
            rest = given[tensors:]
            if "opts" in named or rest and _is_options(rest[0]):
                return method(self, *given, **named)
            values = dict(zip((*fields, "timeout"), rest))
            values.update({name: named.pop(name) for name in _NAMES if name in named})
            options = kind()
            for name, value in values.items():
                if value is not None:
                    setattr(options, _NAMES[name], value)
            first = list(given[:tensors])
            if lists and any(isinstance(each, torch.Tensor) for each in first):
                first = [[each] for each in first]
            return method(self, *first, opts=options, **named)

        return inner

    return decorate


def _is_options(given):
    return hasattr(given, "timeout")
