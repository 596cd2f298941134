"""What joins a minimized program with its tables: the plan, the mode, and the client that reaches them.

An optimizer makes one for the main program; the executor and Fleet use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy

from fleetrun import _native
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Callable, Iterable, Program, Scope
from fleetrun.distributed.fleet._exchange import Exchange

if TYPE_CHECKING:
    from fleetrun.distributed.fleet._collective_program import CollectiveProgram

__all__ = [
    "attach", "is_trained", "Rate", "read", "share", "shared_with", "tables_of", "tables_of_all",
    "TrainerOptions", "Training", "training_of",
]  # fmt: skip


class Rate(NamedTuple):
    """A program's learning rate. schedule: the optimizer that says it, None for one that stays; variable:
    from which updates read it; number: what that holds where the startup program has not run, None:
    nothing."""

    schedule: Any = None
    variable: str = ""
    number: float | None = None


class Training:
    """A program's tables. `distributed`: they lie on servers, and fleet.init_worker() connects to them;
    otherwise they lie in this process and are made when first needed."""

    def __init__(
        self,
        plan: _native.TablePlan,
        mode: str,
        distributed: bool,
        programs: tuple[Program, Program],
        rate: Rate | None = None,
        clips: bool = False,
    ) -> None:
        self.plan = plan
        self.mode = mode
        self.distributed = distributed
        self.main, self.startup = programs
        # How values and gradients are exchanged (distributed/fleet/_exchange.py); None for an optimizer's own
        # minimize().
        self.exchange: Exchange | None = None
        # What averages gradients over the trainers (distributed/fleet/_collective_program.py); None where
        # nothing does.
        self.collective: CollectiveProgram | None = None
        self.rate = rate or Rate()
        # Whether gradients are clipped: each by its own program, before any mean over several is made.
        self.clips = clips
        # Whether a script made the gradients that parameters move by: from those of its own batch alone.
        self.makes_gradients = False
        # Tells passes over the same files apart where trainers share them; 0 where they do not.
        self.part = 0
        # (optimizer, loss, parameters, no_grad_set) of an optimizer's own minimize(), which can be undone.
        self.minimized: tuple[Any, ...] | None = None
        # Whether each trainer has all parameters, on servers too, and saves them as one that is alone.
        self.is_whole = False
        # Parameters of dense tables that Adam corrects by t + 1 in step t, as Paddle does for gradients of
        # rows: their steps are counted from one on.
        self.counted_ahead: set[str] = set()
        # Connects to the servers when the client is first asked for, where no script does it.
        self.dial: Callable[[], object] | None = None
        # The programs that train over the same servers, this one among them (joined.py).
        self.companions = [self]
        # Why it shares no servers with the program that was minimized after it.
        self.left_out = ""
        self._client: _native.Client | None = None
        self._steps: Any = None
        self._left: Scope | None = None  # of the last step
        self._in_rows: dict[str, Any] | None = None

    @property
    def client(self) -> Any:
        """The native client, which connects to the servers where no script did; None when there are no
        tables. Throws: as fleet.init_worker()."""
        if self._client is None and self.dial is not None and not self.left_out:
            dial, self.dial = self.dial, None
            dial()
        if self._client is None and self.distributed:
            raise self._unreached()
        if self._client is None and self.plan.tables():
            self._take_rows()
            # The threads of one process share its tables: there is nobody to exchange differences with or to
            # wait for.
            mode = self.mode if self.mode == "sync" else "async"
            self._client = _native.make_in_process(mode, self.plan.tables())
        return self._client

    def _take_rows(self):
        """Says that rows lie in tables of this program, in this process. Throws: Error(config) where another
        one that begins with the same start-up program has them: each would train rows of its own."""
        taken = _ROWS.of(self.startup)
        for entry in self.plan.entries():
            if entry.table.sparse and taken.setdefault(entry.parameter, self) is not self:
                raise Error(
                    "config",
                    f"two programs train the sparse_embedding {entry.parameter}: its rows lie in one of them",
                    "use paddle.static.nn.embedding(is_sparse=True), whose parameter both share",
                )

    def _unreached(self):
        if _shared is not None and _shared is not self:
            reason = self.left_out or "it was minimized anew, or in another mode, or after init_worker()"
            return Error(
                "config",
                f"a program whose parameters are not on the servers: {reason}",
                "minimize all programs in the same mode before init_server() and init_worker(), each once",
            )
        return Error("config", "the servers are not connected", "call fleet.init_worker() before training")

    @property
    def age(self) -> int:
        """Another number where what runs the program is to be made anew."""
        return self.collective.age if self.collective is not None else 0

    @property
    def connected(self) -> bool:
        """Whether there is a client."""
        return self._client is not None

    def connect(self, client: _native.Client | None) -> None:
        """Sets, or with None drops, the client: the scope has the values of after the last step then."""
        self.leave_pass()
        if client is None and self._left is not None:
            self._left.catch_up()
        self._client = client
        self.dial = None

    def set_rate(self, scope: _native.Scope) -> None:
        """Tells the learning rate of now to those who apply it: before a step, or a pass."""
        schedule, variable, number = self.rate
        if schedule is not None:
            number = schedule.get_lr()
            if self.plan.tables():
                self.client.set_rate(number)
        elif number is None or scope.has(variable):
            return
        scope.set_value(variable, numpy.array([number], dtype=numpy.float32))

    @property
    def counts_steps(self) -> bool:
        """Whether the schedule counts steps by itself."""
        return self.rate.schedule is not None and self.rate.schedule.counted is not None

    def tell_of_skipped(self, call: str, done: Any) -> None:
        """Warns where a pass of a trainer that was started again has left steps uncounted."""
        if done.skipped == 0 and not done.skipped_whole:
            return
        if self.main.native.has_operator("auc"):
            warn_once(
                "counters",
                f"Executor.{call}: this trainer was started again: static.auc, and fleet.metrics.auc over "
                "all trainers, leave out its batches that were done before",
            )
        if self.counts_steps:
            warn_once(
                "schedule",
                f"Executor.{call}: this trainer was started again, and the schedule of its learning rate "
                "counts steps: it has not counted those that were done before",
            )

    def count_step(self) -> None:
        """Advances a schedule that counts the steps of Executor.run() by itself."""
        if self.counts_steps:
            self.rate.schedule.counted.step()

    def counting(
        self, scope: _native.Scope, threads: int, print_line: Callable[[str], None], period: int
    ) -> tuple[Callable[[str], None], int]:
        """(what takes the lines of a pass, every how many batches): `print_line` every `period`, and where a
        schedule counts the steps by itself every line, which then says the rate of the next batch.

        Only the first thread has lines: a batch of it counts for one of each of the `threads`."""
        if not self.counts_steps:
            return print_line, period
        batches = 0

        def take(line: str) -> None:
            nonlocal batches
            batches += 1
            for _ in range(threads):
                self.count_step()
            self.set_rate(scope)
            if period > 0 and batches % period == 0:
                print_line(line)

        return take, 1

    def step_with(self, runner: Any) -> None:
        """Says whose steps Executor.run() takes now. Those of another runner before it are ended first."""
        if self.collective is not None:
            self.collective.step_with(runner)
        elif self._steps is not runner:
            self.leave_pass()
            self._steps = runner

    def leave_pass(self) -> None:
        """Ends the pass that Executor.run() began, with this program or one that shares its servers, so that
        other trainers do not wait for its next step."""
        for each in self.companions:
            steps, each._steps = each._steps, None
            if steps is not None:
                steps.end_pass()

    def pull_dense(self, scope: _native.Scope) -> None:
        """Puts the dense tables' values into the native scope, where fetches and saves read them."""
        import numpy

        for parameter, table, width in self.dense_entries():
            shape = self.main.native.variable(parameter).shape
            scope.set_value(parameter, numpy.asarray(self.client.pull_dense(table, width)).reshape(shape))

    def leave_dense(self, scope: Scope) -> None:
        """After a step: the dense values on the servers are newer than those in the scope, which gets them
        once somebody looks at it there."""
        if self.distributed and self.collective is None:
            self._left = scope
            scope.lie_elsewhere(
                self._pull_if_connected, lambda: {name for name, _, _ in self.dense_entries()}
            )

    def _pull_if_connected(self, scope):
        if self.connected:
            self.pull_dense(scope)

    def dense_entries(self) -> list[tuple[str, int, int]]:
        """(parameter, table id, width) of every dense table."""
        return [
            (entry.parameter, entry.table.id, entry.table.width)
            for entry in self.plan.entries()
            if not entry.table.sparse
        ]

    def rows_of(self, names: Iterable[str]) -> dict[str, Any]:
        """{parameter: all its rows} of those of `names` whose rows lie in tables; a row that nobody looked
        up has its first values, and is not made. Throws: Error(config) for more than 1 GiB."""
        if self._in_rows is None:
            self._in_rows = {
                entry.parameter: entry.table for entry in self.plan.entries() if entry.table.sparse
            }
        found = {}
        for name in self._in_rows.keys() & set(names):
            table, (count, width) = self._in_rows[name], self.main.native.variable(name).shape
            if count * width > 2**28:
                raise Error(
                    "config",
                    f"'{name}' is fetched: its {count} rows lie in tables, more than 1 GiB",
                    "save it by fleet.save_persistables, or fetch what embeddings of ids give",
                )
            asked = (table.id, numpy.arange(count, dtype=numpy.uint64), _native.pulled_width(table))
            rows = numpy.asarray(_native.ps_pull_many(self.client, [asked], False)[0])
            found[name] = numpy.ascontiguousarray(rows[:, rows.shape[1] - width :])
        return found


