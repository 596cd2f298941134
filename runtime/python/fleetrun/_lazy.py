"""Module attributes that are imported when they are first used, and the message for those that are not there.

A pipe command imports fleetrun once per file, so nothing may be loaded that is not asked for; and a name that
fleetrun does not have fails where it is used, with its own name and the nearest one that exists. Editors and
type checkers read the same names in the .pyi beside the module, which scripts/python-stubs writes.
"""

import importlib
import sys

from fleetrun._homes import CHILDREN

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


def missing(owner: str, name: str, known: "Iterable[str]") -> str:
    """The message for `owner.name`: the reason and the way out that are decided for it (_decisions.py), else
    the nearest name: "fleetrun has no paddle.nn.Conv2D; did you mean …?"."""
    import difflib

    from fleetrun._decisions import reason

    decided = reason(owner, name)
    if decided:
        return f"fleetrun has no {owner}.{name}: {decided}"
    near = difflib.get_close_matches(name, sorted(known), n=1)
    suggestion = f"; did you mean {owner}.{near[0]}?" if near else ""
    return f"fleetrun has no {owner}.{name}{suggestion}"


class MissingName(AttributeError):
    """`owner.name` is not there. The message, missing(), is made when it is read: hasattr() reads none, and
    whoever asks in every step shall not wait for it."""

    def __init__(self, owner: str, name: str, known: "Callable[[], Iterable[str]]") -> None:
        super().__init__(name=name)
        self._asked = (owner, name, known)

    def __str__(self) -> str:
        owner, name, known = self._asked
        return missing(owner, name, known())


# What a traceback says.
MissingName.__module__ = "builtins"
MissingName.__name__ = MissingName.__qualname__ = "AttributeError"


# A script's first variable may come from these, and needs its methods, which lie above them.
_CREATES = ("tensor", "_more_math", "_more_shapes", "_in_place")


def attach(
    module_name: str, table: "dict[str, str] | None" = None, owner: str | None = None
) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """Returns (__getattr__, __dir__) for a module whose names live elsewhere, and adds those to its __all__.

    `table` maps a name to "module:attribute" or "module"; modules are relative to the package fleetrun. None
    for a module that has all its names, and wants the message only. `owner` is its name as scripts write it,
    where that is not the module's with "paddle" for "fleetrun".
    """
    module = sys.modules[module_name]
    owner = owner or "paddle" + module_name.removeprefix("fleetrun")
    lazy = table or {}
    known = vars(module)["__all__"] = [*vars(module).get("__all__", ()), *lazy]
    # Modules of Paddle below this one that are another one here; a module without files has an empty path.
    lazy = {**CHILDREN.get(module_name.partition(".")[2], {}), **lazy}
    vars(module).setdefault("__path__", [])

    def __getattr__(name: str) -> "Any":
        target = lazy.get(name)
        if target is None:
            # `from fleetrun import _x` asks here first, before it imports that module.
            if name.startswith("_"):
                raise AttributeError(f"fleetrun has no {owner}.{name}")
            raise MissingName(owner, name, lambda: known)
        home, _, attributes = target.partition(":")
        value = importlib.import_module("fleetrun." + home)
        if home in _CREATES:
            importlib.import_module("fleetrun._methods")
        for attribute in attributes.split(".") if attributes else ():
            value = getattr(value, attribute)
        setattr(module, name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*known, *(name for name in vars(module) if not name.startswith("_"))})

    return __getattr__, __dir__


def names(module: str, text: str) -> dict[str, str]:
    """A part of attach()'s table: every word of `text` is that name in `module`."""
    return {name: f"{module}:{name}" for name in text.split()}


# What several modules of Paddle have.
LOADERS = {"DataLoader": "io.loader:DataLoader", "PyReader": "io.generator_loader:PyReader"}
