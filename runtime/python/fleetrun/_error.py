"""The one exception of fleetrun. Loads nothing else, so that any module may raise it."""

from collections.abc import Iterable
from typing import Any

KINDS = ("usage", "config", "host", "spawn", "network", "timeout", "data")


class Error(RuntimeError):
    """Cannot go on: `str(error)` says what disagrees, what was being done, and what to do about it.

    kind: one of KINDS. hint: an action, or "". context: what was being done, innermost first.
    Source: the same three parts as the C++ Error (runtime/base/error.h); both sides raise this class.
    """

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


# Shown as fleetrun.Error in tracebacks, the name under which people catch it.
Error.__module__ = "fleetrun"
