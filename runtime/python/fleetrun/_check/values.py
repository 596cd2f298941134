"""What a check knows of a value of the script without having run it.

Numbers, text, tuples, and what the package itself has (modules, classes, functions) are themselves. All else
is one of these classes; Unknown is what nothing is known of.
"""

from __future__ import annotations

import ast
import dataclasses
import types
from typing import Any


class Abstract:
    """What stands for a value."""


class Unknown(Abstract):
    """Any value."""


UNKNOWN = Unknown()


@dataclasses.dataclass(eq=False)
class Unset(Unknown):
    """The value of an option that this command line does not give, and that is None without."""

    option: str


class NotConcrete(Exception):
    """A value that is not known as a whole."""


@dataclasses.dataclass(eq=False)
class Foreign(Abstract):
    """A module that is not read, or what lies in one: `os.path.join`, `numpy`."""

    name: str


@dataclasses.dataclass(eq=False)
class Made(Abstract):
    """An object of one of the package's classes; `real` where it was made (package.py says when)."""

    cls: type
    real: Any = None
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Bound(Abstract):
    """A method of an object of the package; `instance` where it is one of a class of the script."""

    owner: Made
    name: str
    function: Any
    instance: Any = None


@dataclasses.dataclass(eq=False)
class Module(Abstract):
    """A file of the user's."""

    name: str
    path: str
    names: dict[str, Any] = dataclasses.field(default_factory=dict)
    has_unknown_names: bool = False
    tree: ast.Module | None = None


@dataclasses.dataclass(eq=False)
class Frame:
    """The names of a function that is walked; `outer` are those around it, nearest first."""

    module: Module
    names: dict[str, Any]
    outer: tuple[dict[str, Any], ...] = ()
    returned: list[Any] = dataclasses.field(default_factory=list)
    global_names: set[str] = dataclasses.field(default_factory=set)
    cls: Any = None
    self: Any = None
    is_class: bool = False


@dataclasses.dataclass(eq=False)
class Function(Abstract):
    """A function of the script."""

    node: Any
    module: Module
    outer: tuple[dict[str, Any], ...]
    defaults: dict[str, Any]
    cls: Any = None
    kind: str = ""  # "property", "staticmethod", "classmethod"
    is_decorated: bool = False  # by what may call it with other arguments
    walks: int = 0
    result: Any = UNKNOWN


@dataclasses.dataclass(eq=False)
class Method(Abstract):
    """A function of the script on an object."""

    function: Function
    instance: Any


@dataclasses.dataclass(eq=False)
class Class(Abstract):
    """A class of the script; bases are Class, types of the package, Foreign or UNKNOWN."""

    node: ast.ClassDef
    module: Module
    bases: list[Any]
    names: dict[str, Any] = dataclasses.field(default_factory=dict)

    def line(self) -> list[Any]:
        """Itself and what it is derived from, in the order in which names are looked up."""
        found: list[Any] = [self]
        for base in self.bases:
            for each in base.line() if isinstance(base, Class) else [base]:
                if each not in found:
                    found.append(each)
        return found


@dataclasses.dataclass(eq=False)
class Instance(Abstract):
    """An object of a class of the script."""

    cls: Class
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Super(Abstract):
    """super() in a method of `cls`."""

    cls: Class
    instance: Any


@dataclasses.dataclass(eq=False)
class Listing(Abstract):
    """A list; where it is not exact, `items` are some of those that it may hold."""

    items: list[Any]
    exact: bool = True


@dataclasses.dataclass(eq=False)
class Mapped(Listing):
    """What map() gives: a list in Python 2."""


@dataclasses.dataclass(eq=False)
class Mapping(Abstract):
    """A dict by its constant keys; where it is not exact, it may have others."""

    items: dict[Any, Any]
    exact: bool = True

    def pairs(self) -> Listing:
        """items(): where it is not exact, with one of a key that is not known."""
        found: list[Any] = list(self.items.items())
        if not self.exact:
            values = element(Listing([value for _, value in found]))
            found.append((UNKNOWN, values))
        return Listing(found, self.exact)


