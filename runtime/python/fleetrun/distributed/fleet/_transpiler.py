"""The Fleets of Paddle 1.x: today's with some more names. That of document 000,
paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.fleet, has an init_worker that may come
before the start-up program has run."""

from fleetrun import framework
from fleetrun._types import Any, Program, Scope, Sequence
from fleetrun.distributed.fleet._fleet import the_fleet
from fleetrun.distributed.fleet._transpiler_strategy import AsyncStrategy


class OlderFleet:
    """Everything else is fleetrun.distributed.fleet's."""

    @property
    def main_program(self) -> Program:
        """The program that is trained."""
        training = the_fleet.training
        return training.main if training is not None else framework.default_main_program()

    @property
    def startup_program(self) -> Program:
        """The program that gives parameters their first values."""
        training = the_fleet.training
        return training.startup if training is not None else framework.default_startup_program()

    def split_files(self, files: list[str]) -> list[str]:
        """This trainer's part of the files. Throws: TypeError when `files` is not a list."""
        return the_fleet.util.get_file_shard(files)

    def all_reduce_worker(self, input: Any, output: Any) -> None:
        """Writes the sum of `input` over all trainers into the array `output`."""
        output[...] = the_fleet.all_reduce(input)

    def is_xpu(self) -> bool:
        """False: there are no such processes."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(the_fleet, name)


class TranspilerFleet(OlderFleet):
    """Training on servers."""

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Today's, but asynchronous where no strategy is given."""
        return the_fleet.distributed_optimizer(optimizer, strategy or AsyncStrategy())

    def init_worker(self, scopes: Sequence[Scope] | None = None) -> None:
        """As today's, and runs the start-up program first where it has not run: scripts run it after this
        call."""
        from fleetrun.static.executor import Executor

        training = the_fleet.training
        scope = scopes[0] if scopes else framework.global_scope()
        if training is not None and not all(
            scope.native.has(name) for name, _, _ in training.dense_entries()
        ):
            Executor().run(training.startup, scope=scope)
        the_fleet.init_worker(scopes)


fleet = TranspilerFleet()
