"""Finds the modules of Paddle that are another one here (_homes.py), and says why there is none of a name."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec

from fleetrun import _lazy
from fleetrun._homes import HOMES

NATIVE = ("_native", "_multi_slot_text")

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any


class Finder:
    """Finds what _homes.py says."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's spec."""
        package, _, name = fullname.partition(".")
        if package == "fleetrun" and name in NATIVE and _is_for_later(name):
            raise _built_for_another(name)
        loader: Any = Finder
        return ModuleSpec(fullname, loader) if package == "fleetrun" and name in HOMES else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """The usual one."""

    @staticmethod
    def exec_module(module: Any) -> None:
        """Puts the module that it is in its place."""
        name = module.__name__.partition(".")[2]
        home = HOMES[name]
        if home:
            sys.modules[module.__name__] = importlib.import_module("fleetrun." + home)
        else:
            module.__doc__ = f"paddle.{name}: modules of Paddle that lie elsewhere here."
            module.__getattr__, module.__dir__ = _lazy.attach(module.__name__)


class Last:
    """Asked after those that look for files: what comes here is not there."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> None:
        """Throws: ModuleNotFoundError that says what paddle_names.txt has about it."""
        package, _, name = fullname.partition(".")
        if package == "fleetrun" and name in NATIVE:
            raise _built_for_another(name)
        if package == "fleetrun" and name:
            raise not_found("paddle." + name)


def _is_for_later(name: str) -> bool:
    """Whether there is only the module of Python 3.12 and later, which earlier ones load, and lack what it
    calls."""
    stem = os.path.join(os.path.dirname(__file__), name)
    return (
        sys.version_info < (3, 12)
        and os.path.exists(stem + ".abi3.so")
        and not os.path.exists(stem + EXTENSION_SUFFIXES[0])
    )


def _built_for_another(name: str) -> ImportError:
    """The error for a native module that this Python has not."""
    folder = os.path.dirname(os.path.abspath(__file__))
    built = sorted(
        file for file in os.listdir(folder) if file.startswith(name + ".") and file.endswith(".so")
    )
    here = f"Python {sys.version_info.major}.{sys.version_info.minor} ({sys.executable})"
    what = f"{folder} holds {', '.join(built)}" if built else f"{folder} holds no {name}*.so"
    return ImportError(
        f"fleetrun was built for another Python than this one, {here}: {what}; run the script with the "
        "Python that it was built for, or build it for this one (scripts/package wheel --python=PYTHON)"
    )


def not_found(name: str) -> ModuleNotFoundError:
    """The error for a module, or a name that is imported from one, that is not there."""
    owner, _, last = name.rpartition(".")
    known = getattr(sys.modules.get("fleetrun" + owner.removeprefix("paddle")), "__all__", ())
    # It has no name of its own, so that `from paddle import vision` shows this text and not Python's.
    return ModuleNotFoundError(_lazy.missing(owner, last, known))


# First, because some of these modules have folders of .pyi, which Python takes for packages.
sys.meta_path.insert(0, Finder)
sys.meta_path.append(Last)
