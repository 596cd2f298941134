"""What the package says of a name, of a call and of a setting: asked of the package itself, by introspection.

Nothing here is a table of names: modules are imported, attributes are looked up, signatures are bound.
Settings (strategies, schedules, initializers: what only keeps what it is told) are really made, and so are
programs where every argument is known, so that the check says what the run would say of values and shapes.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
import textwrap
import types
from typing import Any

from fleetrun import _lazy, _mode, _unusable
from fleetrun._check.promised import is_package, returned
from fleetrun._check.values import (
    UNKNOWN,
    Abstract,
    Bound,
    Class,
    Function,
    Instance,
    Listing,
    Made,
    Mapping,
    NotConcrete,
    abstract,
    concrete,
)
from fleetrun._error import Error

# Modules and classes whose objects only keep what they are told: making one changes nothing else.
_SETTINGS = (
    "fleetrun._arguments", "fleetrun._dtypes", "fleetrun._param_attr", "fleetrun._places", "fleetrun.version",
    "fleetrun.regularizer", "fleetrun.nn.clip", "fleetrun.nn.initializer", "fleetrun.optimizer",
    "fleetrun.fluid.initializer", "fleetrun.fluid.regularizer", "fleetrun.fluid.clip",
    "fleetrun.fluid.schedules", "fleetrun.fluid.optimizer", "fleetrun.static.compiler",
    "fleetrun.distributed.entries", "fleetrun.distributed.fleet._strategy",
    "fleetrun.distributed.fleet._configs", "fleetrun.distributed.fleet._stored_fields",
    "fleetrun.distributed.fleet._transpiler", "fleetrun.distributed.fleet._transpiler_strategy",
    "fleetrun.distributed.fleet.older", "fleetrun.distributed.transpiler", "fleetrun.inference.Config",
    "fleetrun.metric", "fleetrun.distributed.dataset", "fleetrun._mode.set_default_dtype",
)  # fmt: skip
# Those of them with which a run reads files: of the others it is told alone.
_READERS = "fleetrun.distributed.dataset"
# Questions whose answer does not depend on the run.
_QUESTIONS = (
    "is_compiled_with_", "get_default_dtype", "in_dynamic_mode", "get_cudnn_version", "set_default_dtype",
    "set_device",
)  # fmt: skip


class Refused(Exception):
    """The package refuses: `kind` as Finding's, `message` as the run would print it, `error` its class."""

    def __init__(self, kind: str, message: str, error: type[BaseException]) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.error = error


