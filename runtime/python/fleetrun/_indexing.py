"""x[…] of a variable, over the functions of fleetrun/tensor.py."""

import builtins
import numbers

import numpy as np

from fleetrun import _dtypes as dtypes
from fleetrun import _mode, tensor
from fleetrun._error import Error
from fleetrun._graph import append
from fleetrun._types import Variable

_ALL = builtins.slice(None)
_LAST = 2**31 - 1


def index(x, items):
    """x[items]: numbers, slices, None for a new axis, one Ellipsis; a bool mask of x's shape; places, of one
    axis or of several together, whose axes stand where the first of them was, or first where they are apart.

    Throws: Error(config) naming what an index cannot be.
    """
    if isinstance(items, list) and items and all(isinstance(one, Variable) for one in items):
        items = tensor.stack(items)
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
        self.places = []

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
        elif _is_number(item):
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
        elif isinstance(item, (list, np.ndarray, Variable)):
            self.places.append((self.axis - len(self.dropped), self._places(item)))
        else:
            self._refuse(item)
        self.axis += 1

    def _places(self, item):
        """The variable of whole numbers that an item is; a mask of one axis says them too."""
        made = tensor.to_tensor(item)
        if made.dtype == dtypes.bool and made.ndim == 1:
            return tensor.reshape(tensor.nonzero(made), [-1])
        if not made.dtype.name.startswith("int"):
            self._refuse(item)
        return made

    def _refuse(self, item):
        raise Error(
            "config",
            f"{self.x.name}[{item!r}] is not supported",
            "use numbers, slices, None, places, or a mask of one axis or of all",
        )

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
        dropped = self.dropped
        if _mode.is_of_1x() and len(dropped) == self.x.ndim and not self.new:
            dropped = dropped[1:]  # one value has an axis there
        if dropped:
            part = append("squeeze", "squeeze", [part], {"axes": dropped, "picks": True})
        if self.places:
            if self.new and (len(self.places) > 1 or self.places[0][1].ndim != 1):
                self._refuse(None)
            part = _at_places(part, [axis for axis, _ in self.places], [one for _, one in self.places])
        return tensor.unsqueeze(part, self.new) if self.new else part


def _is_number(item):
    # Paddle 1.x has no variables without axes: those of one value are numbers there.
    shape = getattr(item, "shape", None)
    return isinstance(item, Variable) and shape == () or shape == (1,) and not _mode.asked_for_static


def _at_places(x, axes, places):
    if len(axes) == 1 and places[0].ndim == 1:
        return tensor.gather(x, places[0], axes[0])
    if len({one.dtype for one in places}) > 1:
        places = [tensor.cast(one, "int64") for one in places]
    if len({one.shape for one in places}) > 1:
        places = tensor.broadcast_tensors(places)
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    made = tensor.gather_nd(tensor.transpose(x, axes + rest), tensor.stack(places, -1))
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return made
    wide = places[0].ndim
    before, behind = range(wide, wide + axes[0]), range(wide + axes[0], made.ndim)
    return tensor.transpose(made, [*before, *range(wide), *behind])


def _picked(x, places):
    places = tensor.to_tensor(places)
    if places.dtype == dtypes.bool:
        if places.ndim == x.ndim:
            return tensor.masked_select(x, places)
        return tensor.gather_nd(x, tensor.nonzero(places))
    if places.ndim <= 1:
        return tensor.gather(x, places)
    return tensor.gather_nd(x, tensor.unsqueeze(places, -1))
