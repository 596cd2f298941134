"""fluid.DistributeTranspiler: scripts of Paddle 1.x that minimize() as if alone, and then ask for the program
of a trainer and for that of a server. Source: Paddle 1.8.5.

The one that trains is minimized anew for servers. A server's start-up program makes its tables when it is
run, and its program serves until all trainers have left. A trainer connects in its first step.
"""

from __future__ import annotations

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Program
from fleetrun.distributed.fleet._collective_program import CollectiveProgram
from fleetrun.distributed.fleet._configs import DistributeTranspilerConfig
from fleetrun.distributed.fleet._fleet import the_fleet
from fleetrun.distributed.fleet._roles import Role, UserDefinedRoleMaker
from fleetrun.distributed.fleet._strategy import DistributedStrategy
from fleetrun.distributed.fleet._transpiler_strategy import strategy_of
from fleetrun.static import training
from fleetrun.static._runs import RUNS
from fleetrun.static.undone import rebuild, undo_minimize

__all__ = ["DistributeTranspiler"]


class DistributeTranspiler:
    """transpile(), then get_trainer_program() on a trainer, get_pserver_programs() on a server."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = config or DistributeTranspilerConfig()
        self._main: Any = None
        self._endpoints: list[str] = []
        self._trainers = 0

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: int | str = 1,
        sync_mode: bool = True,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Takes the parameters of `program`, which minimize() was called on, to the servers; or, in the
        config's mode "nccl2" or "collective", lets trainers average gradients: trainers is their endpoints
        then, with commas.

        Throws: Error(config) for a program that no optimizer's minimize() was called on.
        """
        alone = self.config.mode != "pserver"
        if isinstance(trainers, str) != alone:
            raise Error(
                "config",
                f"fluid.DistributeTranspiler: mode {self.config.mode!r} with trainers={trainers!r}",
                "in mode 'pserver' it is their number, in 'nccl2' and 'collective' their endpoints",
            )
        self._main = program or framework.default_main_program()
        now = training.training_of(self._main)
        if now is None or (now.minimized is None and not alone):
            raise Error(
                "config",
                "fluid.DistributeTranspiler.transpile: no optimizer has minimized the program",
                "call it after optimizer.minimize(loss), once",
            )
        if alone:
            self._meet(int(trainer_id), str(trainers).split(","), now)
            return
        minimized: Any = now.minimized
        optimizer, loss, parameters, no_grad_set = minimized
        self._endpoints, self._trainers = pservers.split(","), int(trainers)
        undo_minimize(self._main, now.startup)
        ahead: set[str] = set()
        if not optimizer.config.get("lazy_rows"):
            ahead = _given_rows(self._main) if optimizer.kind == "adam" else ahead
            rebuild(self._main, (), _with_all_rows)
        optimizer.begin_again(self._main)
        self.config.sync_mode = bool(sync_mode)
        self._take_role(int(trainer_id), Role.WORKER)
        the_fleet.distributed_optimizer(optimizer, strategy_of(self.config))
        the_fleet.minimize(loss, now.startup, parameters, no_grad_set)
        made = the_fleet.training
        made.is_whole = not any(table.sparse for table in made.plan.tables())
        made.counted_ahead = ahead

    def _meet(self, rank: int, endpoints: list[str], now: training.Training) -> None:
        """Trainers without servers: they begin with rank 0's values, and step by means of gradients."""
        maker = UserDefinedRoleMaker(is_collective=True, current_id=rank, worker_endpoints=endpoints)
        the_fleet.init(maker, is_collective=True)
        if len(endpoints) == 1:
            return
        loss = now.minimized[1].name if now.minimized else ""  # adaptive local SGD alone reads it
        now.collective = CollectiveProgram(_exchange(self.config), now.startup, loss)
        scope = framework.global_scope().native
        if all(scope.has(one.name) for one in self._main.all_parameters()):
            now.collective.start_alike(scope)

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program that was given to transpile()."""
        self._expect_transpiled("get_trainer_program")
        return self._main

    def get_pserver_program(self, endpoint: str) -> Program:
        """A program which, when it is run, serves until all trainers have left."""
        self._serve_at("get_pserver_program", endpoint)
        return _doing(the_fleet.run_server)

    def get_startup_program(
        self,
        endpoint: str,
        pserver_program: Program | None = None,
        startup_program: Program | None = None,
    ) -> Program:
        """A program which, when it is run, makes the server's tables."""
        self._serve_at("get_startup_program", endpoint)
        return _doing(the_fleet.init_server)

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """(get_pserver_program(), get_startup_program())."""
        return self.get_pserver_program(endpoint), self.get_startup_program(endpoint)

    def _expect_transpiled(self, call: str) -> None:
        if self._main is None:
            raise Error(
                "config", f"fluid.DistributeTranspiler.{call} before transpile()", "call transpile() first"
            )

    def _serve_at(self, call: str, endpoint: str) -> None:
        self._expect_transpiled(call)
        if endpoint not in self._endpoints:
            raise Error(
                "config",
                f"fluid.DistributeTranspiler.{call}({endpoint!r}): transpile() was given pservers="
                f"{','.join(self._endpoints)!r}",
                "a server's endpoint is one of these",
            )
        self._take_role(self._endpoints.index(endpoint), Role.SERVER)

    def _take_role(self, rank: int, role: int) -> None:
        maker = UserDefinedRoleMaker(
            current_id=rank, role=role, worker_num=self._trainers, server_endpoints=self._endpoints
        )
        the_fleet.init(maker)


def _exchange(config):
    """How trainers without servers exchange gradients, as today's strategy says it."""
    made = DistributedStrategy()
    made.nccl_comm_num = config.nccl_comm_num
    made.use_hierarchical_allreduce = config.use_hierarchical_allreduce
    made.hierarchical_allreduce_inter_nranks = max(config.hierarchical_allreduce_inter_nranks, 1)
    made.localsgd = config.collective_mode == "local_sgd"
    return made


def _with_all_rows(op: Any) -> tuple[Any, ...]:
    """A lookup whose parameter every trainer has whole, as here in Paddle, which scripts save and infer with
    like any other."""
    rows = {"is_sparse": False} if op.type == "embedding" else {}
    return op.type, op.inputs, {**op.attributes, **rows}


def _given_rows(program):
    """Parameters whose gradients are of rows; not those that decay, of which minimize() has made all rows."""
    rows = [op.type == "embedding" and op.attributes.get("is_sparse", False) for op in program.ops]
    sparse = {op.inputs[0] for op, is_given in zip(program.ops, rows) if is_given}
    return sparse - {name for op, is_given in zip(program.ops, rows) if not is_given for name in op.inputs}


class _ServerProgram(framework.Program):
    """A server's variables are in its tables."""

    def list_vars(self) -> Any:
        """Refused, so that nothing is saved or loaded in vain. Throws: Error(config)."""
        raise Error(
            "config",
            "a server's program of fluid.DistributeTranspiler has no variables",
            "load and save on trainer 0: servers begin with its values",
        )


def _doing(work: Callable[[], None]) -> Program:
    """A program that does this when it is run."""
    program = _ServerProgram()

    def after(_: Any) -> None:
        work()

    RUNS.of(program).after = after
    return program
