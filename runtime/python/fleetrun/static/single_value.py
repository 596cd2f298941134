"""Arrays of one value, as Executor.run gives them."""

from __future__ import annotations

import numpy

from fleetrun import _lazy
from fleetrun._types import Any

__all__ = ["as_numpy", "SingleValue"]


class SingleValue(numpy.ndarray):
    """An array of one value, as losses and metrics are, that converts to a number: NumPy 2.4 refuses to
    convert arrays with axes, and scripts write `"cost=%f" % cost_val[0]`. One without axes takes [0] too,
    since before Paddle 2.5 a loss had the shape [1]."""

    def __getitem__(self, index: Any) -> Any:
        single = self.ndim == 0 and isinstance(index, int) and index in (0, -1)
        return self.item() if single else super().__getitem__(index)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec else numpy.asarray(self), spec)

    def __repr__(self) -> str:
        return repr(numpy.asarray(self))


def as_numpy(tensor: Any) -> Any:
    """The values of a tensor, or of each of a list of them, as arrays."""
    return [as_numpy(one) for one in tensor] if isinstance(tensor, (list, tuple)) else numpy.asarray(tensor)


__getattr__, __dir__ = _lazy.attach(__name__)
