"""The one exception of fleetrun. Loads nothing else, so that any module may raise it."""

from collections.abc import Iterable
from typing import Any

KINDS = ("usage", "config", "host", "spawn", "network", "timeout", "data")


class Error(RuntimeError):
    """Cannot go on: `str(error)` says what disagrees, what was being done, and what to do about it.

    kind: one of KINDS. hint: an action, or "". context: what was being done, innermost first.
    One of "usage", "config" or "data" is a ValueError and a TypeError, too: Paddle raises one of these for
    arguments that are wrong.
    Source: the same three parts as the C++ Error (runtime/base/error.h); both sides raise this class.
    """

    def __new__(cls, kind: str, *rest: object) -> "Error":
        is_value = cls is Error and kind in ("usage", "config", "data")
        return super().__new__(_WrongValue if is_value else cls, kind, *rest)

    def __init__(self, kind: str, what: str, hint: str = "", context: Iterable[str] = ()) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.hint = hint
        self.context = tuple(context)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Error, (self.kind, self.what, self.hint, self.context))

    def __str__(self) -> str:
        lines = [self.what]
        lines += [f"  while: {line}" for line in self.context]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class _WrongValue(Error, ValueError, TypeError):
    """An Error about an argument."""


# Shown as fleetrun.Error in tracebacks, the name under which people catch it.
for _shown in (Error, _WrongValue):
    _shown.__module__, _shown.__qualname__, _shown.__name__ = "fleetrun", "Error", "Error"
