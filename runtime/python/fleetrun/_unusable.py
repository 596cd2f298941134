"""Names of Paddle that scripts import, derive classes from and pass on beside what they run: they may do so,
and calling one says why it is not here (_decisions.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleetrun import _lazy


class Unusable(type):
    """The type of such a name, and of what a script derives from it. To call either throws AttributeError."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Throws: AttributeError."""
        named = next(each for each in cls.__mro__ if each.__module__ == __name__)
        owner, _, name = named.__qualname__.rpartition(".")
        raise _lazy.MissingName(owner, name, tuple)


def beside(found: Callable[[str], Any], owner: str, text: str) -> Callable[[str], Any]:
    """A module's __getattr__: the words of `text` are such names, others are as `found` has them. owner: the
    module's name as scripts write it."""
    made: dict[str, Unusable] = {}
    names = set(text.split())

    def __getattr__(name: str) -> Any:
        if name not in names:
            return found(name)
        if name not in made:
            made[name] = Unusable(name, (), {"__module__": __name__, "__qualname__": f"{owner}.{name}"})
        return made[name]

    return __getattr__
