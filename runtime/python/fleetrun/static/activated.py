"""The activation that layers of paddle.static.nn and fluid.layers take by name."""

import importlib

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._types import Variable

__all__ = ["activated"]

# Operators of one input, whose attributes are those of fluid.layers when a layer leaves them out.
_OPERATORS = ("relu", "sigmoid", "tanh", "softmax")  # these without any
_FUNCTIONS = (
    "abs acos asin atan brelu ceil cos cosh elu erf exp floor gelu hard_shrink hard_sigmoid hard_swish "
    "leaky_relu log logsigmoid mish pow reciprocal relu6 round rsqrt scale selu sign sin sinh soft_relu "
    "softplus softshrink softsign sqrt square stanh swish tanh_shrink thresholded_relu"
)
_OTHERS = {name: f"nn.functional:{name}" for name in ("log_softmax", "silu")} | {
    name: f"tensor:{name}" for name in ("expm1", "log1p", "tan")
}


def activated(function: str, name: str | None, x: Variable, layer: str | None = None) -> Variable:
    """The activation `name` of x, named after a layer where one is given; None leaves it. Throws:
    Error(config) naming `function`."""
    if name is None:
        return x
    if name in _OPERATORS:
        return framework.append(name, name, [x], layer=layer)
    module, attribute = "fluid.layers", name
    if name in _OTHERS:
        module, _, attribute = _OTHERS[name].partition(":")
    elif name not in _FUNCTIONS.split():
        known = sorted([*_OPERATORS, *_FUNCTIONS.split(), *_OTHERS])
        raise Error(
            "config", f'{function}(activation="{name}") is not supported', f"use one of {', '.join(known)}"
        )
    # By name: fluid.layers lies above the layers that ask here.
    activation = getattr(importlib.import_module(f"fleetrun.{module}"), attribute)
    made: Variable = activation(x)
    return made
