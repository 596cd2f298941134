"""paddle.framework.io_utils: which variables of a program are kept, and why."""

from fleetrun import _lazy, framework


def is_parameter(var):
    """Whether an optimizer may update it."""
    return isinstance(var, framework.Parameter)


def is_belong_to_optimizer(var):
    """Whether it is kept, and neither a parameter nor fed: an optimizer's state, or a metric's."""
    return var.persistable and not is_parameter(var) and not var.native.is_data


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.framework.io_utils", {
    "is_persistable": "static.io:is_persistable",
    **_lazy.names("static.io_utils", "is_parameter is_belong_to_optimizer")})
