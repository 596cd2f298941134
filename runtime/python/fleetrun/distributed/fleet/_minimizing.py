"""Where Fleet puts the parameters of a program that is minimized: on servers, or in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleetrun._arguments import as_list, warn_once
from fleetrun._error import Error
from fleetrun.distributed.fleet._transpiler_strategy import exchange_of

if TYPE_CHECKING:
    from fleetrun._variable import Parameter, Variable


class Minimizing:
    """The part of Fleet that minimizes."""

    training: Any
    _role: Any
    _strategy: Any
    _optimizer: Any
    # What the strategy made of it in minimize().
    _asked: Any
    # Since init(): they train over the same servers.
    _minimized: list[Any]
    worker_num: Any
    worker_index: Any
    init_worker: Any

    @property
    def _is_collective(self):
        """Whether trainers exchange tensors with each other."""
        return self._role.is_collective and self._role.trainers > 1

    def minimize(
        self,
        loss: Variable | Sequence[Variable],
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Any], list[tuple[Parameter, str]]]:
        """Plans the tables of `loss`'s program and appends its backward operators; alone also the updates.

        The strategy says how trainers and servers exchange values and gradients: fleet.DistributedStrategy.
        Throws: Error(config), see paddle.optimizer.Optimizer.minimize.
        """
        if self._optimizer is None:
            raise Error(
                "config", "fleet.minimize without an optimizer", "call fleet.distributed_optimizer(...) first"
            )
        if isinstance(loss, (list, tuple)):
            return self._minimize_each(list(loss), startup_program, parameter_list, no_grad_set)
        from fleetrun.distributed.fleet._asked_optimizer import asked_optimizer, fitting_strategy
        from fleetrun.static.amp import Decorated
        from fleetrun.static.joined import join, look_up_in
        from fleetrun.static.merged import GradientMergeOptimizer

        strategy = self._strategy
        if self._is_collective:
            strategy = fitting_strategy(strategy, self._optimizer)
        optimizer = asked_optimizer(self._optimizer, strategy, self._role.is_collective)
        self._asked = optimizer
        makes = (GradientMergeOptimizer, Decorated) if self._role.is_collective else GradientMergeOptimizer
        if self._is_collective or isinstance(optimizer, makes):
            minimized = (loss, startup_program, parameter_list, no_grad_set)
            return self._minimize_collectively(optimizer, strategy, *minimized)
        exchange = exchange_of(self._strategy)
        main = loss.program  # type: ignore[union-attr]
        others = self._minimized if self._role.distributed else []
        with optimizer.moving(main, parameter_list, no_grad_set):
            look_up_in(main, others)
            result = optimizer.distribute(
                loss,
                startup_program,
                exchange.mode,
                self._role.distributed,
                getattr(self._strategy, "tables", None),
                self._has_adam_d2sum(exchange.mode),
                others,
            )
        self._take_training(loss)
        self._tell_trainers(self.training.main)
        self.training.exchange = exchange
        if self._role.distributed:
            self.training.dial = self.init_worker
        # Never split: blocks of at least more values than a parameter can have.
        self.training.plan.split_dense((1 << 63) if exchange.min_block is None else exchange.min_block)
        if others:
            join(self.training, others)
        self._minimized = self.training.companions
        return result

    def _minimize_each(self, losses, startup_programs, parameters, no_grad_set):
        """minimize() of each loss, of a program of its own."""
        startups = as_list(startup_programs)
        if len({id(loss.program) for loss in losses}) < len(losses):
            raise Error("config", f"minimize of {len(losses)} losses of one program", "add them up to one")
        if len(startups) != len(losses):
            raise Error(
                "config",
                f"minimize of {len(losses)} losses with {len(startups)} start-up programs",
                "give a list of the start-up program of each loss",
            )
        made = [self.minimize(*each, parameters, no_grad_set) for each in zip(losses, startups)]
        return [], [pair for _, pairs in made for pair in pairs]

    def _tell_trainers(self, program):
        """What scripts read of a program that is trained: the strategy's trainer_desc_configs, of which the
        strategy has said what has no effect, and who is who."""
        told = {"mpi_size": self.worker_num(), "mpi_rank": self.worker_index()}
        dict.update(program._fleet_opt, getattr(self._strategy, "trainer_desc_configs", {}), **told)

    def _has_adam_d2sum(self, mode):
        """Whether dense tables follow adam_d2sum: as in Paddle where they are Adam's, on servers, which add
        differences up in geo mode."""
        if not getattr(self._strategy, "adam_d2sum", False) or not self._role.distributed or mode == "geo":
            return False
        kind = type(self._optimizer).__name__
        if kind != "Adam":
            warn_once(
                "adam_d2sum", f"DistributedStrategy.adam_d2sum has no effect with {kind}: it is Adam's rule"
            )
        return kind == "Adam"

    def _minimize_collectively(self, optimizer, strategy, loss, startup_program, parameters, no_grad_set):
        from fleetrun import framework
        from fleetrun.distributed.fleet._collective_program import CollectiveProgram

        if self._is_collective and strategy.dgc and getattr(optimizer, "grad_clip", None) is not None:
            raise Error(
                "config",
                "grad_clip with dgc: there is no mean of whole gradients that could be clipped",
                "leave grad_clip out",
            )
        startup = startup_program or framework.default_startup_program()
        collective = None
        if self._is_collective:
            collective = CollectiveProgram(strategy, startup, loss.name)
        result = optimizer.minimize(loss, startup, parameters, no_grad_set)
        self._take_training(loss)
        self.training.collective = collective
        return result

    def _take_training(self, loss):
        from fleetrun.static import training

        self.training = training.training_of(loss.program)
        training.share(self.training)
