"""How the ranks of a job go on after one was lost (fleetrun.distributed._membership): they meet again, with
those that take places, and agree on how far the training is.

account  each rank says whether it has the state of the training, and how many steps it knows to count
table    what each rank had at the last step that counts, kept by all: a rank whose process is lost finds
         there what nobody else has
giver    the first of those that have come furthest; it has the table, and hands the state over
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun._error import Error
from fleetrun.distributed._arrays import view
from fleetrun.distributed._membership import the_member
from fleetrun.distributed._objects import from_bytes, to_bytes

if TYPE_CHECKING:
    from fleetrun.distributed._membership import Member

__all__ = ["Generations", "is_cut", "the_generations", "Votes"]

# A rank that is lost on its way to the others is waited for this long (seconds).
_MEET_WITHIN = "15"
_FIRST_CAPACITY = 4096
_PART = 1 << 24  # bytes that those have at once who only pass the state of the training on


def is_cut(error: BaseException) -> bool:
    """Whether the error says that a rank is lost, or that one did not come that is."""
    if isinstance(error, Error):
        member = the_member()
        has_lost = member is not None and member.has_lost
        return error.kind == "network" or (error.kind == "timeout" and has_lost)
    # PyTorch's native code throws on what a call of torch.distributed threw, as text.
    return isinstance(error, RuntimeError) and the_generations.is_cut


class Votes:
    """What ranks tell each other, all of them at once."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self._capacity = _FIRST_CAPACITY  # the same on all ranks: it follows what was gathered

    def gather(self, value: object) -> list[Any]:
        """The ranks' values, by rank. They are data (distributed/_objects.py)."""
        mine = to_bytes(value, False)
        joined = self._gather(mine)
        lengths = joined[:, :8].copy().view(numpy.int64)[:, 0]
        if lengths.max() > self._capacity - 8:
            self._capacity = 8 + (1 << int(lengths.max() - 1).bit_length())
            joined = self._gather(mine)
        return [from_bytes(row[8 : 8 + length].tobytes(), False) for row, length in zip(joined, lengths)]

    def broadcast(self, data: bytes | None, root: int, wants: bool) -> bytes:
        """The root's data; nothing for who does not want them."""
        length = self.gather(None if data is None else len(data))[root]
        received = numpy.empty(length if wants else min(length, _PART), numpy.uint8)
        if data is not None:
            received = numpy.frombuffer(data, numpy.uint8).copy()
        for start in range(0, length, _PART):
            size = min(_PART, length - start)
            part = received[start : start + size] if wants or data is not None else received[:size]
            self._run("broadcast", part, part, size, root)
        return received.tobytes() if wants else b""

    def _run(self, kind, given, received, count, root=0):
        from fleetrun import _native

        kind = getattr(_native.CallKind, kind)
        self._communicator.run(_native.Call(kind, view(given), view(received), count, root=root))

    def _gather(self, mine):

        own = numpy.zeros(self._capacity, numpy.uint8)
        own[:8] = numpy.array([len(mine)], numpy.int64).view(numpy.uint8)
        head = mine[: self._capacity - 8]
        own[8 : 8 + len(head)] = numpy.frombuffer(head, numpy.uint8)
        joined = numpy.empty((self._communicator.size, self._capacity), numpy.uint8)
        self._run("all_gather", own, joined, self._capacity)
        return joined


class Generations:
    """One per process (`the_generations`)."""

    def __init__(self) -> None:
        self.votes: Any = None
        self.committed = 0
        self.table: dict[int, Any] = {}
        self.giver = 0
        self.newcomers: list[int] = []  # ranks that the giver has not given the state to yet
        self.is_guarding = False
        self.age = 0  # counts the generations that this process has left
        self.is_cut = False  # a call of this generation has failed for the loss of a rank
        # (whether this rank has the state, the steps that it knows to count)
        self.account: Callable[[], tuple[bool, int]] = lambda: (False, -1)

    def meet(self, world: Any, member: Member) -> None:
        """Enters the generation that `member` is of; one after it where a rank of that is lost meanwhile."""
        while True:
            try:
                environment = member.environment()
                if environment is not None:
                    environment["FLEETRUN_MEET_TIMEOUT"] = _MEET_WITHIN
                world.enter(environment, member)
                self._agree(world, member)
                return
            except Error as error:
                if member.generation == 0 or error.kind not in ("network", "timeout"):
                    raise
            self._leave(world, member)

    def meet_again(self, world: Any, member: Member) -> None:
        """Leaves the generation, of which a rank is lost, for the next one."""
        self._leave(world, member)
        self.meet(world, member)

    def guard(self, world: Any) -> None:
        """From here on ranks make groups of all of them when each has come to that. Nobody waits there for
        one that is lost: the call before it ends then."""
        self.is_guarding = True
        world.before_groups = lambda: self.votes.gather(None)

    def note(self, age: int, error: Exception) -> None:
        """How a call ended that was made when `age` was this number. From any thread."""
        if age == self.age and isinstance(error, Error) and is_cut(error):
            self.is_cut = True

    def _leave(self, world, member):
        self.votes = world.before_groups = None
        world.drop()
        self.age += 1
        self.is_cut = False
        member.leave(self.account()[1])

    def _agree(self, world, member):
        self.votes = Votes(world.make_communicator("generation", []))
        if member.generation == 0:
            return
        if self.is_guarding:
            self.guard(world)
        accounts = self.votes.gather(list(self.account()))
        self.newcomers = [rank for rank, (has_state, _) in enumerate(accounts) if not has_state]
        self.committed = max(committed for _, committed in accounts)
        self.giver = [committed for _, committed in accounts].index(self.committed)
        mine = self.table if world.rank == self.giver else None
        self.table = self.votes.gather(mine)[self.giver]


the_generations = Generations()
