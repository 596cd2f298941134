"""fluid.contrib.memory_usage, and fluid.contrib.model_stat."""

from __future__ import annotations

import math

import numpy

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._types import Program

__all__ = ["memory_usage", "summary"]


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """(least, most, "B", "KB" or "MB") of what the operators of `program` make for batch_size examples. A
    size that is not known counts as batch_size. Throws: TypeError, ValueError as Paddle's."""
    if not isinstance(program, Program):
        raise TypeError(f"memory_usage() requires a Program, but was passed {type(program)}")
    if batch_size <= 0:
        raise ValueError("The batch size need to be positive.")
    made = {name for op in program.ops for name in op.outputs if name}
    total = 0.0
    for name in made:
        known = program.native.variable(name)
        sizes = [batch_size if size < 0 else size for size in known.shape]
        total += math.prod(sizes) * numpy.dtype(known.type).itemsize
    unit = "B"
    for larger in ("KB", "MB"):
        if total > 1024:
            total, unit = total / 1024, larger
    return total * 1.05, total * 1.1, unit


def summary(main_prog: Program) -> None:
    """Accepted: Paddle prints a table of layers, with their parameters and operations."""
    warn_once("model_stat.summary", "fluid.contrib.model_stat.summary prints nothing here")


__getattr__, __dir__ = _lazy.attach(__name__)
