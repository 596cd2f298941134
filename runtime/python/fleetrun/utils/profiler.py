"""paddle.fluid.profiler and paddle.utils.profiler: accepted. What a program takes is shown by
train_from_dataset(debug=True) and by fleetrun --trace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fleetrun import _lazy
from fleetrun._arguments import warn_once

__all__ = ["cuda_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]


def _say() -> None:
    warn_once(
        "profiler", "Paddle's profiler is not here: use train_from_dataset(debug=True), fleetrun --trace"
    )


@contextlib.contextmanager
def profiler(
    state: str = "All", sorted_key: str | None = None, profile_path: str = "/tmp/profile",
    tracer_option: str = "Default",
) -> Iterator[None]:  # fmt: skip
    """Within `with`: nothing is recorded; a warning says what to use."""
    _say()
    yield


@contextlib.contextmanager
def cuda_profiler(output_file: str, output_mode: str | None = None, config: Any = None) -> Iterator[None]:
    """Within `with`: nothing is recorded."""
    _say()
    yield


def start_profiler(state: str = "All", tracer_option: str = "Default") -> None:
    """Accepted with a warning."""
    _say()


def stop_profiler(sorted_key: str | None = None, profile_path: str = "/tmp/profile") -> None:
    """Accepted with a warning."""
    _say()


def reset_profiler() -> None:
    """Accepted with a warning."""
    _say()


__getattr__, __dir__ = _lazy.attach(__name__)
