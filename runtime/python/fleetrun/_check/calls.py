"""Calls of a script: of its own functions, which are walked, of the package's, and of others."""

from __future__ import annotations

import ast
import functools
import os
import re
from typing import Any

from fleetrun._check import fetches, foreign, package
from fleetrun._check.expressions import Expressions
from fleetrun._check.findings import Finding
from fleetrun._check.names import BuiltinMethod
from fleetrun._check.surroundings import ARGUMENTS, ASKED, saved_path, set_by_script
from fleetrun._check.texts import signature_of, text_of
from fleetrun._check.values import (
    UNKNOWN,
    Abstract,
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
    Unknown,
    Unset,
    element,
    items_of,
    join,
)
from fleetrun._error import Error
from fleetrun._unusable import Unusable

_WALKS = 6
_DEPTH = 40
_PROGRAM = re.compile(r"[\w./-]+\.py\b")
# What calls the functions that it is given.
_CALLERS = ("threading.", "multiprocessing.", "builtins.map", "builtins.filter", "functools.partial")
# What runs the commands that it is given; the script's own functions and the package's may, too.
_STARTERS = ("os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn", "subprocess.")
_FILES = "check it where its files are"
_NEVER_OF_NONE = ("builtins.int", "builtins.float", "builtins.open", "io.open", "os.makedirs", "os.mkdir")
_VARIABLES = "set the variable or the option that it is of"
_ENDS = ("sys.exit", "os._exit", "builtins.exit", "builtins.quit", "os.abort")


class Leave(Exception):
    """The rest of a block is not reached. finding: why, where it ends the run for sure."""

    def __init__(self, finding: Finding | None = None) -> None:
        super().__init__()
        self.finding = finding


class Return(Leave):
    """return."""


class Exit(Leave):
    """The process ends."""


class Raised(Leave):
    """The script raises an error of its own."""


