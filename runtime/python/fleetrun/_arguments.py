"""Checks of arguments that several calls have."""

import numbers
import sys

from fleetrun._error import Error

_said = set()


def plain(value):
    """Python's number for one of numpy's, a float32 or an int64; anything else as it is."""
    return value.item() if isinstance(value, numbers.Number) and hasattr(value, "item") else value


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
