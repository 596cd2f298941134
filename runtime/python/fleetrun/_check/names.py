"""Where names come from: modules of the user, of the package, and others; what an attribute is; and what is
reported where there is none."""

from __future__ import annotations

import ast
import collections
import importlib.util
import os
import sys
import types
from typing import Any

from fleetrun._check import foreign, package
from fleetrun._check.findings import Finding, split_message
from fleetrun._check.surroundings import Surroundings
from fleetrun._check.texts import bound_names, text_of
from fleetrun._check.values import (
    UNKNOWN,
    Bound,
    Class,
    Foreign,
    Frame,
    Function,
    Instance,
    Listing,
    Made,
    Mapping,
    Method,
    Module,
    Opened,
    Super,
    truth,
)

_PYTHON_2 = {"basestring", "execfile", "long", "raw_input", "reduce", "unichr", "unicode", "xrange"}
_STEPS = 100_000


def _is_own(folder: str) -> bool:
    """Whether a folder of PYTHONPATH is the user's, and not what pip installed there."""
    return os.path.isdir(folder) and not any(each.endswith("-info") for each in os.listdir(folder))


def _names(*types_: type) -> set[str]:
    return {name for each in types_ for name in dir(each)}


# The names of Python's own types; a Listing may stand for any sequence or set, a Mapping for any dict.
_BUILT_IN = {
    "tuple": _names(tuple),
    "str": _names(str),
    "list": _names(list, set, collections.deque, range, type({}.keys()), types.GeneratorType),
    "dict": _names(collections.OrderedDict, collections.defaultdict, collections.Counter),
}


def _built_in(value: Any) -> str:
    """The type of Python's own that a value is of, "" where it is of none."""
    kinds = ((tuple, "tuple"), (str, "str"), (Listing, "list"), (Mapping, "dict"))
    return next((kind for cls, kind in kinds if isinstance(value, cls)), "")


def _of_foreign(value: Foreign, name: str) -> Any:
    """What `value.name` is of what is not read. Throws: package.Refused, where Python's own library and numpy
    are known not to have it."""
    lacks = foreign.lacks(value.name, name)
    if lacks:
        raise package.Refused("name", lacks, AttributeError)
    if (value.name, name) == ("os", "sys"):
        return Foreign("sys")  # scripts take it from there, too
    return foreign.value_of(f"{value.name}.{name}")


class Caught(Exception):
    """A finding where the script itself catches the error: walked on in its handler."""

    def __init__(self, finding: Finding, error: type[BaseException]) -> None:
        super().__init__()
        self.finding = finding
        self.error = error


class OutOfSteps(Exception):
    """The script takes more steps than a check does."""


