"""paddle.fluid.incubate.fleet.collective: collective training as Paddle 1.x spells it, on today's Fleet."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Any, Program, Sequence, Variable
from fleetrun.distributed.fleet._configs import BuildStrategy, ExecutionStrategy
from fleetrun.distributed.fleet._fleet import the_fleet
from fleetrun.distributed.fleet._strategy import DistributedStrategy as Strategy
from fleetrun.distributed.fleet._transpiler import OlderFleet

__all__ = ["Collective", "CollectiveOptimizer", "DistributedStrategy", "fleet"]


class DistributedStrategy(BuildStrategy):
    """Build options, and how trainers exchange gradients. forward_recompute, which saves memory in Paddle:
    accepted. use_amp: the loss has a scale, at first amp_loss_scaling. use_dist_fc: False only.
    local_sgd_steps, local_sgd_is_warm_steps: document 004's words
    for local_sgd_frequency and for the first step that does not average gradients."""

    _DEFAULTS = {
        **BuildStrategy._DEFAULTS,
        "use_local_sgd": False,
        "local_sgd_frequency": 1,
        "local_sgd_steps": None,
        "local_sgd_is_warm_steps": 1,
        "mode": "nccl2",
        "collective_mode": None,
        "nccl_comm_num": 1,
        "use_hierarchical_allreduce": False,
        "hierarchical_allreduce_inter_nranks": 1,
        "forward_recompute": False,
        "recompute_checkpoints": [],
        "use_amp": False,
        "amp_loss_scaling": 2**15,
        "dist_fc_config": None,
        "enable_backward_optimizer_op_deps": True,
        "fuse_all_reduce_ops": True,
        "exec_strategy": None,
    }
    _KEPT = {
        "sync_batch_norm": BuildStrategy._KEPT["sync_batch_norm"],
        "use_dist_fc": (False, "every trainer has all of the model"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._values.update(exec_strategy=ExecutionStrategy(), recompute_checkpoints=[])

    def today(self) -> Strategy:
        """The same as a paddle.distributed.fleet.DistributedStrategy."""
        made = Strategy()
        made.fuse_all_reduce_ops = bool(self.fuse_all_reduce_ops)
        made.nccl_comm_num = int(self.nccl_comm_num)
        made.use_hierarchical_allreduce = bool(self.use_hierarchical_allreduce)
        made.hierarchical_allreduce_inter_nranks = max(int(self.hierarchical_allreduce_inter_nranks), 1)
        made.amp = bool(self.use_amp)
        made.amp_configs = {"init_loss_scaling": float(self.amp_loss_scaling)}
        if self.use_local_sgd or self.collective_mode == "local_sgd":
            made.localsgd = True
            made.localsgd_configs = {
                "k_steps": int(self.local_sgd_steps or self.local_sgd_frequency),
                "begin_step": int(self.local_sgd_is_warm_steps),
            }
        return made


class CollectiveOptimizer:
    """What fleet.distributed_optimizer() gives: minimize() trains the program on all trainers."""

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        if strategy is not None and not isinstance(strategy, (DistributedStrategy, Strategy)):
            raise Error(
                "config",
                f"collective training with the strategy {strategy!r}",
                "use fluid.incubate.fleet.collective.DistributedStrategy()",
            )
        self._optimizer = optimizer
        today = strategy.today() if isinstance(strategy, DistributedStrategy) else strategy
        the_fleet.distributed_optimizer(optimizer, today or Strategy())

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> Any:
        """Appends backward and updates; gradients are the means over all trainers."""
        return the_fleet.minimize(loss, startup_program, parameter_list, no_grad_set)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)


class Collective(OlderFleet):
    """Everything else is paddle.distributed.fleet's."""

    def init(self, role_maker: Any = None) -> None:
        """fleet.init of collective trainers."""
        the_fleet.init(role_maker, is_collective=True)

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> CollectiveOptimizer:
        """An optimizer whose minimize() averages gradients over the trainers."""
        return CollectiveOptimizer(optimizer, strategy)

    @property
    def _origin_program(self):
        return self.main_program

    _transpiled_program = _origin_program

    def init_worker(self) -> None:
        """Nothing: collective trainers have met in init()."""

    def stop_worker(self) -> None:
        """fleet.stop_worker."""
        the_fleet.stop_worker()

    def save_persistables(
        self, executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None
    ) -> None:
        """What the program keeps, to dirname/filename."""
        from fleetrun.distributed import io

        io.save_persistables(executor, dirname, main_program or self.main_program, filename)

    def save_inference_model(
        self,
        executor: Any,
        dirname: str,
        feeded_var_names: Sequence[Any] | None = None,
        target_vars: Sequence[Variable] | None = None,
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> None:
        """What computes target_vars from the inputs of these names."""
        from fleetrun.fluid import io

        names = [name if isinstance(name, str) else name.name for name in feeded_var_names or ()]
        program = main_program or self.main_program
        io.save_inference_model(dirname, names, list(target_vars or ()), executor, program)


fleet = Collective()

__getattr__, __dir__ = _lazy.attach(__name__, owner="paddle.incubate.distributed.fleet.collective")
