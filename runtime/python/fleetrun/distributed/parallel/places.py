"""How a process that takes a rank's place comes to the rank's next batch."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from fleetrun.distributed.parallel import randomness

__all__ = ["batches_from"]


def batches_from(
    loader: Iterable[Any], skipped: int, at_start: dict[str, Any] | None, now: dict[str, Any] | None
) -> Iterator[Any]:
    """The loader's batches without the first ones, which the rank has had.

    at_start: the random numbers with which the rank began them, None where that is not known: then it has
    drawn none since `now`, those with which it goes on."""
    first = at_start if at_start is not None else now
    # A generator draws from `first` until it has given a batch.
    then = now if at_start is not None and skipped > 0 else None
    if first is not None:
        randomness.set_state(first)
    sampler, torch = getattr(loader, "batch_sampler", None), sys.modules.get("torch")
    if torch is not None and isinstance(loader, torch.utils.data.DataLoader) and sampler is not None:
        # A loader that may not be given another sampler, once it is made: its copy is.
        shorter = copy.copy(loader)
        vars(shorter)["batch_sampler"] = _Rest(sampler, skipped, then)
        vars(shorter)["_iterator"] = None
        yield from shorter
        return
    iterator = iter(loader)
    for _ in itertools.islice(iterator, skipped):
        pass
    if then is not None:
        randomness.set_state(then)
    yield from iterator


class _Rest:
    """A batch sampler without its first batches; then the random numbers are set."""

    def __init__(self, sampler: Any, skipped: int, then: dict[str, Any] | None) -> None:
        self._sampler, self._skipped, self._then = sampler, skipped, then

    def __len__(self) -> int:
        return len(self._sampler) - self._skipped

    def __iter__(self) -> Iterator[Any]:
        iterator = iter(self._sampler)
        for _ in itertools.islice(iterator, self._skipped):
            pass
        if self._then is not None:
            randomness.set_state(self._then)
        yield from iterator
