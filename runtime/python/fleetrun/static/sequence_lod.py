"""paddle.static.nn.sequence_lod: layers over slots with any number of values per example."""

from __future__ import annotations

from fleetrun import _lazy, framework
from fleetrun._arguments import refuse
from fleetrun._types import Variable
from fleetrun.nn.functional import sequence_mask

__all__ = ["sequence_mask", "sequence_pool"]


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row per example of a slot with any number of values: their sum, average, sqrt (sum / sqrt(n)) or
    max.

    Shape: input[total, width] with lod_level 1 -> [examples, width].
    """
    refuse("paddle.static.nn.sequence_pool", pad_value=(pad_value, 0.0))
    return framework.append("sequence_pool", "sequence_pool", [input], {"pool_type": str(pool_type).lower()})


__getattr__, __dir__ = _lazy.attach(__name__, owner="paddle.static.nn")