class Names:
    """The state of a check of one script, and its names."""

    def __init__(self, script: str, words: list[str] | None, folders: list[str]) -> None:
        self.script = script
        self.around = Surroundings(script, words)
        self.path = [os.path.dirname(os.path.abspath(script)), *folders]
        self.path += [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if _is_own(each)]
        self.has_unknown_path = False
        self.modules: dict[str, Module] = {}
        self.started: list[str] = []  # scripts that this one starts
        self.findings: dict[tuple[str, int, str], Finding] = {}
        self.wants: dict[tuple[str, int, str], Finding] = {}
        self.maybe = 0
        self.depth = 0
        self.in_loop = 0
        self.guess = 0  # within what may be called otherwise, or not at all
        self.in_role = 0  # within what only one role of the job comes to
        self.elsewhere = 0  # within a `with` whose programs are not known
        self.here: ast.AST = ast.Pass()
        self.steps = 0
        self.handlers: list[tuple[type[BaseException], ...]] = []
        self.module: Module = Module("__main__", script)
        self.uses_package = False
        self.has_unbuilt = False  # whether a run's programs have what these have not
        self.dynamic: tuple[str, int, str] | None = None

    @property
    def builds(self) -> bool:
        """Whether a run comes here once, so that programs are really built."""
        return not (self.maybe or self.in_loop or self.elsewhere)

    @property
    def is_sure(self) -> bool:
        """Whether a run comes here, and with these values."""
        return not (self.maybe or self.in_loop or self.elsewhere or self.guess)

    def count(self, node: ast.AST) -> None:
        """A step. Throws: OutOfSteps."""
        self.steps += 1
        if self.steps > _STEPS:
            raise OutOfSteps

    # ---- reports ----

    def refused(self, node: ast.AST, refusal: package.Refused) -> None:
        """Reports what the package refuses. Throws: Caught."""
        what, instead = split_message(refusal.message)
        self.report(node, refusal.kind, what, instead, refusal.error)

    def report(
        self, node: Any, kind: str, text: str, instead: str, error: type[BaseException] = AttributeError
    ) -> None:
        """Reports a place, unless the script catches the error. Throws: Caught."""
        finding = self.finding(node, kind, text, instead)
        if any(issubclass(error, each) for kinds in self.handlers for each in kinds):
            if self.maybe == 0:
                raise Caught(finding, error)
            return
        self.add(finding)

    def want(self, kind: str, text: str, instead: str, error: type[BaseException]) -> None:
        """Notes what the statement needs and the check has not: an argument, a variable, a file."""
        if self.is_sure and not any(issubclass(error, each) for kinds in self.handlers for each in kinds):
            found = self.finding(self.here, kind, text, instead)
            self.wants.setdefault((found.file, found.line, kind), found)

    def finding(self, node: Any, kind: str, text: str, instead: str) -> Finding:
        """A place of the module that is walked."""
        return Finding(
            self.module.path,
            getattr(node, "lineno", 1),
            getattr(node, "col_offset", 0) + 1,
            kind,
            text_of(node) if isinstance(node, (ast.Attribute, ast.Name)) else "",
            text,
            instead,
            certain=self.maybe == 0,
        )

    def add(self, finding: Finding) -> None:
        """Takes a finding; one that is certain wins over the same one that is not."""
        key = (finding.file, finding.line, finding.text)
        if key not in self.findings or (finding.certain and not self.findings[key].certain):
            self.findings.pop(key, None)
            self.findings[key] = finding

    def undefined(self, node: ast.Name, frame: Frame) -> None:
        """Reports a name that nothing in the module binds. Throws: Caught."""
        module = frame.module
        if module.has_unknown_names or module.tree is None or node.id.startswith("__"):
            return
        if node.id in bound_names(module.tree):
            return
        of_2 = node.id in _PYTHON_2
        text = f"name {node.id!r} is not defined" + (": it is Python 2's" if of_2 else "")
        self.report(node, "name", text, "write it for Python 3" if of_2 else "", NameError)

    # ---- imports ----

    def import_module(self, name: str, node: ast.AST) -> Any:
        """The module `name`, or UNKNOWN. Throws: Caught."""
        if package.is_package(name):
            self.uses_package = True
            try:
                return package.load(name)
            except package.Refused as refusal:
                self.refused(node, refusal)
                return UNKNOWN
        found = self.own_module(name)
        if found is not None:
            return found
        self._need(name, node)
        return Foreign(name)

    def _need(self, name: str, node: ast.AST) -> None:
        """Reports a module that this Python has not. Throws: Caught."""
        top = name.partition(".")[0]
        if self.has_unknown_path or top in ("google",):
            return
        if top in self.modules and not self._is_compiled(name):
            text = f"No module named {name!r}"
            self.report(
                node, "module", text, "build or install it, or import another one", ModuleNotFoundError
            )
            return
        try:
            missing = importlib.util.find_spec(top) is None
        except (ImportError, ValueError):
            missing = False
        if missing:
            self.report(
                node,
                "module",
                f"No module named {top!r}",
                "install it for the Python that runs the script, or add its folder to PYTHONPATH",
                ModuleNotFoundError,
            )

    def _is_compiled(self, name: str) -> bool:
        """Whether a folder of the user's has the module in another form than Python's text."""
        for folder in self.path:
            base, last = os.path.split(os.path.join(folder, *name.split(".")))
            if os.path.isdir(base) and any(
                each.startswith(last + ".") and each.endswith((".so", ".pyd", ".pyc"))
                for each in os.listdir(base)
            ):
                return True
        return False

    def own_module(self, name: str) -> Module | None:
        """The user's module of this name, walked behind those that it lies in; None where none of the folders
        has it."""
        above = name.rpartition(".")[0]
        if above and above not in self.modules:
            self.own_module(above)
        for folder in self.path:
            base = os.path.join(folder, *name.split("."))
            for path in (base + ".py", os.path.join(base, "__init__.py")):
                if os.path.isfile(path):
                    return self.walked(name, path)
            if os.path.isdir(base) and any(each.endswith(".py") for each in os.listdir(base)):
                return self.modules.setdefault(name, Module(name, base))
        return None

    def walked(self, name: str, path: str) -> Module:
        """The module of a file, walked the first time."""
        raise NotImplementedError

    def import_from(self, module: Any, name: str, node: ast.AST) -> Any:
        """What `from module import name` gives. Throws: Caught."""
        if isinstance(module, types.ModuleType):
            try:
                return package.imported(module, name)
            except package.Refused as refusal:
                self.refused(node, refusal)
                return UNKNOWN
        if isinstance(module, Module):
            if name in module.names:
                return module.names[name]
            found = self.own_module(f"{module.name}.{name}")
            if found is None and not module.has_unknown_names and module.tree is not None:
                self.report(
                    node,
                    "name",
                    f"cannot import name {name!r} from {module.name!r} ({module.path})",
                    "import a name that it has",
                    ImportError,
                )
            return found if found is not None else UNKNOWN
        if not isinstance(module, Foreign):
            return UNKNOWN
        try:
            return _of_foreign(module, name)
        except package.Refused as refusal:
            text = f"cannot import name {name!r} from {module.name!r}"
            self.report(node, "name", text, refusal.message.partition("; ")[2], ImportError)
            return UNKNOWN

    # ---- attributes ----

    def attribute(self, value: Any, name: str, node: ast.AST) -> Any:
        """What `value.name` is. Throws: Caught."""
        try:
            return self._attribute_of(value, name)
        except package.Refused as refusal:
            self.refused(node, refusal)
            return UNKNOWN

    def _attribute_of(self, value: Any, name: str) -> Any:
        if isinstance(value, Made):
            return package.member(value, name)
        if isinstance(value, types.ModuleType) or (
            isinstance(value, type) and package.is_package(value.__module__)
        ):
            return package.attribute(value, name)
        if isinstance(value, Module):
            return self._of_module(value, name)
        if isinstance(value, Foreign):
            if (value.name, name) == ("sys", "argv"):
                self.around.is_asked = True
                return self.around.argv
            return _of_foreign(value, name)
        if isinstance(value, Instance):
            return self._of_instance(value, name)
        if isinstance(value, Class):
            found = self.in_class(value, name)
            if isinstance(found, Function) and found.kind == "classmethod":
                return Method(found, value)
            return found if found is not None else UNKNOWN
        if isinstance(value, Super):
            return self._of_super(value, name)
        if value == tuple(sys.version_info) and hasattr(sys.version_info, name):
            return getattr(sys.version_info, name)
        kind = _built_in(value)
        if kind and name not in _BUILT_IN[kind]:
            text = f"{kind!r} object has no attribute {name!r}"
            raise package.Refused("name", text, AttributeError)
        if isinstance(value, (str, Listing, Mapping, Opened, foreign.Options)):
            return BuiltinMethod(value, name)
        return UNKNOWN

    def _of_module(self, module: Module, name: str) -> Any:
        if name in module.names:
            return module.names[name]
        found = self.own_module(f"{module.name}.{name}")
        return found if found is not None else UNKNOWN

    def _of_instance(self, instance: Instance, name: str) -> Any:
        if name in instance.attributes:
            return instance.attributes[name]
        found = self.in_class(instance.cls, name)
        if isinstance(found, Function):
            if found.kind == "staticmethod":
                return found
            method = Method(found, instance.cls if found.kind == "classmethod" else instance)
            return self.apply(method, [], {}, True) if found.kind == "property" else method
        if found is not None:
            return found
        if name == "__class__":
            return instance.cls
        return self._inherited(instance.cls.line(), name, instance)

    def _of_super(self, value: Super, name: str) -> Any:
        for base in value.cls.line()[1:]:
            if isinstance(base, Class) and name in base.names:
                found = base.names[name]
                return Method(found, value.instance) if isinstance(found, Function) else found
        return self._inherited(value.cls.line()[1:], name, None)

    def _inherited(self, line: list[Any], name: str, instance: Instance | None) -> Any:
        """What classes of the package give an object of a class of the script. Throws: package.Refused."""
        for base in line:
            if isinstance(base, type) and package.is_package(base.__module__):
                found = getattr(base, name, None) if name != "__class__" else None
                if found is not None:
                    return Bound(Made(base), name, found, instance) if callable(found) else UNKNOWN
        if instance is None or any(not isinstance(each, (Class, type)) for each in line):
            return UNKNOWN
        if self._sets(instance.cls, name):
            return UNKNOWN
        for base in line:
            if isinstance(base, type) and package.is_package(base.__module__):
                return package.member(Made(base), name)
        return UNKNOWN

    def _sets(self, cls: Class, name: str) -> bool:
        """Whether methods of the class set the attribute, or set some that cannot be read from the text."""
        for each in cls.line():
            if not isinstance(each, Class):
                continue
            for node in ast.walk(each.node):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == name:
                    return True
                if isinstance(node, ast.Name) and node.id in ("setattr", "__dict__"):
                    return True
                if isinstance(node, ast.Attribute) and node.attr in (
                    "__dict__",
                    "add_sublayer",
                    "add_parameter",
                    "register_buffer",
                    "__getattr__",
                ):
                    return True
                if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
                    return True
        return False

    def in_class(self, cls: Class, name: str) -> Any:
        """What the class or those above it in the script have under the name, else None."""
        for each in cls.line():
            if isinstance(each, Class) and name in each.names:
                return each.names[name]
        return None

    def apply(self, function: Any, args: list[Any], keywords: dict[str, Any], exact: bool) -> Any:
        """A call of a value."""
        raise NotImplementedError

    @staticmethod
    def holds(value: Any) -> bool | None:
        """truth()."""
        return truth(value)


class BuiltinMethod(Foreign):
    """A method of a string, a list, a dict or an ArgumentParser of the script."""

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__("")
        self.owner = owner
        self.method = name
