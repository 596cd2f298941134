"""x[…] of a variable, over the functions of fleetrun/tensor.py."""

import builtins
import numbers

from fleetrun import _dtypes as dtypes
from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._graph import append
from fleetrun._types import Variable

_ALL = builtins.slice(None)
_LAST = 2**31 - 1


def index(x, items):
    """x[items]: numbers, slices, None for a new axis, one Ellipsis; a bool mask of x's shape; one vector of
    places.

    Throws: Error(config) naming what an index cannot be.
    """
    items = list(items) if isinstance(items, tuple) else [items]
    if len(items) == 1 and (isinstance(items[0], Variable) or hasattr(items[0], "__array__")):
        return _picked(x, items[0])
    if any(item is Ellipsis for item in items):
        place = next(place for place, item in enumerate(items) if item is Ellipsis)
        axes = builtins.sum(item is not None for item in items) - 1
        items[place : place + 1] = [_ALL] * (x.ndim - axes)
    cut = _Cut(x)
    for item in items:
        cut.take(item)
    return cut.result()


class _Cut:
    """What the items of an index ask for, axis by axis."""

    def __init__(self, x):
        self.x = x
        self.axis = 0
        self.axes, self.starts, self.ends, self.steps = [], [], [], []
        self.dropped, self.new = [], []

    def take(self, item):
        """The next item."""
        if item is None:
            self.new.append(self.axis - len(self.dropped) + len(self.new))
            return
        if self.axis >= self.x.ndim:
            raise Error("config", f"{self.x.name} has {self.x.ndim} axes, and its index more")
        if isinstance(item, numbers.Integral) and not isinstance(item, bool):
            self.dropped.append(self.axis)
            self._add(int(item), _LAST if item == -1 else int(item) + 1, 1)
        elif isinstance(item, Variable) and item.ndim == 0 or getattr(item, "shape", None) == (1,):
            self.dropped.append(self.axis)
            self._add(item, tensor.scale(item, 1.0, 1.0), 1)
        elif isinstance(item, builtins.slice):
            step = 1 if item.step is None else int(item.step)
            # Of a step below 0, -1 is the end before the first place.
            first, last = (0, _LAST) if step > 0 else (_LAST, -1)
            if item != _ALL:
                self._add(
                    first if item.start is None else item.start,
                    last if item.stop is None else item.stop,
                    step,
                )
        else:
            raise Error(
                "config",
                f"{self.x.name}[{item!r}] is not supported",
                "use numbers, slices, None, or one mask or vector of places alone",
            )
        self.axis += 1

    def _add(self, start, end, step):
        self.axes.append(self.axis)
        self.starts.append(start)
        self.ends.append(end)
        self.steps.append(step)

    def result(self):
        """The variable that the items make."""
        part = self.x
        if self.axes:
            steps = self.steps if builtins.any(step != 1 for step in self.steps) else None
            part = tensor.strided_slice(part, self.axes, self.starts, self.ends, steps)
        if self.dropped:
            part = append("squeeze", "squeeze", [part], {"axes": self.dropped, "picks": True})
        return tensor.unsqueeze(part, self.new) if self.new else part


def _picked(x, places):
    places = tensor.to_tensor(places)
    if places.dtype == dtypes.bool:
        if places.ndim == x.ndim:
            return tensor.masked_select(x, places)
        return tensor.gather_nd(x, tensor.nonzero(places))
    if places.ndim <= 1:
        picked = tensor.gather(x, places)
        return picked if places.ndim else tensor.squeeze(picked, 0)
    return tensor.gather_nd(x, tensor.unsqueeze(places, -1))
