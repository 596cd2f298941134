"""The works of torch.distributed for calls that have ended, and for the ends of those that were started."""

from __future__ import annotations

import datetime
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as torch_distributed
from torch._C._distributed_c10d import _create_work_from_future

from fleetrun._error import Error

__all__ = ["checked", "done", "end", "end_soon", "wait_within"]

_SOON = 50e-6  # seconds


def wait_within() -> None:
    """Lets a work that is made from a future wait for a time, which PyTorch has left out."""
    native = torch_distributed.Work.wait
    if hasattr(native, "__wrapped__"):
        return

    @functools.wraps(native)
    def wait(self: Any, timeout: datetime.timedelta = datetime.timedelta(0)) -> Any:
        try:
            return native(self, timeout)
        except RuntimeError as error:
            if "FutureWrappingWork::wait() with finite timeout" not in str(error):
                raise
        has_ended = threading.Event()
        self.get_future().add_done_callback(lambda _: has_ended.set())
        if not has_ended.wait(timeout.total_seconds()):
            raise Error("timeout", f"a work has Timed out after {timeout.total_seconds():g} s")
        return native(self)

    torch_distributed.Work.wait = wait


def done(results: list[torch.Tensor]) -> Any:
    """The work of a call that has ended."""
    if results and all(isinstance(each, torch.Tensor) for each in results):
        # A future of the type that native groups' have, which PyTorch's native hooks of gradients ask for.
        return _create_work_from_future(torch._C.fork(lambda: list(results)))
    future: torch.futures.Future = torch.futures.Future()
    future.set_result(results)
    return _create_work_from_future(future)


def end(task: Any, then: Callable[[], object]) -> None:
    """Waits for a call, and does what follows it."""
    task.wait()
    with torch.no_grad():
        then()


def end_soon(tasks: Sequence[tuple[Any, Any]]) -> bool:
    """Whether the calls of (task, what follows) end at once."""
    limit = time.perf_counter() + _SOON
    while not all(task.is_completed() for task, _ in tasks):
        if time.perf_counter() > limit:
            return False
    return True


def checked(ended: torch.futures.Future, results: list[torch.Tensor]) -> list[torch.Tensor]:
    """The results of calls that have ended. Throws: what one of them threw."""
    value = ended.value()
    if isinstance(value, list):
        for each in value:
            if isinstance(each, torch.futures.Future):
                each.value()
    return results
