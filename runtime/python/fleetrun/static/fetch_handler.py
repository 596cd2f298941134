"""FetchHandler: what train_from_dataset(fetch_handler=) calls with values while a pass runs."""

from __future__ import annotations

import time

import numpy

from fleetrun._types import Any

__all__ = ["FetchHandler", "Listener"]


class FetchHandler:
    """To be subclassed: handler(values) is called every period_secs seconds with {key: array}, the values of
    the last batch of the first thread, and once at the end of a pass that was shorter.

    var_dict: {key: variable}. Of a list of names, as in Paddle 1.6, handler() takes the list of arrays.
    """

    def __init__(self, var_dict: Any = None, period_secs: float = 60, return_np: bool = True) -> None:
        if not var_dict:
            from fleetrun._error import Error

            raise Error("config", f"FetchHandler(var_dict={var_dict!r})", "give it {key: variable}")
        self.var_dict = var_dict
        self.period_secs = period_secs
        self.return_np = return_np

    def handler(self, res_dict: Any) -> None:
        """Takes {key: array}."""
        for key, value in res_dict.items():
            print(f"{key}[0]: {value[0]}")

    @staticmethod
    def help() -> None:
        """Prints how to write one."""
        print("class MyHandler(FetchHandler):\n    def handler(self, res_dict):\n        print(res_dict)")


class Listener:
    """Takes the line of each batch, and gives its values to the handler when its time has come."""

    def __init__(self, handler: FetchHandler) -> None:
        self._handler = handler
        self._is_keyed = isinstance(handler.var_dict, dict)
        variables = [handler.var_dict] if isinstance(handler.var_dict, str) else handler.var_dict
        self._keys = list(variables if self._is_keyed else range(len(variables)))
        self.variables = [variables[key] for key in self._keys]
        self._due = time.monotonic() + handler.period_secs
        self._calls = 0
        self._last = ""

    def take(self, line: str) -> None:
        """One line."""
        self._last = line
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._handler.period_secs
            self._call()

    def end(self) -> None:
        """A pass that was too short for a call gets one at its end."""
        if self._calls == 0 and self._last:
            self._call()

    def _call(self) -> None:
        self._calls += 1
        values = [_array(part) for part in self._last.split("]:[")[1:]]
        self._handler.handler(dict(zip(self._keys, values)) if self._is_keyed else values)


def _array(part: str) -> numpy.ndarray:
    """The values of "0.66,0.67], auc[1"."""
    return numpy.array([float(value) for value in part.partition("]")[0].split(",") if value], "float32")
