"""What torch.profiler shows of the calls: each by gloo's name for it, from where it begins until it has
ended, with the shapes of what it was given."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._C._distributed_c10d import _create_work_from_future

from fleetrun.distributed._torch_messages import MessageWork
from fleetrun.distributed._torch_works import CallWork

__all__ = ["recorded"]


def recorded(name: str, place: int = 0) -> Callable[[Any], Any]:
    """A decorator of a method of a process group that returns a work; `place`: of the tensors that it is
    given among its arguments."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def inner(self: Any, *given: Any, **named: Any) -> Any:
            if not torch.autograd.profiler._is_profiler_enabled:
                return method(self, *given, **named)
            end = _begun(f"{self.asked_as}:{name}", given[place] if len(given) > place else ())
            try:
                work = method(self, *given, **named)
            except BaseException:
                end()
                raise
            return _until_ended(work, end)

        return inner

    return decorate


def _tensors(given):
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _tensors(each)


def _begun(name, given):
    """A record in the profile; what it returns ends it."""
    record = torch._C._autograd._record_function_with_args_enter(name, *_tensors(given))
    ended: torch.futures.Future = torch.futures.Future()
    torch.ops.profiler._call_end_callbacks_on_jit_fut._RecordFunction(record, ended)

    def end():
        # On a thread of its own, by which the profiler knows a call that others may overlap.
        thread = threading.Thread(target=ended.set_result, args=[None])
        thread.start()
        thread.join()

    return end


def _until_ended(work, end):
    if isinstance(work, (MessageWork, CallWork)):
        work.at_end(end)
        return work
    if work.get_future().done():
        end()
        return work

    def pass_on(future):
        end()
        return future.value()

    return _create_work_from_future(work.get_future().then(pass_on))