def load(name: str) -> types.ModuleType:
    """The module `name`. Throws: Refused."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refused("name", str(error), ModuleNotFoundError) from None


def attribute(value: Any, name: str) -> Any:
    """What `value.name` is, for a module, class or function of the package. Throws: Refused."""
    key = (id(value), name)
    if key in _missing:
        raise _missing[key]
    try:
        return _present(value, name)
    except Refused as refusal:
        if isinstance(value, (types.ModuleType, type)):
            _missing[key] = refusal  # the names that are near are dear to find
        raise


_missing: dict[tuple[int, str], Refused] = {}


def _present(value: Any, name: str) -> Any:
    try:
        found = getattr(value, name)
    except AttributeError as error:
        if isinstance(value, type) and not is_package(value.__module__):
            return UNKNOWN
        raise Refused("name", str(error), AttributeError) from None
    except Error as error:
        raise Refused("refused", str(error), Error) from None
    except ImportError as error:
        raise Refused("module", str(error), ImportError) from None
    return UNKNOWN if isinstance(value, type) and isinstance(found, property) else abstract(found)


def imported(module: types.ModuleType, name: str) -> Any:
    """What `from module import name` gives. Throws: Refused."""
    try:
        return abstract(getattr(module, name))
    except ImportError as error:
        raise Refused("module", str(error), ImportError) from None
    except AttributeError as error:
        try:
            return importlib.import_module(f"{module.__name__}.{name}")
        except ImportError as missing:
            text = str(missing) if str(missing).startswith("fleetrun has no") else str(error)
            raise Refused("name", text, ImportError) from None


def _settings(cls: Any) -> bool:
    name = f"{getattr(cls, '__module__', '')}.{getattr(cls, '__name__', '')}."
    return not hasattr(cls, "init_worker") and any(name.startswith(each + ".") for each in _SETTINGS)


@functools.cache
def _set_in_methods(cls: type) -> frozenset[str]:
    """The attributes that methods of the class and of those above set on self."""
    names: set[str] = set()
    for each in cls.__mro__:
        if not is_package(each.__module__):
            continue
        names.update(getattr(each, "__annotations__", ()), getattr(each, "__slots__", ()))
        for node in ast.walk(_tree(each)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            if isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                names.add(str(node.args[1].value))  # object.__setattr__(self, "name", …)
    return frozenset(names)


@functools.cache
def _tree(thing: Any) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return ast.Module([], [])


def member(made: Made, name: str) -> Any:
    """What `made.name` is. Throws: Refused."""
    if name in made.attributes:
        return made.attributes[name]
    found = inspect.getattr_static(made.cls, name, None)
    if isinstance(found, (staticmethod, classmethod)):
        return getattr(made.cls, name)
    if inspect.isroutine(found):
        return Bound(made, name, getattr(found, "__func__", found))  # C++'s methods are no keys of a cache
    if made.real is None and _settings(made.cls):
        made.real = _plain(made.cls)
    if made.real is not None and _kept(made.cls):
        value = attribute(made.real, name)
        if isinstance(value, (Listing, Mapping)) and not _settings(made.cls):
            value.exact = False  # the program of the run may have more
        return value
    if made.real is not None and is_layer(made.cls) and name in ("weight", "bias"):
        return attribute(made.real, name)
    if isinstance(found, property):
        return returned(found.fget)
    if found is not None:
        inner = getattr(found, "func", None)  # functools.cached_property
        return returned(inner) if inner is not None else UNKNOWN
    if name in _set_in_methods(made.cls) or name.startswith("__") or not is_package(made.cls.__module__):
        return UNKNOWN
    if made.real is not None and name in getattr(made.real, "__dict__", ()):
        return UNKNOWN
    _ask(made.cls, name)
    return UNKNOWN


def _ask(cls: type, name: str) -> None:
    """Throws: Refused, where an object of the class has no attribute of the name."""
    hook = getattr(cls, "__getattr__", None)
    if hook is None:
        raise Refused("name", f"{cls.__name__!r} object has no attribute {name!r}", AttributeError)
    if name.removeprefix("_") in inspect.signature(cls).parameters:
        return  # layers keep what they were made with
    try:
        hook(object.__new__(cls), name)
    except AttributeError as error:
        if "fleetrun has no" in str(error):
            raise Refused("name", str(error), AttributeError) from None
    except Exception:
        return


def assign(made: Made, name: str, value: Any) -> None:
    """`made.name = value`. Throws: Refused."""
    found = inspect.getattr_static(made.cls, name, None)
    if isinstance(found, property) and found.fset is None:
        text = f"{made.cls.__name__}.{name} cannot be set"
        raise Refused("refused", text, AttributeError)
    if made.real is None or not _settings(made.cls):
        made.attributes[name] = value
        return
    try:
        setattr(made.real, name, concrete(value))
    except NotConcrete:
        _assign_part(made.real, name, value)
    except (Error, AttributeError) as error:
        raise _as_refused(error) from None
    except Exception:  # what a value that is not of the run leads to
        return


def _as_refused(error: Exception) -> Refused:
    kind = "name" if "fleetrun has no" in str(error) else "refused"
    return Refused(kind, str(error), type(error))


def _assign_part(real: Any, name: str, value: Any) -> None:
    """Assigns what is known of a dict, and asks for the names of the rest. Throws: Refused."""
    try:
        getattr(real, name)
    except AttributeError as error:
        raise _as_refused(error) from None
    for key, item in value.items.items() if isinstance(value, Mapping) else ():
        try:
            setattr(real, name, {key: concrete(item)})
        except NotConcrete:
            _ask_key(real, name, key)
        except (Error, AttributeError) as error:
            raise _as_refused(error) from None
        except Exception:
            continue


def _ask_key(real: Any, name: str, key: Any) -> None:
    """Throws: Refused, where a setting has no such key."""
    try:
        setattr(real, name, {key: None})
    except Exception as error:
        if "fleetrun has no" in str(error):
            raise _as_refused(error) from None


def call(
    function: Any, what: str, args: list[Any], keywords: dict[str, Any], exact: bool, builds: bool = False
) -> Any:
    """What a call of a class or function of the package gives. Throws: Refused.

    what: the function as the script writes it. exact: whether these are all of its arguments. builds: whether
    a run comes to this call once and here, so that programs are really built.
    """
    if isinstance(function, _unusable.Unusable):
        _really(function, [], {})
    is_method = isinstance(function, Bound)
    target = function.function if is_method else function
    given = [function.owner, *args] if is_method else list(args)
    bound = _bound(target, what, given, keywords, exact, is_method)
    _refused_values(target, what, bound)
    _refused_always(target)
    if _builds(target) and not _switches_mode(target):
        _really(_mode.expect_static, [], {})
    if isinstance(function, Bound):
        return _call_method(function, args, keywords, exact, builds)
    real = None
    if (getattr(target, "__module__", None) or "").startswith("fleetrun.dataset."):
        _need_data(target, args, keywords)
    if exact and (_only_keeps(target) or (builds and _builds(target))):
        real = _really(target, args, keywords)
    if isinstance(target, type):
        if real is None and _settings(target):
            real = _plain(target)
        return Made(target, real)
    return abstract(real) if real is not None else returned(target)


def _call_method(
    function: Bound, args: list[Any], keywords: dict[str, Any], exact: bool, builds: bool
) -> Any:
    cls, real = function.owner.cls, function.owner.real
    bound = getattr(real, function.name, None) if real is not None else None
    if (
        bound is not None
        and exact
        and (_keeps_told(cls, function.name) or (builds and _builds_by(cls, function)))
    ):
        result = _really(bound, args, keywords)
        if result is not None:
            return abstract(result)
    if function.name == "__call__" and hasattr(cls, "forward"):
        return returned(cls.forward)
    return returned(function.function)


def _need_data(function: Any, args: list[Any], keywords: dict[str, Any]) -> None:
    """Asks whether the files of paddle.dataset are there, and reads none. Throws: Refused."""
    from fleetrun.dataset import common

    download = common.download

    def ask(*words: Any, **others: Any) -> str:
        download(*words, **others)
        raise NotConcrete

    common.download = ask
    try:
        _really(function, args, keywords)
    finally:
        common.download = download


def enter(function: Any) -> bool:
    """Whether what the function gives to a `with` says where programs are built."""
    return getattr(function, "__module__", "") == "fleetrun._graph"


def forget_programs() -> None:
    """Begins with empty programs, as each run does."""
    from fleetrun import _graph

    _mode.forget()
    _graph._Defaults.main = _graph._Defaults.startup = None
    _graph.switch_unique_name(_graph.UniqueNameGenerator())


def operate(function: Any, values: list[Any]) -> Any:
    """An operator of Python on variables of a program. Throws: Refused."""
    made = next(each for each in values if isinstance(each, Made))
    if any(isinstance(each, Abstract) and getattr(each, "real", None) is None for each in values):
        return Made(made.cls)
    result = _really(function, values, {})
    return abstract(result) if result is not None else Made(made.cls)


def is_variable(value: Any) -> bool:
    """Whether a value is a variable of a program."""
    return isinstance(value, Made) and hasattr(value.cls, "__matmul__")


def _plain(cls: type) -> Any:
    try:
        return cls()
    except Exception:
        return None


def _kept(cls: type) -> bool:
    """Whether what an object of the class says of itself does not depend on the run."""
    return _settings(cls) or cls.__module__ in ("fleetrun._variable", "fleetrun._graph")


def _only_keeps(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return _settings(function) and (isinstance(function, type) or name.startswith(_QUESTIONS))


def _keeps_told(cls: type, name: str) -> bool:
    if cls.__module__.startswith(_READERS):
        return name.startswith(("create_", "set_")) and name not in ("set_filelist", "set_use_var")
    return _settings(cls) and not name.startswith(("minimize", "backward", "run"))


def is_layer(cls: Any) -> bool:
    """Whether a class is one of the package's layers."""
    return isinstance(cls, type) and cls.__module__.startswith("fleetrun.nn") and hasattr(cls, "forward")


