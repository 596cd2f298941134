"""A training that goes on when a rank is lost (--on_failure=replace).

step      what a rank does between two votes. It counts once all ranks have voted that they are through;
          before that nothing of it does: where a rank is lost every other one puts back what it had at the
          step's start, and takes it again
vote      each rank says where in its data it is, and what nobody else has: its random numbers, what the step
          returned. All keep what all have said, for who takes a place
place     where in its data a rank is: (loop of epochs, epoch, pass over a loader, batch). Who takes a place
          goes through the script to there, and gets the state of the training at the start of the step that
          the others take again

A rank may be lost anywhere. Some of the others may have seen the vote, and others not; whoever has says so
when the ranks meet again, and the step counts for all of them, since nobody votes who is not through.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fleetrun._error import Error
from fleetrun.distributed._generations import is_cut, the_generations
from fleetrun.distributed._membership import the_member
from fleetrun.distributed._objects import from_bytes, to_bytes
from fleetrun.distributed._world import the_world
from fleetrun.distributed.parallel import randomness
from fleetrun.distributed.parallel.places import batches_from
from fleetrun.distributed.parallel.snapshot import check_objects, followed_ddps, put_back, state_of

__all__ = ["Recoverable", "recoverable"]

# Meetings in a row without a step, until what fails is not taken for the loss of a rank.
_MOST_MEETINGS = 5
_LARGEST_VALUE = 64 * 1024
_active: list[Any] = []


def recoverable(*objects: Any) -> Recoverable:
    """The training of these modules, optimizers, programs and other objects with state_dict() and
    load_state_dict().

    With `fleetrun --on_failure=replace` its steps survive the loss of a rank; elsewhere, under torchrun too,
    it does nothing but call them. All ranks call it at the same place of the script, once, after
    fleet.distributed_model or DistributedDataParallel, or once the startup program has run.
    Throws: Error(config) for what cannot be handed over to another process."""
    return Recoverable(objects)


class Recoverable:
    """What recoverable() returns."""

    def __init__(self, objects: tuple[Any, ...]) -> None:
        check_objects(objects)
        self._objects = objects
        self._member: Any = the_member() if the_world.join().size > 1 else None
        self._place = [0, 0, 0, 0]
        self._loops = 0
        self._passes = 0  # of the epoch, that the script has begun
        self._values: list[Any] = []  # what steps returned since the place changed; bytes, None: not data
        self._given: collections.deque[Any] = collections.deque()  # of those that this rank has done before
        self._pass_start: Any = None  # [its place, the random numbers with which it began]
        self._told_start = False
        self._last_random: Any = None
        self.steps = 0  # that count
        self._is_in_step = False
        # Of a process that takes a place: where the others are, and where the rank was at its last step that
        # counts, behind which the script may not have come. The step has been made, what follows it is done.
        self._resume: Any = None
        self._behind = [0, 0, 0, 0]
        if self._member is None:
            return
        if _active:
            raise Error("config", "recoverable() for the second time", "give all objects to one")
        _check_strategy(objects)
        self._ddps = followed_ddps(objects)
        _active.append(self)
        the_generations.account = lambda: (False, -1) if self._member.is_new else (True, self.steps)
        the_generations.guard(the_world)
        if self._member.is_new:
            self._follow(self._come_to_place)
        else:
            self._member.trains()
            self._follow(self._begin_together)

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Where the rank is: how many loops of epochs are over, the epoch, how many passes over loaders are
        over in it, and how many batches of the next one were given."""
        loop, epoch, number, batch = self._place
        return loop, epoch, number, batch

    # ---- what a script loops over ----

    def epochs(self, count: int, first: int = 0) -> Iterator[int]:
        """first to count - 1; for a process that takes a place, from the epoch of the others."""
        loop, self._loops = self._loops, self._loops + 1
        if loop < self._behind[0]:
            return
        start = self._behind[1] if self._resume is not None and loop == self._behind[0] else first
        try:
            for epoch in range(start, count):
                self._passes = 0
                self._go_to([loop, epoch, 0, 0])
                yield epoch
            self._go_to([loop, count, 0, 0])
            self.step(_nothing)  # nobody goes before all are through
        finally:
            self._passes = 0
            self._go_to([loop + 1, 0, 0, 0])

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches, each once; a process that takes a place goes on at the others'."""
        number, self._passes = self._passes, self._passes + 1
        here, skipped = [*self._place[:2], number], 0
        if here < self._behind[:3]:
            return
        if here == self._behind[:3] and self._behind[3] > 0:
            skipped = self._behind[3] - 1
            iterator = batches_from(loader, skipped, *self._random_before(number))
        else:
            self._go_to([*self._place[:2], number, 0])
            if self._member is not None:
                self._pass_start, self._told_start = [self._place[:3], randomness.state()], False
            iterator = iter(loader)
        try:
            for batch_number, batch in enumerate(iterator, skipped + 1):
                self._go_to([*self._place[:2], number, batch_number])
                yield batch
        finally:
            self._go_to([*self._place[:2], number + 1, 0])

    def _go_to(self, place):
        """The script is there; whoever takes a place comes past where the rank has been."""
        if self._resume is not None:
            if place > self._resume and sys.exc_info()[0] is None:
                self._refuse_place(place)
            if place < self._place:
                return
        if place != self._place:
            self._place, self._values = place, []

    def _refuse_place(self, place):
        raise Error(
            "config",
            f"a process that takes the place of rank {the_world.rank} came to (loop, epoch, pass, batch) "
            f"{place}, and the others wait at {self._resume}",
            "make the same loops, over data of the same length, in every start of the script",
        )

    def _random_before(self, number):
        """The random numbers of the rank when it began the pass (None: unknown), and at its last step."""
        mine = the_generations.table.get(the_world.rank, {})
        start, now = mine.get("pass"), mine.get("random")
        is_known = start is not None and start[0] == [*self._place[:2], number]
        self._pass_start = start if is_known else [[*self._place[:2], number], now or randomness.state()]
        return (start[1] if is_known else None), now

    # ---- a step ----

    def step(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What function(*arguments, **named) returns, once all ranks are through with it.

        Where a rank is lost it is called again, with the same arguments and the state that the objects had;
        so it changes nothing else, and not the arguments. Calls that all ranks make belong in it."""
        if self._member is None:
            self.steps += 1
            return function(*arguments, **named)
        if self._given:
            return self._value_again()
        if None in self._values:
            raise Error(
                "config",
                "several steps with one batch, and what the first returned is not small data: who takes this "
                "rank's place cannot come past it",
                "return numbers, or nothing",
            )
        if self._is_in_step:
            raise Error("config", "a step within a step", "call step() for the outer function alone")
        self._is_in_step = True
        try:
            return self._make(function, arguments, named)
        finally:
            self._is_in_step = False

    def _make(self, function, arguments, named):
        """One step, from the state in which it begins."""
        if self._member.is_new:
            self._take_state()
        begun = state_of(self._objects), randomness.state()
        value = None

        def retry():
            nonlocal value
            self._hand_over(begun)
            value = function(*arguments, **named)
            for ddp in self._ddps:
                ddp.share_buffers()
            self._vote(value)

        def put_all_back():
            put_back(self._objects, begun[0])
            randomness.set_state(begun[1])

        self._follow(retry, put_all_back)
        return value

    def _follow(self, function, put_all_back=None):
        """Calls function(), again in each generation until no rank is lost in it; not where the step turns
        out to count."""
        before = self.steps
        for _ in range(_MOST_MEETINGS):
            try:
                return function()
            except Error as error:
                if not is_cut(error):
                    raise
                last = error.with_traceback(None)
            the_generations.meet_again(the_world, self._member)
            if the_generations.committed > before and not self._member.is_new and put_all_back is not None:
                self._last_random = None
                self._count(the_generations.table)
                return None
            if put_all_back is not None:
                put_all_back()
        raise last

    def _vote(self, value):
        """Returns once all ranks are through with the step. Throws: Error(config) where they are not at
        the same place of their data."""
        random = randomness.state()
        mine: dict[str, Any] = {"place": self._place, "value": _packed(value)}
        if not randomness.are_equal(random, self._last_random):
            mine["random"] = random
        if self._pass_start is not None and not self._told_start:
            mine["pass"] = self._pass_start
        said = the_generations.votes.gather(mine)
        others = [rank for rank, each in enumerate(said) if each["place"] != self._place]
        if others:
            raise Error(
                "config",
                f"rank {the_world.rank} votes at (loop, epoch, pass, batch) {self._place}, rank {others[0]} "
                f"at {said[others[0]]['place']}",
                "all ranks make the same steps: give them as many batches each",
            )
        self._last_random, self._told_start = random, True
        table = {}
        for rank, each in enumerate(said):
            old = the_generations.table.get(rank, {})
            values = old["values"] if old.get("place") == each["place"] else []
            table[rank] = {**old, **each, "values": [*values, each["value"]]}
        self._count(table)

    def _count(self, table):
        """The step counts."""
        the_generations.table = table
        self.steps += 1
        the_generations.committed = self.steps
        self._values.append(table[the_world.rank]["value"])

    # ---- who takes a place ----

    def _begin_together(self):
        """A rank that is lost in the first step finds all others with the state, however late they came."""
        if self._member.generation == 0:
            the_generations.votes.gather(None)

    def _hand_over(self, begun):
        """The giver gives the newcomers the state, in which this step begins."""
        _check_models()
        for ddp in self._ddps:
            ddp.check()
        if not the_generations.newcomers:
            return
        the_generations.votes.gather(self._place)
        gives = the_world.rank == the_generations.giver
        data = to_bytes(begun[0], False) if gives else None
        the_generations.votes.broadcast(data, the_generations.giver, False)
        the_generations.newcomers = []

    def _come_to_place(self):
        """Of a process that takes a place: where the others are, and where it begins."""
        self._place = self._resume = the_generations.votes.gather(None)[the_generations.giver]
        mine = the_generations.table.get(the_world.rank, {})
        if mine and (mine["place"] == self._place or None not in mine["values"]):
            self._place = mine["place"]
            self._given = collections.deque(mine["values"])
        self._behind = self._place
        if self._place[3] == 0 and mine.get("random") is not None:
            randomness.set_state(mine["random"])

    def _take_state(self):
        """What the objects of the others are at the start of the step that comes."""
        if self._place != self._resume:
            self._refuse_place(self._place)

        def take():
            if the_generations.votes is not generation:
                the_generations.votes.gather(None)  # the place again, which is the same
            return from_bytes(the_generations.votes.broadcast(None, the_generations.giver, True), False)

        generation = the_generations.votes
        put_back(self._objects, self._follow(take))
        self.steps = the_generations.committed
        the_generations.newcomers = []
        self._resume, self._behind = None, [0, 0, 0, 0]
        self._member.trains()

    def _value_again(self):
        value = self._given.popleft()
        self._values.append(value)
        if value is None:
            raise Error("config", "what a step returned before this rank was lost is not small data")
        if not self._given:
            randomness.set_state(the_generations.table[the_world.rank]["random"])
        return from_bytes(value, False)


def _nothing():
    """The last step: all are through."""


def _packed(value):
    """Bytes, None for what is not small data."""
    try:
        packed = to_bytes(value, False)
    except Error:
        return None
    return packed if len(packed) <= _LARGEST_VALUE else None


def _check_strategy(objects):
    """Throws: Error(config) where ranks keep what another process in their place cannot have."""
    import importlib

    options = importlib.import_module("fleetrun.distributed.fleet._fleet").the_fleet._parallel_options()
    what = "local SGD" if options.local_steps is not None else None
    what = "deep gradient compression" if options.compression_configs is not None else what
    if what is not None:
        raise Error(
            "config",
            f"recoverable() with {what}: each rank keeps a part of the training that no other has",
            "turn one of the two off",
        )


def _check_models():
    """Throws: Error(config) for models whose exchange cannot be made anew."""
    for each in the_world.followers:
        if getattr(each, "_uneven", None) is not None:
            raise Error("config", "recoverable() within join()", "give all ranks as many batches each")
        hook = getattr(each, "_hook", None)
        if hook is not None and hook.wire is None:
            raise Error(
                "config", "recoverable() with a communication hook of your own, which may keep a state"
            )
