"""Programs on several replicas: paddle.static.CompiledProgram and fluid.ParallelExecutor. Source: document 000.

A replica is a thread that computes its part of the batch; the gradients of all replicas are averaged in each step, so that
training is that of the whole batch. There are as many replicas as places are given, else CPU_NUM. The engine is
runtime/engine/replicas.h.

    BuildStrategy.reduce_strategy          who adds a gradient up: AllReduce: every thread a part of each; Reduce: the thread of
                                           the replica that owns the parameter. The same bits in both
    BuildStrategy.gradient_scale_strategy  what a replica's loss counts: CoeffNumDevice: one over the number of replicas; One: 1,
                                           the gradients are added up; Customized: what is fed as LOSS@GRAD, a value for each
    ExecutionStrategy.num_threads          threads that compute the replicas; 0: one for each
    all other keys                         no effect: memory is kept from run to run, and there is nothing to schedule

A program whose tables lie on servers, or that looks rows up in sparse tables, is computed by replicas too. To the servers they
are one thread: each step pulls dense parameters once and pushes the gradients of the whole batch, in every mode.

With local SGD (DistributedStrategy.localsgd) a step averages the gradients of this trainer's replicas; trainers average
parameters when an average is due.
"""

import os

from fleetrun import _native, framework
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun.distributed.fleet._configs import BuildStrategy, ExecutionStrategy


class CompiledProgram:
    """A program as Executor.run takes it; with_data_parallel() makes it run on several replicas. train_from_dataset takes it
    too, and runs it on the dataset's threads as it does any program."""

    def __init__(self, program_or_graph, build_strategy=None):
        if not isinstance(program_or_graph, framework.Program):
            raise Error("config", f"CompiledProgram of {program_or_graph!r}, which is no program",
                        "pass a paddle.static.Program")
        self.compiled_from = program_or_graph
        self.is_data_parallel = False
        # The executor's: what runs it, and over which scope.
        self.replica_runner = None
        self._build = build_strategy
        self._execution = None
        self._places = None

    def with_data_parallel(self, loss_name=None, build_strategy=None, exec_strategy=None, share_vars_from=None,
                           places=None):
        """Returns itself, to be run on replicas: one for each of `places`, else CPU_NUM (1 when it is not set).

        loss_name, share_vars_from: accepted; gradients begin at the loss of minimize(), variables are those of the scope.
        Throws: Error(config) for a loss that the program has not, and for strategies of another kind.
        """
        if loss_name is not None:
            self.compiled_from.var(_name(loss_name))
        self._build = _strategy(build_strategy or self._build, BuildStrategy)
        self._execution = _strategy(exec_strategy, ExecutionStrategy)
        self._places = None if places is None else list(places if isinstance(places, (list, tuple)) else [places])
        self.is_data_parallel = True
        return self

    @property
    def replicas(self):
        """Their number. Throws: Error(config) for a CPU_NUM that is no number of at least 1."""
        if self._places is not None:
            return len(self._places)
        return cpu_num()

    @property
    def replica_options(self):
        """What the strategies say to the engine."""
        return _native.ReplicaOptions(
            replicas=self.replicas, threads=self._execution.num_threads,
            reduce=getattr(_native.ReduceStrategy, self._build.reduce_strategy),
            scale=getattr(_native.GradientScale, self._build.gradient_scale_strategy))

    def __getattr__(self, name):
        return getattr(self.compiled_from, name)


class ParallelExecutor:
    """Runs a program on CPU_NUM replicas, as Paddle 1.x spells it. use_cuda: accepted, with a warning. main_program: the
    default one when not given. The start-up program has to have run.

    Throws: Error(config) for num_trainers and trainer_id other than 1 and 0: those of a job are known to fleet.
    """

    def __init__(self, use_cuda, loss_name=None, main_program=None, share_vars_from=None, exec_strategy=None,
                 build_strategy=None, num_trainers=1, trainer_id=0, scope=None):
        from fleetrun._places import CPUPlace, CUDAPlace
        from fleetrun.static.executor import Executor

        refuse("fluid.ParallelExecutor", num_trainers=(num_trainers, 1), trainer_id=(trainer_id, 0))
        self._executor = Executor(CUDAPlace(0) if use_cuda else CPUPlace())
        self._scope = scope
        self._compiled = CompiledProgram(main_program or framework.default_main_program()).with_data_parallel(
            loss_name=loss_name, build_strategy=build_strategy, exec_strategy=exec_strategy, share_vars_from=share_vars_from)

    @property
    def device_count(self):
        """The number of replicas."""
        return self._compiled.replicas

    def run(self, fetch_list, feed=None, feed_dict=None, return_numpy=True):
        """A step; the values of fetch_list as Executor.run returns them. feed: {name: array}, split along the batch, or a list
        of one for each replica. feed_dict: its older name."""
        return self._executor.run(self._compiled, feed=feed if feed is not None else feed_dict, fetch_list=fetch_list,
                                  scope=self._scope, return_numpy=return_numpy)

    def drop_local_exe_scopes(self):
        """Accepted: the memory of temporaries is used again in the next run."""


def cpu_num():
    """CPU_NUM, 1 when it is not set. Throws: Error(config) when it is no number of at least 1."""
    text = os.environ.get("CPU_NUM") or "1"
    if not text.isdigit() or int(text) < 1:
        raise Error("config", f'CPU_NUM="{text}" is no number of replicas', "set it to 1 or more")
    return int(text)


def _strategy(given, kind):
    strategy = kind()
    if given is not None:
        strategy.update(given)
    return strategy


def _name(loss):
    return loss.name if isinstance(loss, framework.Variable) else loss
