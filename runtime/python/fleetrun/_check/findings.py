"""What a check found: where, which name, why it fails, and what to write instead."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Finding:
    """One place of a script.

    kind: "name" (not in the package), "module" (no such module), "argument" (a call that the package's
    function does not take), "refused" (a value that it refuses), "syntax", "raise" and "exit" (the script's
    own); of what a run needs: "argument", "file".
    certain: False for a place that a run comes to only where a branch is taken that the check cannot foresee.
    """

    file: str
    line: int
    column: int
    kind: str
    name: str
    text: str
    instead: str
    certain: bool = True

    def as_json(self) -> dict[str, Any]:
        """As a dict of its fields."""
        return dataclasses.asdict(self)

    def as_text(self) -> str:
        """As a compiler writes it: FILE:LINE: what, and the way out on a line of its own."""
        lines = [f"{self.file}:{self.line}: {self.text}"]
        return "\n    instead: ".join([*lines, self.instead] if self.instead else lines)


def split_message(message: str) -> tuple[str, str]:
    """(what is wrong, what to do about it) of a message of the package: "fleetrun has no X: why; way out",
    "…; did you mean Y?", or an Error's lines with a hint."""
    first, _, rest = message.partition("\n")
    _, mark, hint = f"\n{rest}".partition("\n  hint: ")
    if mark:
        return first, hint
    message = first
    what, mark, instead = message.partition("; did you mean ")
    if mark:
        return what, instead.rstrip("?")
    what, _, instead = message.partition("; ")
    return what, instead
