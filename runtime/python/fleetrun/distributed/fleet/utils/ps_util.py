"""paddle.distributed.fleet.utils.ps_util: inference with the tables of servers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fleetrun import _lazy

if TYPE_CHECKING:
    from fleetrun._graph import Program
    from fleetrun._variable import Variable

__all__ = ["DistributedInfer"]


class DistributedInfer:
    """A program, the default one when none is given, that is run forward only and looks its rows up on the
    servers of this job."""

    def __init__(self, main_program: Program | None = None, startup_program: Program | None = None) -> None:
        from fleetrun import framework

        self.origin_main_program = (main_program or framework.default_main_program()).clone(for_test=True)
        self.origin_startup_program = startup_program or framework.default_startup_program()
        self.sparse_table_maps: dict[str, int] | None = None

    def init_distributed_infer_env(
        self,
        exe: Any,
        loss: Variable,
        role_maker: Any = None,
        dirname: str | os.PathLike[str] | None = None,
    ) -> None:
        """In a process that does not train: plans the tables of `loss`'s program; a server then serves them
        from what was saved to `dirname` until its trainers end, and a trainer connects, with the dense
        parameters of the servers. In one that trains nothing is left to do."""
        from fleetrun.distributed.fleet._fleet import the_fleet
        from fleetrun.distributed.fleet._strategy import DistributedStrategy
        from fleetrun.optimizer.optimizers import SGD

        if the_fleet.training is not None:
            return
        the_fleet.init(role_maker)
        strategy = DistributedStrategy()
        strategy.a_sync = True
        the_fleet.distributed_optimizer(SGD(), strategy).minimize(loss, self.origin_startup_program)
        if the_fleet.is_server():
            the_fleet.init_server(dirname)
            the_fleet.run_server()
            return
        exe.run(self.origin_startup_program)
        the_fleet.init_worker()
        training: Any = the_fleet.training
        if dirname is not None and not training.distributed:
            the_fleet.load_model(dirname)

    def _get_sparse_table_map(self) -> dict[str, int]:
        from fleetrun.distributed.fleet._fleet import the_fleet

        if self.sparse_table_maps is None:
            entries = the_fleet.training.plan.entries()
            self.sparse_table_maps = {one.parameter: one.table.id for one in entries if one.table.sparse}
        return self.sparse_table_maps

    def get_dist_infer_program(self) -> Program:
        """The program to run: forward only, its rows from the tables, its dense parameters as the servers
        have them now."""
        from fleetrun import framework
        from fleetrun.distributed.fleet._fleet import the_fleet
        from fleetrun.static import lookups

        training = the_fleet.training
        if training is not None and training.distributed:
            lookups.follow(self.origin_main_program, training.main)
            if training.connected:
                training.pull_dense(framework.global_scope().native)
        return self.origin_main_program


__getattr__, __dir__ = _lazy.attach(__name__)
