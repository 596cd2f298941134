"""The ranks of this job and their groups, for the calls of fleetrun.distributed.

A process joins the job with its first collective call, or with init_parallel_env(). Where the job is, the
launcher's environment says (PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, …; torchrun's variables too); without one
the process is alone.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fleetrun._ends import at_end
from fleetrun._error import Error
from fleetrun.distributed._alone import warn_where_alone
from fleetrun.distributed._channel import Channel
from fleetrun.distributed._membership import the_member, wait_for_place
from fleetrun.distributed._torchrun import meeting_place

if TYPE_CHECKING:
    from fleetrun import _native
    from fleetrun.distributed._mailbox import Mailbox
    from fleetrun.distributed._membership import Member

_PATIENCE = 5  # seconds for threads that were told to end


class Group:
    """Ranks that make collective calls together. rank: this process's place in it, -1 when it is not one of
    them."""

    def __init__(
        self, world: TheWorld, number: int | str, ranks: Iterable[int], options: dict[str, Any] | None = None
    ) -> None:
        self._world = world
        self._options = options or {}
        self._communicator: Any = None
        self._channels: dict[tuple[int, int], Channel] = {}
        self._mailbox: Mailbox | None = None
        self._beside: dict[str, Any] = {}
        self._purposes = itertools.count()
        self.id = number
        self.ranks = list(ranks)
        self.nranks = len(self.ranks)
        self.rank = self.ranks.index(world.rank) if world.rank in self.ranks else -1

    @property
    def name(self) -> str:
        """What messages call it."""
        return "world" if self.id == 0 else f"group {self.id}"

    @property
    def world_size(self) -> int:
        """Its number of ranks; -1 on a process that is not one of them."""
        return self.nranks if self.is_member() else -1

    @property
    def backend(self) -> str:
        """Which way tensors go: Paddle's word for the memory of hosts."""
        return "GLOO"

    @property
    def call_within(self) -> float | None:
        """Seconds that a call may take, None: what the environment says."""
        return self._options.get("call_within")

    def set_call_within(self, seconds: float) -> None:
        """What calls and messages to come may take; that of incoming messages is their receives' own."""
        self._options = {**self._options, "call_within": seconds}
        if self._mailbox is not None:
            self._mailbox.within = seconds
        for communicator in self._own_communicators():
            communicator.set_call_within(seconds)

    def _own_communicators(self):
        sending = [
            each.communicator for (source, _), each in self._channels.items() if source == self._world.rank
        ]
        return [each for each in (self._communicator, *self._beside.values(), *sending) if each is not None]

    def abort(self, why: str) -> None:
        """The calls under way and all later ones fail, on the ranks that can be reached too."""
        for communicator in (self._communicator, *self._beside.values()):
            if communicator is not None:
                communicator.abort(why)
        self._world.fail(f"group/{self.id}/", why)  # the channels, also those that ranks have not met for

    def is_member(self) -> bool:
        """Whether this process is one of its ranks."""
        return self.rank >= 0

    def get_group_rank(self, rank: int) -> int:
        """The place of the job's `rank` in the group, -1 when it is not in it."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    @property
    def communicator(self) -> _native.Communicator:
        """The native communicator, made by the first call. Throws: Error(config) on a process that is not a
        member."""
        return self.connect()

    def connect(self, **options: Any) -> _native.Communicator:
        """communicator, with options of its own where this is the first call."""
        if self._communicator is None:
            if not self.is_member():
                raise Error(
                    "config",
                    f"rank {self._world.rank} makes a call of {self.name}, which has the ranks {self.ranks}",
                    "ask group.is_member() first",
                )
            self._world.check_fed(self)
            self._communicator = self._world.make_communicator(
                f"group/{self.id}", self.ranks, **{**self._options, **options}
            )
        return self._communicator

    def new_communicators(
        self, purpose: str, count: int, options: dict[str, Any]
    ) -> list[_native.Communicator]:
        """`count` communicators of its ranks. All of them ask for the same ones in the same order."""
        return [
            self._world.make_communicator(
                f"{purpose}/{self.id}/{next(self._purposes)}", self.ranks, **options
            )
            for _ in range(count)
        ]

    def beside(self, purpose: str) -> _native.Communicator:
        """One more communicator, whose calls do not wait for others of the group; made by the first call."""
        if purpose not in self._beside:
            self._world.check_fed(self)
            (self._beside[purpose],) = self.new_communicators(purpose, 1, self._options)
        return self._beside[purpose]

    def channel(self, source: int, target: int, within: float | None = None) -> Channel:
        """The messages from one of the job's ranks to another; this process is one of them. within: seconds
        to meet and for a call, in the place of the group's."""
        if (source, target) not in self._channels:
            name = f"group/{self.id}/from {source} to {target}"
            options = (
                self._options
                if within is None
                else {**self._options, "call_within": within, "meet_within": within}
            )
            self._channels[source, target] = Channel(
                lambda: self._world.make_communicator(name, [source, target], **options)
            )
        return self._channels[source, target]

    @property
    def mailbox(self) -> Mailbox:
        """Messages with tags; the two ends of a message use it both, or neither."""
        if self._mailbox is None:
            from fleetrun.distributed._mailbox import Mailbox

            self._world.check_fed(self)
            self._mailbox = Mailbox(self, self._world.rank)
        return self._mailbox

    def close(self) -> None:
        """Lets the communicator and the channels go."""
        self._communicator = None
        self._beside = {}
        self._purposes = itertools.count()
        if self._mailbox is not None:
            self._mailbox.close()
            self._mailbox = None
        self._channels = {}

    def __repr__(self) -> str:
        return f"Group(id={self.id}, rank={self.rank}, ranks={self.ranks})"


