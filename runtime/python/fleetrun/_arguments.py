"""Checks of arguments that several calls have."""

import sys
from typing import Any

from fleetrun._error import Error

_said = set()


def plain(value):
    """Python's number or bool for one of numpy's, alone or in an array of no dimensions; anything else as
    it is."""
    numpy = sys.modules.get("numpy")
    scalar = numpy and isinstance(value, (numpy.generic, numpy.ndarray)) and value.ndim == 0
    return value.item() if scalar else value


def as_list(value: Any, count: int = 1) -> list[Any]:
    """What a list or tuple holds, or `count` times the value that stands for one."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


def warn_once(subject, text):
    """Says `text` on standard error, once per process for each `subject`: of what is accepted and has no
    effect."""
    if subject not in _said:
        _said.add(subject)
        print(f"fleetrun: warning: {text}", file=sys.stderr, flush=True)


def warn_of_save(told):
    """Says what a load has said of the newest save, "" for nothing."""
    if told:
        import warnings

        warnings.warn(
            f"the newest save is incomplete, so the one before it is loaded: {told}",
            RuntimeWarning,
            stacklevel=3,
        )


def refuse(function, **arguments):
    """Each argument is (given, default). Throws: Error(config) naming the first one that is not its
    default."""
    for name, (given, default) in arguments.items():
        given = plain(given)
        if given is default or (isinstance(given, (bool, int, float, str, list, tuple)) and given == default):
            continue
        raise Error(
            "config",
            f"{function}({name}={given!r}) is not supported",
            f"leave {name} at its default, {default!r}",
        )


def whole_number(what, value, least):
    """`value`, also as text, as a whole number of at least `least`. Throws: Error(config)."""
    try:
        number = int(value)
        if number != float(value) or isinstance(value, bool):
            raise ValueError
    except (TypeError, ValueError):
        raise Error("config", f"{what}={value!r} is not a whole number") from None
    if number < least:
        raise Error("config", f"{what}={value!r}: it must be at least {least}")
    return number