@dataclasses.dataclass(eq=False)
class Opened(Abstract):
    """A file that is there, opened for reading."""

    path: str

    LARGEST = 1 << 16

    def text(self) -> Any:
        """What is in it; UNKNOWN for much, and for what is no text."""
        try:
            with open(self.path, encoding="utf-8") as file:
                text = file.read(self.LARGEST + 1)
        except (OSError, ValueError):
            return UNKNOWN
        return text if len(text) <= self.LARGEST else UNKNOWN


def concrete(value: Any) -> Any:
    """The value itself. Throws: NotConcrete."""
    if isinstance(value, tuple):
        return tuple(concrete(item) for item in value)
    if isinstance(value, Listing) and value.exact:
        return [concrete(item) for item in value.items]
    if isinstance(value, Mapping) and value.exact:
        return {key: concrete(item) for key, item in value.items.items()}
    if isinstance(value, Made) and value.real is not None:
        return value.real
    if isinstance(value, Abstract):
        raise NotConcrete
    return value


def abstract(value: Any) -> Any:
    """A value of Python as values of a check."""
    if isinstance(value, tuple):
        return tuple(abstract(item) for item in value)
    if isinstance(value, list):
        return Listing([abstract(item) for item in value])
    if isinstance(value, dict):
        return Mapping({key: abstract(item) for key, item in value.items()})
    if isinstance(value, slice):
        return UNKNOWN
    plain = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    if value is None or isinstance(value, (bool, int, float, str, bytes, *plain)):
        return value
    return Made(type(value), value)


def truth(value: Any) -> bool | None:
    """Whether a condition holds; None where that is not known."""
    if isinstance(value, (Listing, Mapping)):
        return bool(value.items) if value.exact else None
    if isinstance(value, (Function, Method, Class, Module, Bound)):
        return True
    if isinstance(value, Abstract):
        return None
    try:
        return bool(value)
    except Exception:
        return None


def same(left: Any, right: Any) -> bool:
    """Whether two values are known to be one."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, (Listing, tuple)):
        one, other = items_of(left), items_of(right)
        return one is not None and other is not None and len(one) == len(other) and all(map(same, one, other))
    if isinstance(left, Mapping):
        exact = left.exact and right.exact and left.items.keys() == right.items.keys()
        return exact and all(same(item, right.items[key]) for key, item in left.items.items())
    plain = (bool, int, float, str, bytes)
    return isinstance(left, plain) and bool(left == right)


def join(left: Any, right: Any) -> Any:
    """What is known of a value that is one or the other."""
    if same(left, right):
        return left
    if left is None or right is None:
        return UNKNOWN
    if isinstance(left, Made) and isinstance(right, Made) and left.cls is right.cls:
        return Made(left.cls)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(join(one, other) for one, other in zip(left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _joined(left, right)
    if isinstance(left, Listing) and isinstance(right, Listing):
        return Listing([*left.items, *right.items][:8], exact=False)
    return UNKNOWN


def _joined(left: Mapping, right: Mapping) -> Mapping:
    if same(left, right):
        return left
    items = {
        key: join(left.items[key], right.items[key]) if key in left.items and key in right.items else UNKNOWN
        for key in {**left.items, **right.items}
    }
    return Mapping(items, exact=False)


def element(value: Any) -> Any:
    """What an iteration over the value yields."""
    if isinstance(value, Mapping):
        items: list[Any] = [key for key, _ in value.pairs().items]
    elif isinstance(value, Listing):
        items = value.items
    elif isinstance(value, tuple):
        items = list(value)
    else:
        return UNKNOWN
    result = items[0] if items else UNKNOWN
    for item in items[1:]:
        result = join(result, item)
    return result


def items_of(value: Any) -> list[Any] | None:
    """The items of a sequence that is known exactly, else None."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Listing) and value.exact:
        return value.items
    if isinstance(value, Mapping) and value.exact:
        return list(value.items)
    return None
