"""ParallelExecutor: a program on several replicas, as Paddle 1.x spells it. Source: document 000."""

from fleetrun import framework
from fleetrun._places import CPUPlace, CUDAPlace
from fleetrun._types import Any, Fetches, Program, Scope, Variable
from fleetrun.distributed.fleet._configs import BuildStrategy, ExecutionStrategy
from fleetrun.static.compiler import CompiledProgram, expect_means
from fleetrun.static.executor import Executor

__all__ = ["ParallelExecutor"]


class ParallelExecutor:
    """Runs a program on CPU_NUM replicas, as Paddle 1.x spells it. use_cuda: accepted, with a warning.
    main_program: the default one when not given. The start-up program has to have run.

    num_trainers, trainer_id: accepted of a program that averages gradients over trainers, which knows them.
    Throws: Error(config) for several trainers of any other.
    """

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | Variable | None = None,
        main_program: Program | None = None,
        share_vars_from: Any = None,
        exec_strategy: ExecutionStrategy | dict[str, Any] | None = None,
        build_strategy: BuildStrategy | dict[str, Any] | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        program = main_program or framework.default_main_program()
        expect_means("fluid.ParallelExecutor", program, num_trainers)
        self._executor = Executor(CUDAPlace(0) if use_cuda else CPUPlace())
        self._scope = scope
        self._compiled = CompiledProgram(program).with_data_parallel(
            loss_name=loss_name,
            build_strategy=build_strategy,
            exec_strategy=exec_strategy,
            share_vars_from=share_vars_from,
        )

    @property
    def device_count(self) -> int:
        """The number of replicas."""
        return self._compiled.replicas

    def run(
        self, fetch_list: Fetches, feed: Any = None, feed_dict: Any = None, return_numpy: bool = True
    ) -> list[Any]:
        """A step; the values of fetch_list as Executor.run returns them. feed: {name: array}, split along the
        batch, or a list of one for each replica. feed_dict: its older name."""
        return self._executor.run(
            self._compiled,
            feed=feed if feed is not None else feed_dict,
            fetch_list=fetch_list,
            scope=self._scope,
            return_numpy=return_numpy,
        )

    def drop_local_exe_scopes(self) -> None:
        """Accepted: the memory of temporaries is used again in the next run."""
