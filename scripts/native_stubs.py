"""Stubs of native modules, from what pybind11 says about them in docstrings. For scripts/python-stubs."""
import functools
import importlib
import inspect
import re

# What pybind11 writes, and what it is in Python.
NATIVE_TYPES = [
    (r"fleetrun\._\w+\.", ""), (r"\bbuffer\b", "numpy.ndarray"),
    (r"\b(object|capsule|handle|function)\b", "Any"),
    (r"\b(List|Dict|Tuple|Set)\b", lambda found: found[1].lower()),
    (r"\blist\[(int|float|str)\[\d+\]\]", r"list[\1]"),
    (r"<\w+\.(\w+): -?\d+>", "..."), (r" = \[([^\]]*)\]", " = ..."),
    (r": ([^:=()]+?) = None", r": \1 | None = None"),
    (r"\b(Optional|Union)\b", r"typing.\1"),
]  # fmt: skip


def native_type(text):
    return functools.reduce(lambda so_far, one: re.sub(*one, so_far), NATIVE_TYPES, text)


def with_doc(line, doc, indent):
    doc = inspect.cleandoc(doc or "").replace("\n", "\n" + indent + "    ")
    return f'{indent}{line}\n{indent}    """{doc}"""' if doc else f"{indent}{line} ..."


def native_function(name, doc, indent):
    """A pybind11 function or method: the first line of its docstring is its signature."""
    signature, _, told = doc.strip().partition("\n")
    arguments, _, made = signature.partition("(")[2].rpartition(") -> ")
    if "Overloaded function." in told:
        arguments, made = "self, *args: Any, **kwargs: Any", "None" if name == "__init__" else "Any"
    arguments = native_type(re.sub(r"^self: [\w.]+", "self", arguments))
    return with_doc(f"def {name}({arguments}) -> {native_type(made)}:", re.sub(r"fleetrun\._\w+\.", "", told),
                    indent)


def native_class(kind, indent=""):
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base.__module__ == kind.__module__)
    inner, lines = indent + "    ", [f"{indent}class {kind.__name__}({bases}):"]
    if hasattr(kind, "__members__"):
        return lines + [f"{inner}{member}: typing.ClassVar[{kind.__qualname__}]"
                        for member in kind.__members__]
    lines.append(f'{inner}"""{(kind.__doc__ or kind.__name__).strip()}"""')
    for key, value in sorted(vars(kind).items()):
        if isinstance(value, type):
            lines += native_class(value, inner)
        elif isinstance(value, property):
            signature, _, told = (value.fget.__doc__ or " -> Any").strip().partition("\n")
            made = native_type(signature.partition("-> ")[2])
            lines += [f"{inner}@property", with_doc(f"def {key}(self) -> {made}:", value.__doc__ or told,
                                                    inner)]
            if value.fset:
                lines += [f"{inner}@{key}.setter", f"{inner}def {key}(self, value: {made}) -> None: ..."]
        elif ((doc := getattr(kind, key).__doc__ or "").startswith(key + "(")
              and (key == "__init__" or key[0] != "_")):
            lines += [f"{inner}@staticmethod"] if isinstance(value, staticmethod) else []
            lines.append(native_function(key, doc, inner))
    return lines


def native_stub(name):
    module = importlib.import_module("fleetrun." + name)
    lines = [f'"""{module.__doc__}"""', "import datetime", "import typing", "from typing import Any",
             "import numpy"]
    for key, value in vars(module).items():
        if key[0] != "_":
            lines += native_class(value) if isinstance(value,
                                                       type) else [native_function(key, value.__doc__, "")]
    return lines
