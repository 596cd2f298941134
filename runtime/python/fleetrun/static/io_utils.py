"""paddle.framework.io_utils: which variables of a program are kept, and why."""

from fleetrun import _lazy, framework
from fleetrun._types import Variable
from fleetrun.static.io import is_persistable

__all__ = ["is_belong_to_optimizer", "is_parameter", "is_persistable"]


def is_parameter(var: Variable) -> bool:
    """Whether an optimizer may update it."""
    return isinstance(var, framework.Parameter)


def is_belong_to_optimizer(var: Variable) -> bool:
    """Whether it is kept, and neither a parameter nor fed: an optimizer's state, or a metric's."""
    return var.persistable and not is_parameter(var) and not var.native.is_data


__getattr__, __dir__ = _lazy.attach(__name__, owner="paddle.framework.io_utils")
