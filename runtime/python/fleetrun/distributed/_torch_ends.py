"""The ends of calls that were started: their works are completed on a thread, and what failed is noted."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import torch

from fleetrun._error import Error
from fleetrun.distributed import collectives as calls
from fleetrun.distributed._generations import the_generations
from fleetrun.distributed._world import Group

__all__ = ["Ends", "note"]


class Ends:
    """Completes the works of calls that were started, in their order, on a thread."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._pending: queue.SimpleQueue[tuple[Any, Callable[[], Any], Any, int] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, task: calls.Task, then: Callable[[], Any], future: torch.futures.Future) -> None:
        """`then` gives the future's value, once the task has ended."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True)
            self._thread.start()
        self._pending.put((task, then, future, the_generations.age))

    def close(self) -> None:
        """The thread goes when it has completed what was added."""
        if self._thread is not None:
            self._thread = None
            self._pending.put(None)

    def _serve(self):
        while (pending := self._pending.get()) is not None:
            task, then, future, age = pending
            try:
                task.wait()
                future.set_result(then())
            except Exception as error:
                note(error, age, self._group)
                future.set_exception(error)


def note(error: Exception, age: int, group: Group, within: float | None = None) -> None:
    """What an error of a call of this age says of the generation, and of the group's time."""
    the_generations.note(age, error)
    within = within or group.call_within
    if isinstance(error, Error) and error.kind == "timeout" and within is not None:
        # Scripts look for these words.
        error.context += (f"a call of {group.name}, which has Timed out after {within:g} s",)
