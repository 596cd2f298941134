"""What a process tells others when it ends. Its forked children do not, which have its
connections, but are not who the others know."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["at_end"]


def at_end(leave: Callable[[], object], connections: Callable[[], Iterable[Any]]) -> None:
    """Calls leave() when this process ends well. After an error, and in forked children, the objects of
    connections() are kept until the process is gone: their end would tell the others that all is well."""

    def keep() -> None:
        import ctypes

        for kept in connections():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    def end() -> None:
        if getattr(sys, "last_value", None) is None:
            leave()
        else:
            keep()

    def stay() -> None:
        atexit.unregister(end)
        keep()

    atexit.register(end)
    os.register_at_fork(after_in_child=stay)
