"""paddle.distributed.fleet.metrics: a metric of all trainers, from what each has in its scope.

A value is a variable, its name, or an array. `util` (fleet.util when not given) adds it up over all trainers;
each call is a barrier. Throws: Error(config) for a variable without a value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fleetrun import _lazy, framework
from fleetrun._error import Error
from fleetrun._types import Any, Scope

if TYPE_CHECKING:
    import numpy

__all__ = ["acc", "auc", "mae", "max", "min", "mse", "rmse", "sum"]


def sum(input: Any, scope: Scope | None = None, util: Any = None) -> numpy.ndarray:
    """The sum over all trainers, by element."""
    return _reduced(input, "sum", scope, util)


def max(input: Any, scope: Scope | None = None, util: Any = None) -> numpy.ndarray:
    """The largest of all trainers, by element."""
    return _reduced(input, "max", scope, util)


def min(input: Any, scope: Scope | None = None, util: Any = None) -> numpy.ndarray:
    """The smallest of all trainers, by element."""
    return _reduced(input, "min", scope, util)


def auc(stat_pos: Any, stat_neg: Any, scope: Scope | None = None, util: Any = None) -> float:
    """The area under the ROC curve from the counters of paddle.static.auc; 0.5 when one label was not
    seen."""
    positive = sum(stat_pos, scope, util).ravel()[::-1].astype("float64")
    negative = sum(stat_neg, scope, util).ravel()[::-1].astype("float64")
    clicks, others = positive.cumsum(), negative.cumsum()
    if clicks[-1] == 0 or others[-1] == 0:
        return 0.5
    # Buckets from the highest probability down: trapezoids of (others, clicks).
    return float((negative * (2 * clicks - positive)).sum() / 2 / (clicks[-1] * others[-1]))


def mae(abserr: Any, total_ins_num: Any, scope: Scope | None = None, util: Any = None) -> float:
    """Mean absolute error: the sum of `abserr` by the number of examples."""
    return _mean(abserr, total_ins_num, scope, util)


def mse(sqrerr: Any, total_ins_num: Any, scope: Scope | None = None, util: Any = None) -> float:
    """Mean squared error."""
    return _mean(sqrerr, total_ins_num, scope, util)


def rmse(sqrerr: Any, total_ins_num: Any, scope: Scope | None = None, util: Any = None) -> float:
    """The root of the mean squared error."""
    return math.sqrt(mse(sqrerr, total_ins_num, scope, util))


def acc(correct: Any, total: Any, scope: Scope | None = None, util: Any = None) -> float:
    """The share of examples that were right."""
    return _mean(correct, total, scope, util)


def _mean(values, count, scope, util):
    return float(sum(values, scope, util).sum()) / float(sum(count, scope, util).sum())


def _reduced(value, mode, scope, util):
    import numpy

    if util is None:
        from fleetrun.distributed.fleet._fleet import the_fleet

        util = the_fleet.util
    if isinstance(value, (framework.Variable, str)):
        name = value if isinstance(value, str) else value.name
        found = (scope or framework.global_scope()).find_var(name)
        if found is None:
            raise Error(
                "config",
                f"fleet.metrics: {name} has no value in the scope",
                "train first, with a persistable variable",
            )
        value = numpy.array(found.get_tensor())
    return numpy.asarray(util.all_reduce(numpy.asarray(value), mode))


__getattr__, __dir__ = _lazy.attach(__name__)
