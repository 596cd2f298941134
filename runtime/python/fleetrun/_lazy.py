"""Module attributes that are imported when they are first used, and the message for those that are not there.

A pipe command imports fleetrun once per file, so nothing may be loaded that is not asked for; and a name that
fleetrun does not have fails where it is used, with its own name and the nearest one that exists.
"""

import importlib
import sys


def missing(owner, name, known):
    """The message for `owner.name`: "fleetrun has no paddle.nn.Conv2D; did you mean …?"."""
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1)
    suggestion = f"; did you mean {owner}.{near[0]}?" if near else ""
    return f"fleetrun has no {owner}.{name}{suggestion}"


def attach(module_name, owner, table):
    """Returns (__getattr__, __dir__) for a module whose names live elsewhere.

    `table` maps a name to "module:attribute" or "module"; modules are relative to the package fleetrun.
    `owner` is the module's name as scripts write it ("paddle.nn").
    """

    def __getattr__(name):
        target = table.get(name)
        if target is None:
            if name.startswith("__"):
                raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
            raise AttributeError(missing(owner, name, table))
        module, _, attribute = target.partition(":")
        value = importlib.import_module("fleetrun." + module)
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[module_name], name, value)
        return value

    def __dir__():
        return sorted(set(table) | {name for name in vars(sys.modules[module_name]) if not name.startswith("_")})

    return __getattr__, __dir__


def names(module, text):
    """A part of attach()'s table: every word of `text` is that name in `module`."""
    return {name: f"{module}:{name}" for name in text.split()}
