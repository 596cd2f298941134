"""paddle.utils.plot of Paddle 1.x: curves of a training, as its tutorials draw them."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from fleetrun._arguments import warn_once

__all__ = ["PlotData", "Ploter"]


class PlotData:
    """The points of one curve."""

    def __init__(self) -> None:
        self.reset()

    def append(self, step: Any, value: Any) -> None:
        """Adds a point."""
        self.step.append(step)
        self.value.append(value)

    def reset(self) -> None:
        """Forgets all points."""
        self.step: list[Any] = []
        self.value: list[Any] = []


class Ploter:
    """Curves of these titles, which matplotlib draws; without it, nobody, with a warning."""

    def __init__(self, *args: str) -> None:
        self._curves = {title: PlotData() for title in args}
        self._plt: Any = None
        try:
            self._plt = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            warn_once("Ploter", "paddle.utils.plot.Ploter draws nothing: matplotlib is not installed")

    def append(self, title: str, step: Any, value: Any) -> None:
        """Adds a point to the curve of this title. Throws: KeyError for another one."""
        self._curves[title].append(step, value)

    def plot(self, path: str | None = None) -> None:
        """Draws what there is: to a file, or into the notebook that it runs in."""
        if self._plt is None:
            return
        drawn = {title: curve for title, curve in self._curves.items() if curve.step}
        for curve in drawn.values():
            self._plt.plot(curve.step, curve.value)
        self._plt.legend(list(drawn), loc="upper left")
        if path is not None:
            self._plt.savefig(path)
        else:
            with contextlib.suppress(ImportError):  # without IPython there is no notebook
                display = importlib.import_module("IPython.display")
                display.clear_output(wait=True)
                display.display(self._plt.gcf())
        self._plt.gcf().clear()

    def reset(self) -> None:
        """Forgets all points."""
        for curve in self._curves.values():
            curve.reset()
