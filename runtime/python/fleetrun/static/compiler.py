"""Programs on several replicas: paddle.static.CompiledProgram and fluid.ParallelExecutor. Source: document
000.

A replica is a thread that computes its part of the batch; the gradients of all replicas are averaged in each
step, so that training is that of the whole batch. There are as many replicas as places are given, else
CPU_NUM. The engine is runtime/engine/replicas/replicas.h.

    BuildStrategy.reduce_strategy          who adds a gradient up: AllReduce: every thread a part of each;
                                           Reduce: the thread of the replica that owns the parameter. The same
                                           bits in both
    BuildStrategy.gradient_scale_strategy  what a replica's loss counts: CoeffNumDevice: one over the number
                                           of replicas; One: 1, the gradients are added up; Customized: what
                                           is fed as LOSS@GRAD, a value for each
    ExecutionStrategy.num_threads          threads that compute the replicas; 0: one for each
    all other keys                         no effect: memory is kept from run to run, and there is nothing to
                                           schedule

A program whose tables lie on servers, or that looks rows up in sparse tables, is computed by replicas too. To
the servers they are one thread: each step pulls dense parameters once and pushes the gradients of the whole
batch, in every mode.

With local SGD (DistributedStrategy.localsgd) a step averages the gradients of this trainer's replicas;
trainers average parameters when an average is due.
"""

from __future__ import annotations

from fleetrun import _lazy, _native, framework
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._places import cpu_num
from fleetrun._types import Any, Program, Sequence, Variable
from fleetrun.distributed.fleet._configs import BuildStrategy, ExecutionStrategy
from fleetrun.static.training import training_of

__all__ = ["CompiledProgram", "expect_means"]


class CompiledProgram:
    """A program as Executor.run takes it; with_data_parallel() makes it run on several replicas.
    train_from_dataset takes it too, and runs it on the dataset's threads as it does any program."""

    def __init__(
        self, program_or_graph: Program, build_strategy: BuildStrategy | dict[str, Any] | None = None
    ) -> None:
        if not isinstance(program_or_graph, framework.Program):
            raise Error(
                "config",
                f"CompiledProgram of {program_or_graph!r}, which is not a program",
                "pass a paddle.static.Program",
            )
        self.compiled_from = program_or_graph
        self.is_data_parallel = False
        # The executor's: what runs it, and over which scope.
        self.replica_runner: Any = None
        self._build: Any = build_strategy
        self._execution: Any = None
        self._places: Any = None

    def with_data_parallel(
        self,
        loss_name: str | Variable | None = None,
        build_strategy: BuildStrategy | dict[str, Any] | None = None,
        exec_strategy: ExecutionStrategy | dict[str, Any] | None = None,
        share_vars_from: Any = None,
        places: Any = None,
    ) -> CompiledProgram:
        """Returns itself, to be run on replicas: one for each of `places`, else CPU_NUM (1 when it is not
        set).

        loss_name, share_vars_from: accepted; gradients begin at the loss of minimize(), variables are those
        of the scope.
        Throws: Error(config) for a loss that the program has not, for strategies of another kind, and for
        several trainers of a program that trains alone.
        """
        if loss_name is not None:
            self.compiled_from.var(_name(loss_name))
        self._build = _strategy(build_strategy or self._build, BuildStrategy)
        expect_means("BuildStrategy", self.compiled_from, self._build.num_trainers)
        self._execution = _strategy(exec_strategy, ExecutionStrategy)
        self._places = None if places is None else as_list(places)
        self.is_data_parallel = True
        return self

    @property
    def replicas(self) -> int:
        """Their number. Throws: Error(config) for a CPU_NUM that is not a number of at least 1."""
        if self._places is not None:
            return len(self._places)
        return cpu_num()

    def feeds(self, feed: Any, loaders: Sequence[Any]) -> list[Any]:
        """Those of a step. Of a loader each replica takes a batch; where one finds none, the epoch ends."""
        if isinstance(feed, (list, tuple)) and len(feed) > 1:
            return list(feed)
        return [feed] * (self.replicas if loaders and not feed else 1)

    @property
    def replica_options(self) -> _native.ReplicaOptions:
        """What the strategies say to the engine."""
        return _native.ReplicaOptions(
            replicas=self.replicas,
            threads=self._execution.num_threads,
            reduce=getattr(_native.ReduceStrategy, self._build.reduce_strategy),
            scale=getattr(_native.GradientScale, self._build.gradient_scale_strategy),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled_from, name)


def expect_means(owner: str, program: Program, trainers: int) -> None:
    """Throws: Error(config) for several trainers of a program that trains alone."""
    training = training_of(program)
    if trainers > 1 and training is not None and not (training.collective or training.distributed):
        raise Error(
            "config",
            f"{owner}: num_trainers={trainers} of a program whose trainers exchange nothing",
            "fluid.DistributeTranspiler, in mode 'nccl2', or fleet.init(is_collective=True) lets them",
        )


def _strategy(given, kind):
    strategy = kind()
    if given is not None:
        strategy.update(given)
    return strategy


def _name(loss):
    return loss.name if isinstance(loss, framework.Variable) else loss


__getattr__, __dir__ = _lazy.attach(
    __name__, {"ParallelExecutor": "static.parallel_executor:ParallelExecutor"}
)