# A clone trains as its origin does, but for one for test.
_TRAININGS: SideTable[Training | None] = SideTable(
    "training", lambda: None, lambda kept: kept, for_test=False
)
# The tables that came with a loaded program.
_READ: SideTable[Training | None] = SideTable("read_tables", lambda: None, lambda kept: kept)
# {parameter: who has its rows} of the programs that begin with one start-up program.
_ROWS: SideTable[dict[str, Training]] = SideTable("holders_of_rows", dict)
_shared: Training | None = None


def attach(program: Program, training: Training) -> None:
    """Says that minimize() was called on this very program."""
    _TRAININGS.put(program, training)
    program._fleet_opt = TrainerOptions()


def share(training: Training | None) -> None:
    """Sets the training whose tables other programs of the process look rows up in: Fleet's."""
    global _shared
    _shared = training


def read(program: Program, training: Training) -> None:
    """Says that this program, which nobody trains, looks its rows up in `training`'s tables."""
    _READ.put(program, training)


def is_trained(program: Program) -> bool:
    """Whether minimize() was called on this program, or on the one whose copy it is."""
    return _TRAININGS.of(program) is not None


def training_of(program: Program) -> Training | None:
    """The training of the program or of the one that it was cloned from; None for a program that nobody
    trains."""
    return _TRAININGS.of(program) or (training_of(program.origin) if program.origin is not None else None)