class Calls(Expressions):
    """Calls; statements lie above."""

    def walk(self, body: list[ast.stmt], frame: Frame) -> None:
        """Walks statements."""
        raise NotImplementedError

    def call(self, node: ast.Call, frame: Frame) -> Any:
        """What a call gives. Throws: Caught, Exit."""
        function = self.evaluate(node.func, frame)
        if isinstance(function, Foreign) and function.name == "builtins.super":
            return self._super(node, frame)
        args, exact = self._values(node.args, frame)
        keywords: dict[str, Any] = {}
        for word in node.keywords:
            value = self.evaluate(word.value, frame)
            if word.arg is not None:
                keywords[word.arg] = value
            elif isinstance(value, Mapping):
                keywords.update({key: item for key, item in value.items.items() if isinstance(key, str)})
                exact = exact and value.exact
            else:
                exact = False
        if not isinstance(function, Foreign) or function.name.startswith(_STARTERS):
            self._starts([*args, *keywords.values()])
        if isinstance(function, (Foreign, Unknown)):
            self.around.note_call(getattr(function, "name", ""), _last_name(node.func), args)
        self.here = node  # arguments may have led through other statements
        if isinstance(function, Foreign) and function.name == "builtins.eval" and isinstance(args[0], str):
            return self._evaluated(args, node, frame)
        return self.applied(function, args, keywords, exact, node)

    def _evaluated(self, args: list[Any], node: ast.Call, frame: Frame) -> Any:
        """What eval(TEXT) gives. Throws: Caught, Exit."""
        try:
            body = ast.parse(args[0].strip(), mode="eval").body
        except SyntaxError:
            return UNKNOWN
        if len(args) > 1:
            return UNKNOWN
        for each in ast.walk(body):
            ast.copy_location(each, node)
        return self.evaluate(body, frame)

    def _starts(self, values: list[Any]) -> None:
        """Notes the scripts that the words of a command name."""
        words = [
            word for value in values for word in (value.items if isinstance(value, Listing) else [value])
        ]
        folder = os.path.dirname(os.path.abspath(self.script))
        for word in words:
            if self.maybe or not isinstance(word, str) or ".py" not in word:
                continue
            for name in _PROGRAM.findall(word)[:4]:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and path not in self.started:
                    self.started.append(path)

    def _super(self, node: ast.Call, frame: Frame) -> Any:
        cls, instance = frame.cls, frame.self
        if node.args:
            named = self.evaluate(node.args[0], frame)
            cls = named if isinstance(named, Class) else cls
        return Super(cls, instance) if isinstance(cls, Class) else UNKNOWN

    def applied(
        self, function: Any, args: list[Any], keywords: dict[str, Any], exact: bool, node: ast.Call
    ) -> Any:
        """apply(), and what the package refuses is reported. Throws: Caught, Exit."""
        try:
            if isinstance(function, (Bound, Made)) or (
                callable(function) and not isinstance(function, Abstract)
            ):
                self.uses_package = True
                result = self._of_package(function, text_of(node.func), args, keywords, exact)
                # What a class is given it may only keep.
                self._hand_over(args, keywords, not isinstance(function, type))
                return result
            return self.apply(function, args, keywords, exact)
        except package.Refused as refusal:
            self.refused(node, refusal)
            return Made(function) if isinstance(function, type) else UNKNOWN

    def _of_package(
        self, function: Any, what: str, args: list[Any], keywords: dict[str, Any], exact: bool
    ) -> Any:
        if isinstance(function, Made):
            if not callable(getattr(function.cls, "forward", None)) and "__call__" not in dir(function.cls):
                return UNKNOWN
            function = Bound(function, "__call__", function.cls.__call__)
        if (
            isinstance(function, Bound)
            and function.name == "apply"
            and isinstance(function.instance, Instance)
        ):
            return self._apply_to_layers(function.instance, args[0] if args else keywords.get("fn", UNKNOWN))
        self._load_or_save(function, args, keywords)
        result = package.call(function, what, args, keywords, exact, self.builds)
        if package.is_variable(result) and result.real is None:
            self.has_unbuilt = True
        if exact and not self.has_unbuilt:
            missing = fetches.missing(function, args, keywords)
            if missing:
                raise package.Refused("refused", f"the program has no variable {missing!r}", Error)
        if getattr(function, "__name__", "") == "distributed_optimizer" and isinstance(result, Made):
            inner = args[0] if args else keywords.get("optimizer", UNKNOWN)
            return Optimizers(result.cls, result.real, {}, inner)
        return result

    def _load_or_save(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> None:
        """Notes files to load that are not there, and that files are made."""
        name = str(getattr(function, "__name__", getattr(function, "name", "")))
        self.around.note_call("", name if name.startswith(("save", "dump")) else "", [])
        path = saved_path(function, args, keywords)
        if path and self.around.is_missing_saved(path):
            self.want("file", f"{path!r} is not there", _FILES, Error)

    def _apply_to_layers(self, instance: Instance, function: Any) -> Any:
        """Layer.apply(function) of a class of the script. Throws: Caught, Exit."""
        waiting = [*instance.attributes.values()]
        while waiting:
            value = waiting.pop(0)
            if isinstance(value, (Listing, tuple)):
                waiting += value.items if isinstance(value, Listing) else value
            elif isinstance(value, Instance) and value is not instance:
                self._apply_to_layers(value, function)
            elif isinstance(value, Made) and package.is_layer(value.cls):
                self.apply(function, [value], {}, True)
        self.apply(function, [instance], {}, True)
        return instance

    def _attribute_of(self, value: Any, name: str) -> Any:
        if isinstance(value, Optimizers):
            try:
                return package.member(value, name)
            except package.Refused:
                return self._attribute_of(value.inner, name)
        return super()._attribute_of(value, name)

    def apply(self, function: Any, args: list[Any], keywords: dict[str, Any], exact: bool) -> Any:
        """A call of what is not the package's. Throws: Caught, Exit, package.Refused."""
        if isinstance(function, Function):
            return self.walk_function(function, None, args, keywords, exact)
        if isinstance(function, Method):
            return self.walk_function(function.function, function.instance, args, keywords, exact)
        if isinstance(function, Class):
            return self.make(function, args, keywords, exact)
        if isinstance(function, Instance):
            for name in ("__call__", "forward"):
                method = self.in_class(function.cls, name)
                if isinstance(method, Function):
                    return self.walk_function(method, function, args, keywords, exact)
            return UNKNOWN
        if isinstance(function, BuiltinMethod):
            return self._builtin_method(function, args, keywords)
        if isinstance(function, Foreign):
            why = foreign.why_not_called(function.name, args, keywords) if exact else None
            if why is not None:
                text = f"{function.name}() {package.why_not_bound(why)}"
                self.report(self.here, "argument", text, "", TypeError)
            return self._foreign(function.name, args, keywords)
        self._hand_over(args, keywords, False)
        return UNKNOWN

    def _hand_over(self, args: list[Any], keywords: dict[str, Any], called: bool) -> None:
        """Walks the script's functions that a call is given. `called`: whether it is known to call them."""
        self.maybe += not called
        self.guess += 1
        try:
            for value in (*args, *keywords.values()):
                if isinstance(value, (Function, Method)) and self._inner(value).walks == 0:
                    self.apply(value, [], {}, False)
        except Leave:
            pass
        finally:
            self.guess -= 1
            self.maybe -= not called

    @staticmethod
    def _inner(value: Any) -> Function:
        return value.function if isinstance(value, Method) else value

    # ---- the script's own ----

    def make_function(self, node: Any, frame: Frame) -> Function:
        """A function at its definition."""
        words = node.args
        values = [self.evaluate(each, frame) for each in words.defaults]
        places = [*words.posonlyargs, *words.args]
        defaults = {each.arg: value for each, value in zip(places[len(places) - len(values) :], values)}
        for each, default in zip(words.kwonlyargs, words.kw_defaults):
            if default is not None:
                defaults[each.arg] = self.evaluate(default, frame)
        is_top = frame.names is frame.module.names or frame.is_class
        outer = frame.outer if is_top else (frame.names, *frame.outer)
        return Function(node, frame.module, outer, defaults, frame.cls if frame.is_class else None)

    def walk_function(
        self, function: Function, instance: Any, args: list[Any], keywords: dict[str, Any], exact: bool
    ) -> Any:
        """Walks the body with these arguments. Throws: Caught, Exit."""
        if function.walks >= _WALKS or self.depth >= _DEPTH:
            outer = [value for names in function.outer for value in names.values()]
            self._lose([*args, *keywords.values(), *outer])
            return function.result
        function.walks += 1
        if exact:
            self._bind(function, instance, args, keywords)
        frame = Frame(
            function.module,
            self._arguments(function, instance, args, keywords, exact),
            function.outer,
            cls=function.cls,
            self=instance,
        )
        module, self.module = self.module, function.module
        maybe, yields = self.maybe, _yields(function.node)
        self.depth += 1
        self.guess += yields
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, frame)
            self.walk(function.node.body, frame)
        except Return:
            pass
        except Leave:
            if not yields:  # a generator's body is another's to run
                raise
        finally:
            self.guess -= yields
            if yields:  # what runs between its steps sees other values of these
                frame.module.names.update(dict.fromkeys(frame.global_names, UNKNOWN))
            self.depth -= 1
            self.module = module
            self.maybe = maybe
        result = frame.returned[0] if frame.returned else None
        for each in frame.returned[1:]:
            result = join(result, each)
        function.result = result if function.walks == 1 else join(function.result, result)
        return result

    def _bind(self, function: Function, instance: Any, args: list[Any], keywords: dict[str, Any]) -> None:
        """Reports a call with arguments that the function does not take. Throws: Caught."""
        if function.is_decorated:
            return
        given = args if instance is None or function.kind == "staticmethod" else [instance, *args]
        signature = signature_of(function.node)
        try:
            signature.bind(*given, **keywords)
        except TypeError as error:
            what = f"{getattr(function.node, 'name', 'lambda')}({', '.join(signature.parameters)})"
            self.report(self.here, "argument", f"{what} {package.why_not_bound(error)}", "", TypeError)

    @staticmethod
    def _lose(values: list[Any]) -> None:
        """Lists and dicts that a function may have changed which is not walked any more."""
        for value in values:
            if isinstance(value, (Listing, Mapping)):
                value.exact = False

    @staticmethod
    def _arguments(
        function: Function, instance: Any, args: list[Any], keywords: dict[str, Any], exact: bool
    ) -> dict[str, Any]:
        """The names that the body begins with."""
        words = function.node.args
        places = [each.arg for each in (*words.posonlyargs, *words.args)]
        names = [*places, *(each.arg for each in words.kwonlyargs)]
        given = list(args) if instance is None or function.kind == "staticmethod" else [instance, *args]
        found = {name: function.defaults.get(name, UNKNOWN) if exact else UNKNOWN for name in names}
        if not exact and not args and not keywords:
            found.update(function.defaults)
        found.update(zip(places, given))
        found.update({name: value for name, value in keywords.items() if name in names})
        if words.vararg:
            rest = tuple(given[len(places) :])
            found[words.vararg.arg] = rest if exact else Listing(list(rest) or [UNKNOWN], exact=False)
        if words.kwarg:
            found[words.kwarg.arg] = Mapping({k: v for k, v in keywords.items() if k not in names}, exact)
        return found

    def make(self, cls: Class, args: list[Any], keywords: dict[str, Any], exact: bool) -> Instance:
        """An object of a class of the script. Throws: Caught, Exit, package.Refused."""
        for each in cls.line():
            if isinstance(each, Unusable):
                package.call(each, each.__name__, [], {}, False)
        instance = Instance(cls)
        method = self.in_class(cls, "__init__")
        if isinstance(method, Function):
            self.walk_function(method, instance, args, keywords, exact)
        return instance

    # ---- others ----

    def _foreign(self, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        if name in _ENDS:
            raise Exit(self._end(args))
        if name in ("os.getenv", "os.environ.get"):
            default = args[1] if len(args) > 1 else keywords.get("default")
            return self.around.variable(args[0] if args else keywords.get("key", UNKNOWN), default)
        if name.startswith("os.environ."):
            return set_by_script(self.around, name.rpartition(".")[2], args, keywords)
        self._needs(name, args, keywords)
        if name in ASKED and len(args) == 1:
            return self.around.is_there(name, args[0])
        if name.startswith("sys.path."):
            self.search(name, args)
            return None
        if name in ("importlib.import_module", "builtins.__import__") and args:
            return self.import_module(args[0], self.here) if isinstance(args[0], str) else UNKNOWN
        if name in ("builtins.getattr", "builtins.hasattr") and len(args) > 1 and isinstance(args[1], str):
            return self._asked(name, args)
        if name == "builtins.isinstance" and len(args) == 2:
            return _is_instance(*args)
        if name == "builtins.setattr" and len(args) == 3 and isinstance(args[1], str):
            self.set_attribute(args[0], args[1], args[2], self.here)
            return None
        if name in ("builtins.next", "builtins.reversed", "builtins.iter", "builtins.sorted") and args:
            return element(args[0]) if name.endswith("next") else Listing([element(args[0])], exact=False)
        if name in ("builtins.min", "builtins.max") and len(args) == 1:
            return UNKNOWN
        if name in ("builtins.globals", "builtins.vars", "builtins.locals", "builtins.exec"):
            self.module.has_unknown_names = True
        if name == "builtins.property" and args and isinstance(args[0], Function):
            args[0].kind = "property"
            return args[0]
        self._hand_over(args, keywords, name.startswith(_CALLERS))
        return foreign.call(name, args, keywords)

    def _end(self, args: list[Any]) -> Finding | None:
        """What exit(status) says, where a run comes to it and the status is one of a failure."""
        status = args[0] if args else None
        if (
            not self.is_sure
            or self.in_role
            or not isinstance(status, (int, str))
            or not status
            or status is True
        ):
            return None
        return self.finding(self.here, "exit", f"the script ends here with {status!r}", "")

    def _needs(self, name: str, args: list[Any], keywords: dict[str, Any]) -> None:
        """Notes a file that is not there, and a None where something is needed."""
        path = self.around.is_missing(name, args, keywords)
        if path:
            self.want("file", f"{path!r} is not there", _FILES, FileNotFoundError)
        if not args or not (name in _NEVER_OF_NONE or name.startswith("os.path.")):
            return
        if isinstance(args[0], Unset):
            self.want("argument", f"the script needs its option {args[0].option}", ARGUMENTS, TypeError)
        elif args[0] is None:
            self.want("argument", f"{name.rpartition('.')[2]}() of None", _VARIABLES, TypeError)

    def set_attribute(self, value: Any, name: str, given: Any, node: ast.AST) -> None:
        """value.name = given."""
        raise NotImplementedError

    def search(self, name: str, args: list[Any]) -> None:
        """sys.path.append(FOLDER), sys.path.insert(0, FOLDER), sys.path.extend([FOLDER, …])."""
        given = args[-1] if args else UNKNOWN
        known = (items_of(given) or []) if name.endswith("extend") else [given]
        folders = [each for each in known if isinstance(each, str)]
        if not folders or len(folders) < len(known):
            self.has_unknown_path = True
        elif name.endswith("insert"):
            self.path[:0] = folders
        else:
            self.path += folders

    def _asked(self, name: str, args: list[Any]) -> Any:
        """getattr(value, name[, default]), hasattr(value, name). Throws: package.Refused, Caught."""
        asks = name.endswith("hasattr") or len(args) > 2
        try:
            found = self._attribute_of(args[0], args[1])
        except package.Refused:
            if not asks:
                raise
            return False if name.endswith("hasattr") else args[2]
        if name.endswith("hasattr"):
            known = (
                foreign.is_read(args[0].name)
                if isinstance(args[0], Foreign)
                else not isinstance(found, Unknown)
            )
            return True if known else UNKNOWN
        return found

    def _builtin_method(self, method: BuiltinMethod, args: list[Any], keywords: dict[str, Any]) -> Any:
        owner, name = method.owner, method.method
        if isinstance(owner, str):
            if name == "join" and args and isinstance(args[0], Listing) and not args[0].exact:
                return UNKNOWN
            return (
                foreign.compute(getattr(owner, name, str), [*args], keywords)
                if hasattr(owner, name)
                else UNKNOWN
            )
        if isinstance(owner, foreign.Options):
            return self._option(owner, name, args, keywords)
        if isinstance(owner, Opened):
            return foreign.read(owner, name)
        if isinstance(owner, Listing):
            return self._list_method(owner, name, args)
        return self._dict_method(owner, name, args)

    def _option(self, options: foreign.Options, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        if name == "add_argument":
            options.add(args, keywords)
            return UNKNOWN
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return options
        words = self.around.words if not args or args[0] is None else None
        given = items_of(args[0]) if words is None and args else None
        if given is not None and all(isinstance(each, str) for each in given):
            words = given
        missing = options.missing(words) if words is not None and name.startswith("parse_") else []
        if missing:
            text = f"the following arguments are required: {', '.join(missing)}"
            self.want("argument", text, ARGUMENTS, SystemExit)
        self.around.is_asked = True
        found = Instance(
            Class(ast.ClassDef("Namespace", [], [], [], []), self.module, [UNKNOWN]),
            options.parse(words or []),
        )
        return (found, Listing([], exact=False)) if name == "parse_known_args" else found

    def _list_method(self, owner: Listing, name: str, args: list[Any]) -> Any:
        if self.maybe or self.in_loop:
            owner.exact = False
        if name == "append" and args:
            if len(owner.items) < 256:
                owner.items.append(args[0])
            return None
        if name == "extend" and args:
            inner = args[0].items if isinstance(args[0], Listing) else [element(args[0])]
            owner.exact = owner.exact and isinstance(args[0], Listing) and args[0].exact
            owner.items += inner[:256]
            return None
        if name == "pop":
            item = element(owner)
            owner.exact = False
            return item
        if name in ("insert", "remove", "clear", "sort", "reverse"):
            owner.items += args[1:2] if name == "insert" else []
            owner.exact = False
            return None
        return UNKNOWN

    def _dict_method(self, owner: Mapping, name: str, args: list[Any]) -> Any:
        key = args[0] if args else UNKNOWN
        known = not isinstance(key, (Abstract, tuple))
        if name in ("get", "setdefault", "pop") and known and key in owner.items:
            return owner.items[key]
        if name in ("get", "setdefault") and known and owner.exact:
            return args[1] if len(args) > 1 else None
        if name == "items":
            return owner.pairs()
        if name in ("keys", "values"):
            return Listing([pair[name == "values"] for pair in owner.pairs().items], owner.exact)
        if name == "update" and isinstance(key, Mapping):
            owner.items.update(key.items)
            owner.exact = owner.exact and key.exact and not self.maybe
        elif name not in ("copy",):
            owner.exact = False
        return Mapping(dict(owner.items), owner.exact) if name == "copy" else UNKNOWN


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@functools.cache
def _yields(node: Any) -> bool:
    """Whether a function is a generator."""
    waiting = list(node.body) if isinstance(node.body, list) else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(each))
    return False


class Optimizers(Made):
    """A distributed optimizer, which has the names of the one that it is made from, too."""

    def __init__(self, cls: type, real: Any, attributes: dict[str, Any], inner: Any) -> None:
        super().__init__(cls, real, attributes)
        self.inner = inner


def _is_instance(value: Any, cls: Any) -> Any:
    """isinstance(value, cls) where it is known."""
    if isinstance(cls, Foreign) and cls.name.startswith("builtins."):
        name = cls.name.partition(".")[2]
        if isinstance(value, (Listing, tuple, Mapping, str, bool, int, float)):
            kind = {Listing: "list", Mapping: "dict"}.get(type(value), type(value).__name__)
            return kind == name or (kind == "bool" and name == "int")
        return False if isinstance(value, (Made, Instance, Module)) else UNKNOWN
    if isinstance(cls, Foreign) and cls.name.startswith("numpy."):
        return False if isinstance(value, (Listing, Mapping, tuple, str, Made, Instance)) else UNKNOWN
    if isinstance(value, Made) and isinstance(cls, type):
        if value.real is not None:
            return isinstance(value.real, cls)
        return True if issubclass(value.cls, cls) else UNKNOWN
    return UNKNOWN