class TheWorld:
    """One per process (`the_world`)."""

    def __init__(self) -> None:
        self._native: Any = None
        self._meetings: Any = None  # what ends those of the generation
        self._meeting: set[threading.Thread] = set()
        self._numbers = itertools.count(1)
        # Who makes calls over one has it: a model that is dropped leaves no threads and descriptors.
        self._communicators: list[weakref.ref[Any]] = []
        self.groups: dict[Any, Any] = {}
        # Who has something to drop with a generation (fleetrun.distributed._membership): drop().
        self.followers: weakref.WeakSet[Any] = weakref.WeakSet()
        # Called before a group of all ranks is made.
        self.before_groups: Any = None
        self._leaves_at_end = False

    @property
    def is_joined(self) -> bool:
        """Whether this process has met the others."""
        return self._native is not None

    @property
    def is_unused(self) -> bool:
        """Whether nothing would miss the ranks: there is neither a model nor a group but that of all, and
        nothing that has a communicator."""
        own = [group._communicator for group in self.groups.values()]
        others = [each for each in self._living() if not any(each is one for one in own)]
        return not self.followers and list(self.groups) in ([], [0]) and not others

    def join(self, place: dict[str, str] | None = None) -> TheWorld:
        """Meets the other ranks of the job; once. place: the environment that says where, in the place of
        the process's."""
        if self._native is None:
            from fleetrun import _native

            wait_for_place()
            member = the_member()
            if member is None:
                if place is None:
                    warn_where_alone()
                self._meetings = _native.Interruption()
                self._native = _native.World.join(place or meeting_place(), self._meetings)
            else:
                from fleetrun.distributed._generations import the_generations

                member.on_lost = self.abort
                the_generations.meet(self, member)
            self.groups = {0: Group(self, 0, range(self.size))}
            if not self._leaves_at_end:
                self._leaves_at_end = True
                at_end(self.leave, self._connections)
        return self

    def enter(self, environment: dict[str, str] | None, member: Member) -> None:
        """Meets the ranks of a generation, after drop()."""
        from fleetrun import _native

        self._meetings = _native.Interruption()
        if member.has_lost:  # before there was something to end
            self.abort("a rank of the job died before all had met")
        self._native = _native.World.join(environment, self._meetings)

    def drop(self) -> None:
        """Lets go of the generation, and of all that belongs to it. Groups are made again by their next
        call."""
        self.abort("this rank has left the generation")
        for follower in list(self.followers):
            follower.drop()
        for group in self.groups.values():
            group.close()
        self._communicators = []
        self._native = None

    def abort(self, why: str) -> None:
        """The calls and meetings under way fail, calls elsewhere too. From any thread."""
        if self._meetings is not None:
            self._meetings.end(why)
        for communicator in self._living():
            communicator.abort(why)

    def fail(self, prefix: str, why: str) -> None:
        """The groups of which the names begin so fail on all ranks that can be reached."""
        if self._native is not None:
            self._native.fail(prefix, why)

    @property
    def is_new(self) -> bool:
        """Whether this process has taken a place, and has not got the state of the training yet."""
        member = the_member()
        return member is not None and member.is_new

    def check_fed(self, group: Group) -> None:
        """Throws: Error(config) while the other ranks do not make the calls that this one comes past."""
        if self.is_new:
            raise Error(
                "config",
                f"a call of {group.name}, made by a process that takes the place of rank {self.rank}: the "
                "others have made theirs long ago",
                "make calls of all ranks in Recoverable.step(), or before none but fleet.init and "
                "fleet.distributed_model",
            )

    @property
    def rank(self) -> int:
        """This process's rank in the job."""
        return self.join()._native.rank

    @property
    def size(self) -> int:
        """The number of ranks in the job."""
        return self.join()._native.size

    @property
    def hosts(self) -> list[str]:
        """A key for every rank, equal for those of one host."""
        return self.join()._native.hosts

    @property
    def default_group(self) -> Group:
        """All ranks."""
        return self.join().groups[0]

    def make_communicator(self, name: str, ranks: Iterable[int], **options: Any) -> _native.Communicator:
        """A native communicator of `ranks`; see collective/groups/world.h."""
        ranks = list(ranks)
        if self.before_groups is not None and len(ranks) in (0, self.size):
            self.before_groups()
        native, thread = self.join()._native, threading.current_thread()
        self._meeting.add(thread)
        try:
            communicator = native.make_communicator(name, ranks, **options)
        finally:
            self._meeting.discard(thread)
        living = [each for each in self._communicators if each() is not None]
        self._communicators = [*living, weakref.ref(communicator)]
        return communicator

    def _living(self):
        return [each for each in [made() for made in self._communicators] if each is not None]

    def new_communicators(
        self, purpose: str, count: int, options: dict[str, Any]
    ) -> list[_native.Communicator]:
        """`count` communicators of all ranks; see Group.new_communicators."""
        return self.default_group.new_communicators(purpose, count, options)

    def new_group(self, ranks: Iterable[int] | None, options: dict[str, Any]) -> Group:
        """A group of `ranks`, None: all. Every rank of the job makes the same groups in the same order."""
        everybody = range(self.size)
        ranks = sorted(everybody if ranks is None else ranks)
        for rank in ranks:
            if rank not in everybody:
                raise Error(
                    "config", f"new_group with rank {rank}: the job has the ranks 0 to {self.size - 1}"
                )
        if len(set(ranks)) != len(ranks):
            raise Error("config", f"new_group({ranks}): a rank is there twice")
        group = Group(self, next(self._numbers), ranks, options)
        self.groups[group.id] = group
        return group

    def leave(self) -> None:
        """Lets all communicators go and leaves the job."""
        if self._meetings is not None:  # of channels that the other rank does not use
            self._meetings.end("this rank has left the job")
        for thread in self._meeting - {threading.current_thread()}:
            thread.join(_PATIENCE)  # one that wakes up after the interpreter's end would be a crash
        for group in self.groups.values():
            group.close()
        self.groups = {}
        self._communicators = []
        self._native = None

    def _connections(self):
        return [] if self._native is None else [self._native, *self._living()]


the_world = TheWorld()