def tables_of(program: Program) -> Training | None:
    """training_of(), or for another program that looks rows up what came with it, or the shared training."""
    return (
        training_of(program)
        or _READ.of(program)
        or (_shared_by(program) if program.native.has_operator("sparse_embedding") else None)
    )


def shared_with(program: Program) -> Training | None:
    """The training whose servers have the rows of a program that is neither trained itself nor a copy of one
    that is, and brought no tables along; None where there is none."""
    own = training_of(program) or _READ.of(program)
    return _shared_by(program) if own is None and _shared is not None and _shared.distributed else None


def _shared_by(program):
    """Of the programs that share servers the one that has most of the tables that this one looks up."""
    if _shared is None or len(_shared.companions) == 1:
        return _shared
    asked = {op.inputs[0] for op in program.ops if op.type == "embedding"}
    asked |= {op.attributes["parameter"] for op in program.ops if op.type == "sparse_embedding"}

    def has(training):
        return len(asked & {entry.parameter for entry in training.plan.entries() if entry.table.sparse})

    return max(reversed(_shared.companions), key=has)


def tables_of_all(training: Training) -> list[_native.TableConfig]:
    """The tables that the training's servers have: of all programs that share them."""
    tables = {table.id: table for each in training.companions for table in each.plan.tables()}
    return [tables[number] for number in sorted(tables)]


class TrainerOptions(dict):
    """What Paddle's trainers are told through Program._fleet_opt: kept, and read by nothing here, which is
    said once of each key that is given a value."""

    def __setitem__(self, key: str, value: Any) -> None:
        # Statistics are the program's own variables here, which every thread adds to.
        if value and key != "stat_var_names":
            warn_once(
                f"_fleet_opt {key}",
                f"Program._fleet_opt[{key!r}] = {value!r} has no effect; fetch_list shows values",
            )
        super().__setitem__(key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value
