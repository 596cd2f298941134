"""What torch.compile leaves to Python."""

import functools
import sys
from typing import Any

import torch


def untraced(function: Any = None, recursive: bool = True) -> Any:
    """A decorator: torch.compile leaves the function to Python; what it calls, too, when it is recursive."""
    if function is None:
        return lambda function: untraced(function, recursive)
    disable = getattr(torch, "_disable_dynamo", None)
    if disable is None:
        return function
    left = disable(function, recursive=recursive)

    @functools.wraps(function)
    def inner(*args: Any, **named: Any) -> Any:
        # `left` loads torch._dynamo, which takes seconds, and without which nothing is compiled.
        return (left if "torch._dynamo" in sys.modules else function)(*args, **named)

    return inner


def leave_untraced(kind: type) -> type:
    """A decorator of a class: all its public methods."""
    for name, value in list(vars(kind).items()):
        if callable(value) and not name.startswith("_"):
            setattr(kind, name, untraced(value))
    return kind