def _builds(function: Any) -> bool:
    """Whether a call of it puts operators into a program, or makes or names a program."""
    if isinstance(function, type):
        return is_layer(function) or function.__name__ == "Program"
    if enter(function) or getattr(function, "__module__", "") == "fleetrun.utils.unique_name":
        return True
    note = str((getattr(function, "__annotations__", None) or {}).get("return", ""))
    return (
        _switches_mode(function)
        or inspect.isfunction(function)
        and any(each in note for each in ("Variable", "Program", "Parameter"))
    )


def _switches_mode(function: Any) -> bool:
    return getattr(function, "__module__", "") == "fleetrun._mode" and "able_" in function.__name__


def _builds_by(cls: type, function: Bound) -> bool:
    if cls.__module__ == "fleetrun.optimizer.optimizers" or cls.__module__ == "fleetrun.fluid.optimizer":
        return function.name == "minimize"
    if is_layer(cls):
        return function.name in ("__call__", "forward", "parameters")
    if function.name in ("state_dict", "set_state_dict"):
        return False  # values, which a run has
    if cls.__module__ in ("fleetrun._variable", "fleetrun._graph"):
        return _builds(function.function) or function.name in (
            "astype", "global_block", "var", "clone", "set_value")  # fmt: skip
    return False


def _really(function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """What the call gives; None where that is not known. Throws: Refused."""
    try:
        return function(
            *(concrete(arg) for arg in args), **{key: concrete(value) for key, value in keywords.items()}
        )
    except (Error, _lazy.MissingName) as error:
        raise _as_refused(error) from None
    except Exception:  # NotConcrete, and what a value that is not of the run leads to
        return None


@functools.cache
def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _bound(
    function: Any, what: str, args: list[Any], keywords: dict[str, Any], exact: bool, is_method: bool
) -> dict[str, Any]:
    """The arguments by name. Throws: Refused, where the function does not take them."""
    signature = _signature(function)
    if signature is None:
        return {}
    try:
        return dict((signature.bind if exact else signature.bind_partial)(*args, **keywords).arguments)
    except TypeError as error:
        if not exact and "unexpected keyword" not in str(error):
            return {}
        names = [each for each in signature.parameters if not (is_method and each == "self")]
        text = f"{what}({', '.join(names)}) {why_not_bound(error)}"
        raise Refused("argument", text, TypeError) from None


def why_not_bound(error: TypeError) -> str:
    """The reason of a TypeError of Signature.bind, as a predicate."""
    text = str(error)
    for start, word in (
        ("got an unexpected keyword argument ", "has no argument "),
        ("missing a required argument: ", "misses its argument "),
    ):
        if text.startswith(start):
            return word + text.removeprefix(start).strip("'")
    return text.replace("too many positional arguments", "takes fewer arguments without a name")


# Functions that _refusals() is about: some call each other.
_asked: list[Any] = []


@functools.cache
def _refusals(function: Any) -> dict[str, Any]:
    """{argument: the only value that it may have}: the calls of refuse() in the function, and in those of its
    module that it hands its arguments to."""
    found: dict[str, Any] = {}
    function = vars(function).get("__init__") if isinstance(function, type) else inspect.unwrap(function)
    if not is_package(getattr(function, "__module__", None) or ""):
        return found
    body = getattr(_tree(function), "body", None)
    for node in getattr(body[0], "body", ()) if body else ():
        call = getattr(node, "value", None)
        if not isinstance(call, ast.Call):
            continue
        if isinstance(call.func, ast.Name) and call.func.id == "refuse":
            found.update(_kept_at_defaults(call))
        else:
            _asked.append(function)
            found.update(_handed_on(function, call))
            _asked.pop()
    return found


def _kept_at_defaults(call: ast.Call) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in call.keywords:
        if isinstance(word.value, ast.Tuple) and isinstance(word.value.elts[0], ast.Name):
            try:
                found[word.value.elts[0].id] = ast.literal_eval(word.value.elts[1])
            except ValueError:
                continue
    return found


def _handed_on(function: Any, call: ast.Call) -> dict[str, Any]:
    """What a function of the same module refuses of the arguments that it is given by their names."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    home = sys.modules[function.__module__]
    owner = function.__qualname__.rpartition(".")[0]
    inner = getattr(getattr(home, owner, None), name, None) if owner else getattr(home, name, None)
    signature = _signature(inner) if inspect.isfunction(inner) else None
    if inner is None or signature is None or inspect.unwrap(inner) in _asked:
        return {}
    names = [each for each in signature.parameters if not (owner and each == "self")]
    handed = dict(zip(names, call.args)) | {each.arg: each.value for each in call.keywords if each.arg}
    return {
        node.id: default
        for each, default in _refusals(inner).items()
        if isinstance(node := handed.get(each), ast.Name)
    }


def _refused_always(function: Any) -> None:
    """Throws: Refused, for a function whose first statement is that it is not supported."""
    function = vars(function).get("__init__") if isinstance(function, type) else inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function) or not is_package(function.__module__) or not _only_raises(function):
        return
    names = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    try:
        function(*[None for each in names if each.kind is each.POSITIONAL_OR_KEYWORD])
    except (Error, ImportError) as error:
        raise Refused("refused", str(error), type(error)) from None
    except Exception:  # the text is of an object that there is not
        return


@functools.cache
def _only_raises(function: Any) -> bool:
    body = getattr(_tree(function), "body", None)
    statements = (
        [
            node
            for node in getattr(body[0], "body", ())
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        ]
        if body
        else []
    )
    return bool(statements) and isinstance(statements[0], ast.Raise)


def _kind(value: Any) -> str:
    """What a value that is not known is, in a word."""
    cls = getattr(value, "cls", None)
    return str(getattr(cls, "__name__", "") or getattr(getattr(cls or value, "node", None), "name", "lambda"))


def _refused_values(function: Any, what: str, bound: dict[str, Any]) -> None:
    from fleetrun._arguments import refuse

    for name, default in _refusals(function).items():
        value = bound.get(name, default)
        try:
            refuse(what, **{name: (concrete(value), default)})
        except NotConcrete:
            if not isinstance(value, (Made, Instance, Function, Class)):
                continue
            raise Refused(
                "refused",
                f"{what}({name}={_kind(value)}) is not supported\n  hint: "
                f"leave {name} at its default, {default!r}",
                Error,
            ) from None
        except Error as error:
            raise Refused("refused", str(error), Error) from None
