"""The random numbers of a process: torch's where it is loaded, numpy's and Python's, as data."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy

__all__ = ["are_equal", "set_state", "state"]


def state() -> dict[str, Any]:
    """Where they are."""
    version, numbers, gauss = random.getstate()
    kind, keys, *rest = numpy.random.get_state()
    torch = sys.modules.get("torch")
    return {
        "torch": None if torch is None else torch.get_rng_state().numpy(),
        "python": [version, numpy.array(numbers, numpy.int64), gauss],
        "numpy": [kind, keys, *rest],
    }


def set_state(saved: dict[str, Any]) -> None:
    """They go on from there."""
    if saved["torch"] is not None:
        import torch

        torch.set_rng_state(torch.from_numpy(saved["torch"].copy()))
    version, numbers, gauss = saved["python"]
    random.setstate((version, tuple(numbers.tolist()), gauss))
    numpy.random.set_state(tuple(saved["numpy"]))


def are_equal(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether the next numbers are the same."""
    return (
        one is not None
        and other is not None
        and numpy.array_equal(one["torch"], other["torch"])
        and all(
            numpy.array_equal(one[key][1], other[key][1])
            and [one[key][0], *one[key][2:]] == [other[key][0], *other[key][2:]]
            for key in ("python", "numpy")
        )
    )
