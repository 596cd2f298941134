"""Uneven inputs: what DataParallel.join() does where some ranks have more batches than others.

Every forward begins with two numbers of each rank: whether it has a batch, and whether its gradients are
averaged. A rank without batches takes part in the others' steps with zeros until nobody has one; then the
parameters and buffers of a rank that trained to the end are those of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view

if TYPE_CHECKING:
    from fleetrun.distributed._world import Group

__all__ = ["JoinHook", "UnevenInputs"]

_KIND = _native.CallKind


class UnevenInputs:
    """divides_by_all: a mean is over all ranks, those without batches included. is_strict: an error on all
    ranks as soon as one has no batch left."""

    def __init__(self, communicator: _native.Communicator, divides_by_all: bool, is_strict: bool) -> None:
        self.divides_by_all = divides_by_all
        self.is_strict = is_strict
        self.active: list[int] = []  # ranks that had a batch when somebody last had one
        self.averages = False
        self._communicator = communicator
        self._mine = numpy.zeros(2, dtype=numpy.int64)
        self._every = numpy.zeros((communicator.size, 2), dtype=numpy.int64)
        self._call = _native.Call(_KIND.all_gather, view(self._mine), view(self._every), 2)

    @property
    def root(self) -> int:
        """A rank whose parameters and buffers are the newest."""
        return self.active[-1] if self.active else 0

    @property
    def scale(self) -> float:
        """From a mean over all ranks to the mean that was asked for."""
        return 1.0 if self.divides_by_all or not self.active else self._communicator.size / len(self.active)

    def meet(self, has_batch: bool, averages: bool) -> bool:
        """A forward of any rank. Returns whether any rank has a batch. Throws: RuntimeError when it is strict
        and some have and some have not."""
        self._mine[:] = (has_batch, averages)
        self._communicator.run(self._call)
        active = numpy.flatnonzero(self._every[:, 0]).tolist()
        if not active:
            return False
        if self.is_strict and len(active) < self._communicator.size:
            gone = next(rank for rank in range(self._communicator.size) if rank not in active)
            raise RuntimeError(
                f"rank {gone} has exhausted its inputs and rank {active[0]} has not: join() was called with "
                "throw_on_early_termination=True"
            )
        self.active, self.averages = active, bool(self._every[:, 1].any())
        return True


class JoinHook:
    """What torch.distributed.algorithms.Join calls on a rank that has no batch left."""

    def __init__(self, model: Any, group: Group, divides_by_all: bool) -> None:
        distributed = torch.distributed
        if not distributed.is_initialized():
            raise Error(
                "config",
                "Join([model]) counts ranks through torch.distributed, which has not been initialized",
                'call torch.distributed.init_process_group("fleetrun") first, or use model.join()',
            )
        if (distributed.get_rank(), distributed.get_world_size()) != (group.rank, group.nranks):
            raise Error(
                "config",
                f"Join([model]) of {distributed.get_world_size()} ranks of torch.distributed, and the model "
                f"is of {group.name}, which has {group.nranks}",
                "use model.join()",
            )
        self._model, self._divides_by_all = model, divides_by_all

    def begin(self) -> None:
        """Before a step, on ranks with and without batches."""
        self._model._begin_uneven(self._divides_by_all, False)

    def main_hook(self) -> None:
        """A step of those that have batches."""
        self.begin()
        self._model._follow_others()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Nobody has a batch."""
        self.begin()
        self._model._share_end()
        self._model._end_uneven()
