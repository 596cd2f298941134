"""The activation that layers of paddle.static.nn and fluid.layers take by name."""

from fleetrun._error import Error
from fleetrun._types import Variable
from fleetrun.nn import functional

__all__ = ["activated"]


def activated(function: str, name: str | None, x: Variable) -> Variable:
    """The activation `name` of x; None leaves it. Throws: Error(config) naming `function`."""
    known = {
        "relu": functional.relu,
        "sigmoid": functional.sigmoid,
        "tanh": functional.tanh,
        "softmax": functional.softmax,
    }
    if name is not None and name not in known:
        raise Error(
            "config", f'{function}(activation="{name}") is not supported', f"use one of {', '.join(known)}"
        )
    return x if name is None else known[name](x)
