"""paddle.profiler: accepted; nothing is recorded, but step_info() tells of the steps' time. What a program
takes is shown by train_from_dataset(debug=True) and by fleetrun --trace."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Any

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun.utils.profiler import _say

__all__ = [
    "export_chrome_tracing", "export_protobuf", "load_profiler_result", "make_scheduler", "Profiler",
    "ProfilerState", "ProfilerTarget", "RecordEvent", "SortedKeys", "SummaryView",
]  # fmt: skip

ProfilerState = enum.Enum("ProfilerState", "CLOSED READY RECORD RECORD_AND_RETURN", start=0)
ProfilerTarget = enum.Enum("ProfilerTarget", "CPU GPU XPU CUSTOM_DEVICE", start=0)
SortedKeys = enum.Enum("SortedKeys", "CPUTotal CPUAvg CPUMax CPUMin GPUTotal GPUAvg GPUMax GPUMin", start=0)
SummaryView = enum.Enum(
    "SummaryView",
    "DeviceView OverView ModelView DistributedView KernelView OperatorView MemoryView "
    "MemoryManipulationView UDFView",
    start=0,
)


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerState]:
    """The state of each step: closed, ready and record steps in turn, `repeat` times (0: for ever)."""

    def state(step: int) -> ProfilerState:
        period, place = closed + ready + record, step - skip_first
        if place < 0 or (repeat > 0 and place // period >= repeat):
            return ProfilerState.CLOSED
        place %= period
        if place < closed:
            return ProfilerState.CLOSED
        if place < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD if place < period - 1 else ProfilerState.RECORD_AND_RETURN

    return state


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Any], None]:
    """What Profiler(on_trace_ready=…) takes: nothing is written."""
    return lambda prof: prof.export(dir_name)


def export_protobuf(dir_name: str, worker_name: str | None = None) -> Callable[[Any], None]:
    """What Profiler(on_trace_ready=…) takes: nothing is written."""
    return lambda prof: prof.export(dir_name)


def load_profiler_result(filename: str) -> Any:
    """Throws: Error(config): nothing has been recorded."""
    raise Error("config", f"paddle.profiler.load_profiler_result({filename!r})", "use fleetrun trace")


class Profiler:
    """Within `with`, or from start() to stop(): counts steps and their time; records nothing else."""

    def __init__(
        self,
        *,
        targets: Any = None,
        scheduler: Any = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool | None = False,
        profile_memory: bool | None = False,
        timer_only: bool | None = False,
        emit_nvtx: bool | None = False,
        custom_device_types: list[Any] | None = None,
        with_flops: bool | None = False,
    ) -> None:
        self._ready = on_trace_ready
        self._times: list[tuple[float, int]] = []  # seconds and examples of each step
        self._at = 0.0

    def start(self) -> None:
        """Begins to count."""
        _say()
        self._times, self._at = [], time.perf_counter()

    def stop(self) -> None:
        """Ends, and calls on_trace_ready."""
        if self._ready is not None:
            self._ready(self)

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def step(self, num_samples: int | None = None) -> None:
        """Ends a step, of so many examples."""
        now = time.perf_counter()
        self._times.append((now - self._at, num_samples or 0))
        self._at = now

    def step_info(self, unit: str | None = None) -> str:
        """The mean time of a step since the start, and examples in a second."""
        seconds, examples = (sum(part) for part in zip(*self._times)) if self._times else (0.0, 0)
        steps = max(len(self._times), 1)
        rate, what = (
            (examples / seconds, unit or "samples/s") if examples else (steps / (seconds or 1.0), "steps/s")
        )
        return f" batch_cost: {seconds / steps:.5f} s ips: {rate:.5f} {what}"

    def export(self, path: str = "", format: str = "json") -> None:
        """Accepted: nothing is written."""
        _say()

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Accepted: nothing is printed."""
        _say()


class RecordEvent:
    """Within `with`, or from begin() to end(): nothing is recorded."""

    def __init__(self, name: str, event_type: Any = None) -> None:
        self.name = name

    def begin(self) -> None:
        """Accepted."""
        _say()

    def end(self) -> None:
        """Accepted."""

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *error: Any) -> None:
        self.end()


__getattr__, __dir__ = _lazy.attach(__name__)
