"""Fleet: this process's part in a job, as trainer, as server, or alone.

The flow of every role: init, distributed_optimizer(...).minimize, then a server init_server and run_server, a
trainer exe.run(start-up program), init_worker, training, stop_worker. Without servers the tables lie in this
process and the same script trains alone. Source: documents 002 and 003.

In a job whose hosts come and go in place (fleetrun.elastic) servers stay, trainers keep their ranks, and a
rank may be missing for a while: nobody waits for it. A trainer that comes late takes the parameters as they
are, joins the pass that is under way, and the barriers after it. Files are split among those who are there by
util.get_file_shard: call it anew for every pass over the data.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleetrun import elastic, framework
from fleetrun._arguments import warn_of_save, warn_once
from fleetrun._ends import at_end
from fleetrun._error import Error
from fleetrun.distributed.fleet._minimizing import Minimizing
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker, RoleMakerBase
from fleetrun.distributed.fleet._saving import Saving
from fleetrun.distributed.fleet._strategy import DistributedStrategy
from fleetrun.distributed.fleet._util import UtilBase

if TYPE_CHECKING:
    import numpy

    from fleetrun._scope import Scope
    from fleetrun.amp import GradScaler
    from fleetrun.distributed.parallel.model import DataParallel


class Fleet(Minimizing, Saving):
    """One per process (`the_fleet`); its calls are the functions of fleetrun.distributed.fleet."""

    def __init__(self) -> None:
        self.util = UtilBase(self)
        self.training: Any = None
        self._role: Any = None
        self._strategy: Any = None
        self._options: Any = None
        self._optimizer: Any = None
        self._asked: Any = None
        self._server: Any = None
        self._has_served = False
        self._minimized = []

    # ---- who this process is ----

    def init(
        self,
        role_maker: RoleMakerBase | None = None,
        is_collective: bool = False,
        strategy: Any = None,
        log_level: str = "INFO",
    ) -> None:
        """Finds out which role this process has: from `role_maker`, else from the launcher's environment.

        Without PADDLE_PSERVERS_IP_PORT_LIST the process is a job of one trainer. log_level: accepted.
        is_collective=True meets the other trainers.
        Throws: Error(config) naming a missing or contradictory variable, Error(timeout) naming trainers that
        did not come.
        """
        if role_maker is not None and not isinstance(role_maker, RoleMakerBase):
            raise Error(
                "config",
                f"fleet.init: {role_maker!r} is not a role maker",
                "use fleet.PaddleCloudRoleMaker() or fleet.UserDefinedRoleMaker(...)",
            )
        self._role = role_maker or PaddleCloudRoleMaker(is_collective=is_collective)
        self._role.check()
        self._role.util = self.util
        # Where processes find the user's secret; a script may start them with an environment of its own.
        os.environ.setdefault("HOME", os.path.expanduser("~"))
        self._strategy = strategy or DistributedStrategy()
        self._options = None
        self._minimized = []
        if self._is_collective:
            self._meet()

    @property
    def _is_connected(self):
        """Whether trainers reach each other by the servers: before, and without servers, they do it
        themselves."""
        return self.training is not None and self.training.connected

    def _meet(self):
        from fleetrun.distributed._world import the_world

        self._role.before_meeting()
        if (the_world.rank, the_world.size) != (self._role.rank, self._role.trainers):
            raise Error(
                "config",
                f"the role maker says trainer {self._role.rank} of {self._role.trainers}, the environment "
                f"rank {the_world.rank} of {the_world.size}",
                "start the script with fleetrun and take fleet.PaddleCloudRoleMaker(), or say "
                "worker_endpoints to UserDefinedRoleMaker",
            )

    @property
    def _role_maker(self):
        return self._need_role("_role_maker")

    def _need_role(self, call):
        if self._role is None:
            raise Error("config", f"fleet.{call} before fleet.init", "call fleet.init(...) first")
        return self._role

    def is_worker(self) -> bool:
        """Whether this process is a trainer."""
        return self._need_role("is_worker").is_worker()

    def is_server(self, model_dir: str | None = None) -> bool:
        """Whether this process is a server."""
        return self._need_role("is_server").is_server()

    def is_first_worker(self) -> bool:
        """Whether this process is trainer 0; where hosts come and go, the first trainer that is there."""
        return self.is_worker() and self.worker_position()[0] == 0

    def worker_index(self) -> int:
        """The trainer's rank; on a server its own, as in Paddle."""
        return self._need_role("worker_index").rank

    def worker_num(self) -> int:
        """The number of trainers; where hosts come and go, one more than the highest rank there is."""
        role = self._need_role("worker_num")
        world = self._world_in_place()
        return max([trainer.rank for trainer in world.trainers] + [role.rank]) + 1 if world else role.trainers

    def local_rank(self) -> int:
        """The trainer's rank on its host."""
        self._need_role("local_rank")
        return int(os.environ.get("PADDLE_LOCAL_RANK") or 0)

    def node_num(self) -> int:
        """The number of hosts that trainers are on."""
        endpoints = self._need_role("node_num").worker_endpoints
        return len({endpoint.rpartition(":")[0] for endpoint in endpoints}) or 1

    def is_coordinator(self) -> bool:
        """False: there is no such role."""
        return False

    def _world_in_place(self):
        world = elastic.world() if self._role is not None and self._role.distributed else None
        return world if world is not None and world.in_place else None

    def worker_position(self) -> tuple[int, int]:
        """(position, count): this trainer among those that are there now, for splitting work; (rank, number)
        in a job whose hosts stay."""
        role = self._need_role("worker_position")
        world = self._world_in_place()
        position, count = world.position(role.rank) if world else (role.rank, role.trainers)
        return (0, max(count, 1)) if position is None else (position, count)

    def server_index(self) -> int:
        """The server's rank; on a trainer its own, as in Paddle."""
        return self._need_role("server_index").rank

    def server_num(self) -> int:
        """The number of servers; 0 for a process that trains alone."""
        return len(self._need_role("server_num").server_endpoints)

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """The trainers' endpoints, a list or with to_string one text with commas; empty when the launcher
        names none."""
        return _endpoints(self._need_role("worker_endpoints").worker_endpoints, to_string)

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """The servers' endpoints, a list or with to_string one text with commas."""
        return _endpoints(self._need_role("server_endpoints").server_endpoints, to_string)

    def _need(self, server, call):
        if self._need_role(call).is_server() != server:
            here, there = ("a trainer", "a server") if server else ("a server", "a trainer")
            raise Error("config", f"fleet.{call} on {here}: it is for {there}", "ask fleet.is_server() first")

    def _has_no_servers(self, call):
        """Whether the job has none, for whom this call would be: it does nothing then, which is said once."""
        alone = not self._need_role(call).server_endpoints
        if alone:
            warn_once(f"fleet.{call}", f"fleet.{call}() has no effect: the job has no servers")
        return alone

    # ---- what is trained ----

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """An optimizer whose minimize() puts the parameters where the job has them. Returns this Fleet.

        A torch optimizer is itself returned; it steps as the strategy says, and has minimize(loss) and
        observe(loss) too (distributed/parallel/optimizer.py).
        """
        self._need_role("distributed_optimizer")
        if strategy is not None:
            self._strategy, self._options = strategy, None
        if _is_of_torch(optimizer, "Optimizer"):
            from fleetrun.distributed.parallel import distribute_optimizer

            return distribute_optimizer(optimizer, self._parallel_options())
        self._optimizer = self._asked = optimizer
        return self

    def distributed_model(self, model: Any, **arguments: Any) -> DataParallel:
        """A torch module whose gradients are the means over all trainers: distributed/parallel/model.py.
        arguments: those of torch.nn.parallel.DistributedDataParallel.

        Throws: Error(config) for what is not a torch.nn.Module, and where the trainers' modules differ.
        """
        self._need_role("distributed_model")
        if not _is_of_torch(model, "Module"):
            raise Error(
                "config",
                f"fleet.distributed_model({type(model).__name__}): it is not a torch.nn.Module",
                "a program's parameters are distributed by fleet.distributed_optimizer(...).minimize(loss)",
            )
        from fleetrun.distributed.parallel import DataParallel

        return DataParallel(model, **arguments)

    def distributed_scaler(self, scaler: Any) -> GradScaler:
        """The scaler itself: on a fleetrun.amp.GradScaler all ranks agree anyway."""
        from fleetrun.amp import GradScaler

        if not isinstance(scaler, GradScaler):
            raise Error(
                "config", f"fleet.distributed_scaler({type(scaler).__name__})", "use fleetrun.amp.GradScaler"
            )
        return scaler

    def _final_strategy(self) -> Any:
        """The strategy that counts: the last one that was given."""
        self._need_role("_final_strategy")
        return self._strategy

    def _parallel_options(self):
        """What the strategy says of modules and their optimizers; one object for both."""
        if self._options is None:
            from fleetrun.distributed.parallel.options import ParallelOptions

            self._options = ParallelOptions.of(self._strategy)
        return self._options

    def __getattr__(self, name: str) -> Any:
        # The distributed optimizer is also the one that it was made from, and that the strategy made of it.
        optimizer = self.__dict__.get("_asked")
        if optimizer is not None and not name.startswith("_") and hasattr(optimizer, name):
            return getattr(optimizer, name)
        from fleetrun._lazy import MissingName

        raise MissingName("paddle.distributed.fleet", name, lambda: dir(type(self)))

    def _need_training(self, call):
        training = self.training or self._trained_without_fleet()
        if training is None:
            raise Error(
                "config",
                f"fleet.{call} before an optimizer's minimize: the tables are not known yet",
                "call fleet.distributed_optimizer(...).minimize(loss) first, in every role",
            )
        return training

    def _trained_without_fleet(self):
        """In a process alone, what an optimizer's own minimize() trains: scripts leave Fleet's optimizer out
        there, and still save with Fleet."""
        from fleetrun.static.training import training_of

        if self._role.distributed or self._role.trainers > 1:
            return None
        return training_of(framework.default_main_program())

    # ---- servers ----

    def init_server(
        self,
        dirname: str | os.PathLike[str] | None = None,
        var_names: Sequence[str] | None = None,
        mode: int | str = 0,
    ) -> None:
        """Makes this server's tables and binds its endpoint; with `dirname` it starts from what
        save_persistables wrote, or save_inference_model, or from what a process alone saved, a file for each
        variable (fluid.io.save_persistables). var_names: the rows of these tables alone. mode: accepted, a
        save says in which it was made.

        Throws: Error(network) when the port is taken, Error(data) for a directory that does not hold the
        tables, Error(config) for a name that is not one of a table.
        """
        from fleetrun import _native
        from fleetrun._worlds import addresses_of
        from fleetrun.static.alone_files import as_saved
        from fleetrun.static.training import tables_of_all

        if self._has_no_servers("init_server"):
            return
        self._need(server=True, call="init_server")
        training = self._need_training("init_server")
        # Being asked to stop is a server's normal end, from before it says that it runs until the process is
        # gone.
        signal.signal(signal.SIGTERM, self._end_server)
        atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)
        self._server = _native.RpcServer(
            rank=self._role.rank,
            servers=len(self._role.server_endpoints),
            trainers=self._role.trainers,
            mode=training.mode,
            tables=tables_of_all(training),
            endpoint=self._role.server_endpoints[self._role.rank],
            epoch=elastic.epoch(),
            listens=False,  # whoever reads that it runs may ask it to stop: it is known by then
            addresses=addresses_of(self._role.server_endpoints),
        )
        # Scripts give "" for none, as Paddle takes it. Nobody is to train on what it has before.
        if dirname and var_names is None:
            entries = [entry for each in training.companions for entry in each.plan.entries()]
            with as_saved(str(dirname), entries) as saved:
                warn_of_save(self._server.load(saved))
        elif dirname and var_names:
            warn_of_save(self._server.load(str(dirname), only=[str(name) for name in var_names]))
        self._server.listen()
        elastic.on_world_change(self._tell_server, thread=True)
        self._tell_server(elastic.world())

    def _tell_server(self, world):
        from fleetrun._worlds import tell_server

        server = self._server
        if server is not None and world is not None:
            tell_server(server, world)

    def _end_server(self, *_):
        # What the script does behind run_server() is its end: whoever asks for that waits for it.
        if self._has_served:
            return
        if self._server is None:
            sys.exit(0)
        self._server.stop()

    def run_server(self) -> None:
        """Serves until all trainers have said goodbye or SIGTERM comes; then returns, so that the script ends
        with 0."""
        if self._has_no_servers("run_server"):
            return
        self._need(server=True, call="run_server")
        if self._server is None:
            raise Error(
                "config", "fleet.run_server before fleet.init_server", "call fleet.init_server() first"
            )
        self._server.wait()
        self._server, self._has_served = None, True

    # ---- trainers ----

    def init_worker(self, scopes: Sequence[Scope] | None = None) -> None:
        """Connects to the servers; trainer 0 gives the dense tables their first values, and all start from
        them. scopes: of each program that was minimized; one for all of them.

        Servers that were started from a saved model, init_server(dirname), keep its values. A trainer that
        comes while others train takes the values as they are, and does not wait.
        Throws: Error(network) naming the servers that do not answer, Error(config) when the tables of both
        sides disagree or the start-up program has not run.
        """
        from fleetrun import _native, framework
        from fleetrun._worlds import addresses_of
        from fleetrun.static.training import tables_of_all

        self._need(server=False, call="init_worker")
        if self.training is None and self._has_no_servers("init_worker"):
            return
        training = self._need_training("init_worker")
        if not training.distributed or training.connected:
            return
        together = training.companions
        given = list(scopes or [framework.global_scope()])
        if len(given) not in (1, len(together)):
            raise Error(
                "config",
                f"fleet.init_worker: {len(given)} scopes for {len(together)} programs",
                "give one for each, or one for all",
            )
        places = [(each, scope.native) for each, scope in zip(together, given * len(together))]
        entries = [(*entry, scope) for each, scope in places for entry in each.dense_entries()]
        for parameter, _, _, scope in entries:
            if not scope.has(parameter):
                raise Error(
                    "config",
                    f"fleet.init_worker: parameter {parameter} has no value",
                    "run the start-up program first: exe.run(paddle.static.default_startup_program())",
                )
        world = elastic.world()
        client = _native.connect(
            self._role.server_endpoints,
            self._role.rank,
            self._role.trainers,
            training.mode,
            tables_of_all(training),
            epoch=elastic.epoch(),
            launcher=world.node if world else "",
            exchange=training.exchange.for_client(),
            counts_epochs=True,
            addresses=addresses_of(self._role.server_endpoints),
        )
        ahead = set().union(*(each.counted_ahead for each in together))
        for parameter, table, width, scope in entries:
            is_new = self.is_first_worker() and _set_if_empty(client, table, width, scope.value(parameter))
            if is_new and parameter in ahead and training.mode != "geo":
                _count_step(client, table, width)
        if not client.is_late:
            client.barrier()
        for each, _ in places:
            each.connect(client)
        elastic.on_world_change(self._tell_client, thread=True)
        at_end(self.stop_worker, self._connections)
        for each, scope in places:
            each.pull_dense(scope)
        for parameter, table, width, _ in entries:
            if parameter in ahead and training.mode == "geo":  # where trainers count, in copies of their own
                _count_step(client, table, width)

    def _tell_client(self, world):
        training = self.training
        if training is not None and training.connected:
            training.client.set_epoch(world.epoch)

    def stop_worker(self) -> None:
        """Says goodbye to the servers, which end when all trainers have. With local SGD all trainers call it,
        and end with the same parameters: the mean over them. On a server, which scripts go on from
        run_server() with, it does nothing, as in Paddle 1.x."""
        if self._need_role("stop_worker").is_server():
            return
        self._average()
        if self.training is None or not self.training.distributed or not self.training.connected:
            return
        client = self.training.client
        for each in self.training.companions:
            each.connect(None)
        client.goodbye()

    def _average(self):
        if self.training is not None and self.training.collective is not None:
            self.training.collective.average()

    def _connections(self):
        # If a client's connection ended before this process, the other trainers would fail of that, perhaps
        # end before this process does, and be taken for the cause.
        return [self.training.client] if self.training is not None and self.training.connected else []

    def barrier_worker(self) -> None:
        """Returns when every trainer has called it; with local SGD they have the same parameters then, the
        mean over them. On a server it returns at once, with a warning."""
        if self._need_role("barrier_worker").is_server():
            warn_once(
                "barrier_worker", "fleet.barrier_worker() has no effect on a server: trainers meet in it"
            )
            return
        elastic.check()
        self._average()
        if self._is_connected:
            self.training.leave_pass()
            self.training.client.barrier()
        elif self._role.trainers > 1 and not _is_started_alone():
            from fleetrun.distributed import collectives

            self._meet()
            collectives.barrier()

    def all_reduce(self, input: Any, mode: str = "sum") -> Any:
        """`input` reduced over all trainers: fleet.util.all_reduce."""
        return self.util.all_reduce(input, mode)

    def sum_over_trainers(self, values: numpy.ndarray) -> numpy.ndarray:
        """The sums of float64 `values` over all trainers. A barrier."""
        self._need(server=False, call="util")
        elastic.check()
        import numpy

        if self._is_connected:
            self.training.leave_pass()
            return numpy.asarray(self.training.client.all_reduce_sum(values))
        total = numpy.array(values, dtype=numpy.float64)
        if self._role.trainers > 1:
            if _is_started_alone():
                raise Error(
                    "config",
                    "fleet.util before fleet.init_worker(), in a trainer that was started again alone: the "
                    "others have done this already",
                    "ask after fleet.init_worker(), or start all trainers again: --restart=trainer=group",
                )
            from fleetrun.distributed import collectives

            self._meet()
            collectives.all_reduce(total)
        return total


