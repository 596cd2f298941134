"""The activation that layers of paddle.static.nn and fluid.layers take by name."""

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._types import Variable

__all__ = ["activated"]


_KNOWN = ("relu", "sigmoid", "tanh", "softmax")  # Operators, too, without attributes.


def activated(function: str, name: str | None, x: Variable, layer: str | None = None) -> Variable:
    """The activation `name` of x, named after a layer where one is given; None leaves it. Throws:
    Error(config) naming `function`."""
    if name is not None and name not in _KNOWN:
        raise Error(
            "config", f'{function}(activation="{name}") is not supported', f"use one of {', '.join(_KNOWN)}"
        )
    return x if name is None else framework.append(name, name, [x], layer=layer)
