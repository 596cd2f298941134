"""Notes below an exception's text."""

from __future__ import annotations


def add_note(error: BaseException, note: str) -> None:
    """Adds a line that Python prints below the exception. Python 3.10 prints none: there it ends the text."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        error.args = (f"{error}\n{note}",)
