"""What a check computes of Python itself and its library: constants of paths, text and numbers."""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import inspect
import json
import math
import os
import posixpath
import string
import sys
import types
from collections.abc import Callable
from typing import Any

from fleetrun._check.values import (
    UNKNOWN,
    Abstract,
    Foreign,
    Listing,
    Mapped,
    Mapping,
    NotConcrete,
    Opened,
    Unset,
    abstract,
    concrete,
    element,
    items_of,
    truth,
)

# Functions of their arguments alone, or of the files that are there now.
_COMPUTED: dict[str, Callable[..., Any]] = {
    **{f"os.path.{name}": getattr(posixpath, name) for name in (
        "join", "dirname", "abspath", "basename", "realpath", "normpath", "split", "splitext", "isabs")},
    "os.getcwd": os.getcwd,
    **{f"builtins.{each.__name__}": each for each in (
        abs, bool, bytes, chr, complex, divmod, float, hash, hex, int, len, max, min, oct, ord, pow, repr,
        round, sorted, str, sum, tuple, list, dict, slice)},
    **{f"math.{name}": each for name, each in vars(math).items()
       if callable(each) and name not in ("comb", "factorial", "perm")},
    **{f"builtins.str.{name}": each for name, each in vars(str).items() if name[0] != "_"},
}  # fmt: skip
_VALUES: dict[str, Any] = {
    "sys.version_info": tuple(sys.version_info), "sys.version": sys.version, "sys.platform": sys.platform,
    "sys.maxsize": sys.maxsize, "os.name": os.name, "os.sep": os.sep, "os.linesep": os.linesep,
    "sys.executable": sys.executable, "six.PY2": False, "six.PY3": True, "typing.TYPE_CHECKING": False,
    **{f"{module.__name__ if module is not posixpath else 'os.path'}.{name}": value
       for module in (posixpath, os, math, string) for name, value in vars(module).items()
       if name[0] != "_" and isinstance(value, (str, int, float))},
}  # fmt: skip
_LARGEST = 4096
# Modules that do something when they are imported; setuptools puts itself, which is large, before distutils.
_NOT_READ = ("builtins", "this", "antigravity", "distutils", "idlelib", "tkinter", "turtle")


def value_of(name: str) -> Any:
    """What the foreign name is, as far as it is known."""
    return abstract(_VALUES[name]) if name in _VALUES else Foreign(name)


# What scripts import beside Python's library that does nothing when it is imported.
_READ = ("numpy", "PIL", "yaml", "six")


@functools.cache
def is_read(name: str) -> bool:
    """Whether the name is one of a module whose names are known: of Python's library, or of _READ."""
    top = name.partition(".")[0]
    if (top not in sys.stdlib_module_names and top not in _READ) or top in _NOT_READ:
        return False
    try:
        return isinstance(importlib.import_module(name), types.ModuleType)
    except ImportError:
        return False


def _read(name: str) -> Any:
    """A module that is read, or an object in one by its dotted name; None where it is neither."""
    if is_read(name):
        return importlib.import_module(name)
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute, None) if is_read(module) else None


@functools.cache
def lacks(module: str, name: str) -> str:
    """What Python says of a name that a module, or an object in one, has not; "" where it has it, and where
    that is not known."""
    found = _read(module)
    if isinstance(found, (types.NoneType, types.FunctionType, type)) or module.startswith("sys."):
        return ""  # a script may give names to these, and sys.stdout is another one here
    try:
        getattr(found, name)
    except AttributeError as error:
        is_module = importlib.util.find_spec(f"{module}.{name}") if hasattr(found, "__path__") else None
        first, _, rest = str(error).partition("\n")
        return "" if is_module else f"{first}; {rest.partition('. ')[0]}".removesuffix("; ")
    return ""


def why_not_called(name: str, args: list[Any], keywords: dict[str, Any]) -> TypeError | None:
    """Why a function of a module that is read does not take these arguments, where it does not."""
    function = _read(name)
    if not isinstance(function, types.FunctionType):
        return None
    try:
        inspect.signature(function).bind(*args, **keywords)
    except TypeError as error:
        return error
    except ValueError:  # of what numpy wraps
        return None
    return None