def _set_if_empty(client, table, width, values):
    """Sets a dense table that has no values yet: the one reason for which a server that has agreed on the
    tables refuses a pull. Returns whether it had none."""
    try:
        client.pull_dense(table, width)
    except Error as error:
        if error.kind != "config":
            raise
        client.set_dense(table, values)
        return True
    return False


def _count_step(client, table, width):
    """A step of the table that moves nothing; it is no trainer's."""
    import numpy

    from fleetrun import _native

    _native.ps_push_dense(client, table, numpy.zeros(width, numpy.float32), 0xFFFFFFFF)


def _is_started_alone():
    """Whether fleetrun started this trainer again without the others, who have passed what they did together
    before they were connected to servers."""
    group = os.environ.get("FLEETRUN_PS_RUN", "").rpartition("-")[2]  # of the last start of all together
    return bool(group) and group != os.environ.get("FLEETRUN_ATTEMPT", group)


def _is_of_torch(thing, kind):
    """Whether it is a torch.nn.Module or a torch.optim.Optimizer; torch is not imported for it."""
    if "torch" not in sys.modules:
        return False
    import torch

    return isinstance(thing, torch.nn.Module if kind == "Module" else torch.optim.Optimizer)


def _endpoints(endpoints, to_string):
    return ",".join(endpoints) if to_string else list(endpoints)


the_fleet = Fleet()
UtilBase._fleet = the_fleet
