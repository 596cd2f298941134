"""The works of torch.distributed for calls that have ended, and for the ends of those that were started."""

from __future__ import annotations

import contextlib
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

__all__ = ["CallWork", "done", "end", "end_soon", "let_works_wait", "started"]

_SOON = 50e-6  # seconds
# Older native code lets go of the Python half of a work.
_KEEPS_WORKS = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 8)


class CallWork(torch_distributed.Work):
    """Calls that were started: `futures` of them, in their order, and what they give. PyTorch's own work of a
    future, which `done` makes, does not tell of a failure."""

    def __init__(self, futures: Sequence[torch.futures.Future], results: list[torch.Tensor]) -> None:
        super().__init__()
        self._futures, self._results = futures, results

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        """Returns when they have ended. Throws: what one of them threw; Error(timeout)."""
        if timeout:
            wait_within(self._futures[-1], timeout)
        for future in self._futures:
            future.wait()
        return True

    def at_end(self, call: Callable[[], object]) -> None:
        """Calls `call` when they have ended."""
        self._futures[-1].add_done_callback(lambda _: call())

    def is_completed(self) -> bool:
        """Whether wait() returns at once."""
        return self._futures[-1].done()

    def is_success(self) -> bool:
        """Whether they have ended, and well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """What one of them threw."""
        try:
            if self.is_completed():
                self.wait()
        except Exception as error:
            return error
        return None

    def result(self) -> list[torch.Tensor]:
        """What they give."""
        return self._results

    def get_future(self) -> torch.futures.Future:
        """A future of the results."""
        ended = torch.futures.collect_all(list(self._futures))
        return ended.then(self._after)

    def _after(self, ended):
        for each in ended.value():
            each.value()  # throws what its call threw
        return self._results


def started(futures: Sequence[torch.futures.Future], results: list[torch.Tensor]) -> Any:
    """The work of calls that were started."""
    work = CallWork(futures, results)
    return work if _KEEPS_WORKS else _create_work_from_future(work.get_future())


def wait_within(future: torch.futures.Future, timeout: datetime.timedelta) -> None:
    """Returns when it has ended. Throws: Error(timeout)."""
    has_ended = threading.Event()
    future.add_done_callback(lambda _: has_ended.set())
    if not has_ended.wait(timeout.total_seconds()):
        raise Error("timeout", f"a work has Timed out after {timeout.total_seconds():g} s")


def _future_of(work):
    """Its future, None where it has none: the works of some calls of gloo do not."""
    with contextlib.suppress(RuntimeError):
        return work.get_future()
    return None


def _exception_of(work):
    """What it failed with: Python cannot have what older native code returns."""
    future = _future_of(work)
    if future is None or not future.done():
        return None
    try:
        future.value()
    except Exception as error:
        return error
    return None


def let_works_wait() -> None:
    """Lets a work that PyTorch makes from a future wait for a time, and where PyTorch is old, tell Python of
    a failure."""
    native = torch_distributed.Work.wait
    if hasattr(native, "__wrapped__"):
        return

    @functools.wraps(native)
    def wait(self: Any, timeout: datetime.timedelta = datetime.timedelta(0)) -> Any:
        try:
            ended = native(self, timeout)
        except RuntimeError as error:
            if "FutureWrappingWork::wait() with finite timeout" not in str(error):
                raise
            wait_within(self.get_future(), timeout)
            ended = native(self)
        if not _KEEPS_WORKS and (future := _future_of(self)) is not None:
            future.value()
        return ended

    torch_distributed.Work.wait = wait
    if not _KEEPS_WORKS:
        torch_distributed.Work.exception = _exception_of


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