def call(name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """What a call of the foreign name gives."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(args, keywords)
    function = _COMPUTED.get(name)
    if function is None:
        return UNKNOWN
    return compute(function, args, keywords)


def compute(function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> Any:
    """The function's result for values that are known, else UNKNOWN."""
    try:
        given = [concrete(arg) for arg in args]
        named = {key: concrete(value) for key, value in keywords.items()}
        if any(isinstance(each, int) and abs(each) > 10**9 for each in given):
            return UNKNOWN
        result = function(*given, **named)
    except Exception:  # NotConcrete, and what the script itself would raise
        return UNKNOWN
    if isinstance(result, (str, bytes, list, dict, tuple)) and len(result) > _LARGEST:
        return UNKNOWN
    return abstract(result)


def _open(args: list[Any], keywords: dict[str, Any]) -> Any:
    path, mode = args[0] if args else UNKNOWN, args[1] if len(args) > 1 else keywords.get("mode", "r")
    if isinstance(path, str) and mode in ("r", "rt", "rb") and os.path.isfile(path):
        return Opened(path)
    return UNKNOWN


def read(file: Opened, method: str) -> Any:
    """What a method of an opened file gives."""
    if method in ("read", "readlines"):
        text = file.text()
        if method == "read" or not isinstance(text, str):
            return text
        return Listing(text.splitlines(keepends=True))
    return None if method == "close" else UNKNOWN


def _parsed(parse: Callable[[str], Any]) -> Callable[..., Any]:
    """A document of a file that is there, or of a text."""

    def loaded(args: list[Any], keywords: dict[str, Any]) -> Any:
        given = args[0] if args else UNKNOWN
        text = given.text() if isinstance(given, Opened) else given
        return compute(parse, [text], {})

    return loaded


def _yaml(text: str) -> Any:
    return importlib.import_module("yaml").safe_load(text)


def _range(args: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        numbers = range(*(concrete(arg) for arg in args))
    except (NotConcrete, TypeError, ValueError):
        return Listing([UNKNOWN], exact=False)
    if not numbers:
        return Listing([])
    return Listing(list(numbers)) if len(numbers) <= 64 else Listing([UNKNOWN], exact=False)


def _enumerate(args: list[Any], keywords: dict[str, Any]) -> Any:
    known = items_of(args[0]) if args else None
    start = args[1] if len(args) > 1 else keywords.get("start", 0)
    if known is not None and isinstance(start, int):
        return Listing([(start + i, item) for i, item in enumerate(known)])
    return Listing([(UNKNOWN, element(args[0]) if args else UNKNOWN)], exact=False)


def _zip(args: list[Any], keywords: dict[str, Any]) -> Any:
    known = [items_of(arg) for arg in args]
    if args and all(each is not None for each in known):
        return Listing(list(zip(*(each or [] for each in known))))
    return Listing([tuple(element(arg) for arg in args)], exact=False)


def _list(args: list[Any], keywords: dict[str, Any]) -> Any:
    if not args:
        return Listing([])
    known = items_of(args[0])
    return Listing(list(known)) if known is not None else Listing([element(args[0])], exact=False)


def _tuple(args: list[Any], keywords: dict[str, Any]) -> Any:
    known = items_of(args[0]) if args else []
    return tuple(known) if known is not None else UNKNOWN


def _dict(args: list[Any], keywords: dict[str, Any]) -> Any:
    if not args:
        return Mapping(dict(keywords))
    if isinstance(args[0], Mapping):
        return Mapping({**args[0].items, **keywords}, args[0].exact)
    return Mapping(dict(keywords), exact=False)


def _copied(value: Any) -> Any:
    """A copy of lists and dicts, and of those in them; other values are themselves."""
    if isinstance(value, tuple):
        return tuple(_copied(item) for item in value)
    if isinstance(value, Listing):
        return Listing([_copied(item) for item in value.items], value.exact)
    if isinstance(value, Mapping):
        return Mapping({key: _copied(item) for key, item in value.items.items()}, value.exact)
    return value


def _copy(args: list[Any], keywords: dict[str, Any]) -> Any:
    return _copied(args[0]) if args else UNKNOWN


def _type(args: list[Any], keywords: dict[str, Any]) -> Any:
    """type(value) of Python's own types."""
    if len(args) != 1 or not isinstance(args[0], (bool, int, float, str, bytes, tuple, Listing, Mapping)):
        return UNKNOWN
    names = {Listing: "list", Mapping: "dict"}
    return Foreign("builtins." + names.get(type(args[0]), type(args[0]).__name__))


def _bool(args: list[Any], keywords: dict[str, Any]) -> Any:
    known = truth(args[0]) if args else False
    return UNKNOWN if known is None else known


def _len(args: list[Any], keywords: dict[str, Any]) -> Any:
    known = items_of(args[0]) if args else None
    if known is not None:
        return len(known)
    return len(args[0]) if args and isinstance(args[0], (str, bytes)) else UNKNOWN


_SPECIAL: dict[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "builtins.open": _open,
    "io.open": _open,
    "json.load": _parsed(json.loads),
    "json.loads": _parsed(json.loads),
    **{f"yaml.{name}": _parsed(_yaml) for name in ("load", "safe_load", "full_load", "unsafe_load")},
    "builtins.range": _range,
    "builtins.xrange": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.list": _list,
    "builtins.tuple": _tuple,
    "builtins.dict": _dict,
    "builtins.bool": _bool,
    "builtins.len": _len,
    "builtins.type": _type,
    "builtins.map": lambda args, keywords: Mapped([UNKNOWN], exact=False),
    "builtins.vars": lambda args, keywords: Mapping({}, exact=False),
    "copy.copy": _copy,
    "copy.deepcopy": _copy,
    "collections.OrderedDict": _dict,
    "argparse.ArgumentParser": lambda args, keywords: Options(),
}


class Options(Abstract):
    """An argparse.ArgumentParser of the script; groups of arguments are itself."""

    def __init__(self) -> None:
        self.parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=True)
        self.unknown: set[str] = set()
        self.required: dict[str, str] = {}

    def add(self, args: list[Any], keywords: dict[str, Any]) -> None:
        """parser.add_argument(…)."""
        names = [arg for arg in args if isinstance(arg, str)]
        if not names:
            return
        given: dict[str, Any] = {}
        for key, value in keywords.items():
            if key in ("action", "default", "nargs", "dest", "const") or key == "type":
                try:
                    given[key] = _type_of(value) if key == "type" else concrete(value)
                except NotConcrete:
                    self.unknown.add(_destination(names, given))
        is_word = not names[0].startswith("-")
        if keywords.get("required") is True or is_word:
            self.unknown.add(_destination(names, given))
            if is_word:
                wanted = given.get("nargs") not in ("?", "*", argparse.REMAINDER)
                given["nargs"] = "*" if given.get("nargs") == "+" else given.get("nargs") or "?"
            if not is_word or wanted:
                self.required[_destination(names, given)] = "/".join(names)
        if given.get("type") is None:
            given.pop("type", None)
        try:
            self.parser.add_argument(*names, **given)
        except Exception:
            self.unknown.add(_destination(names, given))

    def missing(self, words: list[str]) -> list[str]:
        """The arguments that have to be given, and that the words do not give."""
        try:
            found = vars(self.parser.parse_known_args(words)[0])
        except (Exception, SystemExit):
            return []
        return [name for key, name in self.required.items() if key in found and found[key] in (None, [])]

    def parse(self, words: list[str]) -> dict[str, Any]:
        """{name: value} of the options, by their defaults and the arguments that the check was given."""
        try:
            found = vars(self.parser.parse_known_args(words)[0])
        except (Exception, SystemExit):
            return {}
        given = {name.lstrip("-").replace("-", "_").partition("=")[0] for name in words}
        return {
            name: Unset(name) if value is None and name not in given else abstract(value)
            for name, value in found.items()
            if name in given or name not in self.unknown
        }


def _type_of(value: Any) -> Any:
    if isinstance(value, Foreign) and value.name.startswith("builtins."):
        return {"int": int, "float": float, "str": str, "bool": bool}.get(value.name.partition(".")[2])
    raise NotConcrete


def _destination(names: list[str], given: dict[str, Any]) -> str:
    long = [name for name in names if name.startswith("--")] or names
    return str(given.get("dest") or long[0].lstrip("-").replace("-", "_"))
