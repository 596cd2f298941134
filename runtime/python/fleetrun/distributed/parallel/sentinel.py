"""At the end of every step the ranks tell each other how it went, and compare a part of the parameters.

word     five numbers of each rank, gathered by all: what it did, its step, how many gradients have been
         averaged so far, a checksum of a part of its parameters, how many parts there are
part     some consecutive values of parameters; another one in each step, until all were compared. One step's
         part has a hundredth of the values, and few enough tensors to cost little
checksum the sum of the values' bits as whole numbers: the same on all ranks whose parameters are

Ranks whose parameters differ, or which have averaged a different number of gradients, train different
models: an Error(data) on every rank, which names rank, tensor and step. FLEETRUN_SENTINEL: "rotating", the
default; "every" compares all parameters in each step; "off" none. None are compared either where a
communication hook exchanges gradients: ranks that average now and then (local SGD) differ in between.
"""

from __future__ import annotations

import os
import sys

import numpy
import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view

__all__ = ["Sentinel", "State", "parts_of"]

_KIND = _native.CallKind
_MODES = ("rotating", "every", "off")
_LEAST_VALUES, _MOST_TENSORS, _SHARE = 16384, 8, 100
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class State:
    """What a rank did in a step: averaged its gradients; raised in backward; had no examples left."""

    trained, abandoned, idle = 0, 1, 2


def parts_of(counts: list[int], every: bool) -> list[list[tuple[int, int, int]]]:
    """The values of tensors that have `counts` of them, in parts: lists of (tensor, start, end)."""
    if every:
        return [[(index, 0, count) for index, count in enumerate(counts)]]
    room = max(_LEAST_VALUES, -(-sum(counts) // _SHARE))
    parts: list[list[tuple[int, int, int]]] = [[]]
    left = room
    for index, count in enumerate(counts):
        start = 0
        while start < count:
            if left == 0 or len(parts[-1]) == _MOST_TENSORS:
                parts.append([])
                left = room
            end = min(count, start + left)
            parts[-1].append((index, start, end))
            left -= end - start
            start = end
    return parts


class Sentinel:
    """parameters: (name, parameter) on all ranks of the communicator, which `are_alike` if they are to be."""

    def __init__(
        self,
        parameters: list[tuple[str, torch.nn.Parameter]],
        communicator: _native.Communicator,
        are_alike: bool,
    ) -> None:
        mode = os.environ.get("FLEETRUN_SENTINEL") or "rotating"
        if mode not in _MODES:
            raise Error("config", f'FLEETRUN_SENTINEL="{mode}" is none of {", ".join(_MODES)}')
        self._names = [name for name, _ in parameters]
        self._parameters = [parameter for _, parameter in parameters]
        self._communicator = communicator
        counts = [parameter.numel() for parameter in self._parameters]
        self.parts = parts_of(counts, mode == "every") if are_alike and mode != "off" else [[]]
        self._step, self._averaged = 0, 0
        self._word = numpy.zeros(5, dtype=numpy.int64)
        self._words = numpy.zeros((communicator.size, 5), dtype=numpy.int64)
        self._call = _native.Call(_KIND.all_gather, view(self._word), view(self._words), self._word.size)

    def report(self, state: int, count: int) -> None:
        """The end of a step in which `count` gradients were averaged. Throws: Error(data) where a rank raised
        in its backward and this one did not, and where ranks have drifted apart."""
        part = self.parts[self._step % len(self.parts)]
        self._step += 1
        self._averaged += count
        self._word[:] = (state, self._step, self._averaged, self._checksum(part), len(self.parts))
        self._communicator.run(self._call)
        if self._step == 1:
            self._introduce()
        states = self._words[:, 0].tolist()
        if State.abandoned in states:
            return self._abandon(state, states)
        trained = [rank for rank, each in enumerate(states) if each == State.trained]
        if trained and (self._words[trained, 1:] != self._words[trained[0], 1:]).any():
            self._refuse(trained, part)
        return None

    def _introduce(self):
        if self._communicator.rank == 0 and len(self.parts) > 1:
            print(
                f"fleetrun: ranks compare their parameters within {len(self.parts)} steps",
                file=sys.stderr,
                flush=True,
            )

    def _abandon(self, state, states):
        ranks = [rank for rank, each in enumerate(states) if each == State.abandoned]
        if state == State.trained:
            raise Error(
                "data",
                f"rank {ranks[0]} raised in its backward of step {self._step}: the gradients of this step "
                "are not means",
                "drop them on all ranks (zero_grad) and take the next batch, or end the job",
            )

    def _checksum(self, part):
        total = 0
        for index, start, end in part:
            values = self._parameters[index].detach()
            if values.is_complex():
                values = torch.view_as_real(values)
                start, end = 2 * start, 2 * end
            bits = values.reshape(-1)[start:end].view(_INTEGERS[values.element_size()])
            # Its place counts, too.
            total += int(bits.sum(dtype=torch.int64)) * (2 * index + 1)
        return (total + (1 << 63)) % (1 << 64) - (1 << 63)

    def _refuse(self, trained, part):
        """Throws: Error(data) naming who differs from most of the others, and in what."""
        words = self._words
        for column, what in ((1, "is in step"), (2, "has averaged"), (4, "compares parameters in")):
            odd, most = _odd_one(words[:, column], trained)
            if odd is not None:
                unit = {1: "", 2: " gradients", 4: " parts"}[column]
                raise Error(
                    "data",
                    f"rank {odd} {what} {words[odd, column]}{unit} and rank {most} "
                    f"{words[most, column]}{unit}, in step {self._step}",
                    "make the same number of backward passes, with the same FLEETRUN_SENTINEL, on all ranks",
                )
        sums = numpy.array([self._checksum([each]) for each in part], dtype=numpy.int64)
        all_sums = numpy.zeros((self._communicator.size, len(part)), dtype=numpy.int64)
        self._communicator.run(_native.Call(_KIND.all_gather, view(sums), view(all_sums), sums.size))
        for place, (index, _, _) in enumerate(part):
            odd, most = _odd_one(all_sums[:, place], trained)
            if odd is not None:
                raise Error(
                    "data",
                    f"the ranks have drifted apart: '{self._names[index]}' of rank {odd} is not that of rank "
                    f"{most}, before step {self._step} was applied",
                    "look for updates that not all ranks make, and for a rank that skips an average; "
                    "start from a checkpoint",
                )


def _odd_one(values, ranks):
    """(a rank whose value is not that of most, one whose is); (None, None): all are alike."""
    alike = [int((values[ranks] == values[rank]).sum()) for rank in ranks]
    most = ranks[alike.index(max(alike))]
    odd = [rank for rank in ranks if values[rank] != values[most]]
    return (odd[0], most) if odd else (None, None)
