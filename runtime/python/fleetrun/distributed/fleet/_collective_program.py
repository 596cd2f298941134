"""A program that is trained collectively: its parameters start alike on every rank, and its gradients are
averaged, or with local SGD its parameters."""

from fleetrun import _native
from fleetrun._types import Any
from fleetrun.distributed._arrays import view
from fleetrun.distributed._world import the_world
from fleetrun.distributed.parallel.options import ParallelOptions
from fleetrun.static._runs import RUNS

_KIND = _native.CallKind


class CollectiveProgram:
    """What fleet.minimize() hangs on the training (static/training.py) of a program when there are several
    trainers.

    fp16_allreduce, dgc and localsgd mean what they mean for PyTorch modules; dgc and localsgd are for SGD and
    Momentum.
    """

    def __init__(self, strategy, startup, loss):
        self._options = ParallelOptions.of(strategy)
        self._loss = loss
        self._startup = startup
        self.age = 0  # counts the generations of ranks that it has been trained by
        self._forget_runners()
        RUNS.of(startup).after = self.start_alike
        the_world.followers.add(self)

    def _forget_runners(self):
        self._communicators = None
        self._pass = None
        self._stepping: Any = None

    def drop(self) -> None:
        """The ranks' generation is over: what runs the program is made anew (static/executor.py)."""
        self._forget_runners()
        self.age += 1

    @property
    def communicators(self):
        """Those that buckets of gradients take in turn."""
        options = self._options
        if self._communicators is None:
            self._communicators = the_world.new_communicators(
                "program", options.communicators, options.communicator_options
            )
        return self._communicators

    @property
    def native_options(self):
        """How ranks train together."""
        options: Any = self._options
        local, compression = options.local_steps, options.compression_configs
        return _native.CollectiveOptions(
            memory_mib=options.memory_mib if options.joins_gradients else -1.0,
            groups_size=options.groups_size,
            half=options.half_precision,
            loss=self._loss,
            compression=compression
            and (compression["begin_step"], compression["ramp_steps"], compression["sparsity"]),
            local=local and (local["k_steps"], local["begin_step"], local["is_adaptive"]),
        )

    def make_runner(self, program, scope, timeline=None):
        """The native runner of `program` over the native scope; it draws its steps into the native
        timeline."""
        return _native.CollectiveRunner(
            program.native, scope, self.communicators, self.native_options, timeline
        )

    def step_with(self, runner):
        """Says whose steps come now. With local SGD those of the runner before are averaged first."""
        if self._stepping is not runner:
            self.average()
            self._stepping = runner

    def average(self):
        """With local SGD averages what Executor.run has left apart since the last average; every trainer
        calls it."""
        if self._stepping is not None:
            self._stepping.synchronize()

    @property
    def steps_since_average(self):
        """Of Executor.run with local SGD; 0 without."""
        return self._stepping.since_average if self._stepping is not None else 0

    def run_pass(self, program, scope, dataset, fetch, fetch_info, print_period, print_line, debug=False):
        """A pass over the native dataset; what it did. Every trainer makes it, with files of its own."""
        self.average()
        key = (id(scope), program.native.operator_count())
        if self._pass is None or self._pass[0] != key:
            self._pass = (
                key,
                _native.CollectivePass(program.native, scope, self.communicators, self.native_options),
            )
        return self._pass[1].run(
            dataset,
            fetch=fetch,
            fetch_info=fetch_info,
            print_period=print_period,
            print_line=print_line,
            debug=debug,
        )

    def start_alike(self, scope):
        """Sets what the start-up program has made to rank 0's values; in a process that takes the place of a
        rank they come from another one, in Recoverable.step()."""
        if the_world.is_new:
            return
        import numpy

        by_type: dict[Any, Any] = {}
        for name in sorted(
            {name for operator in self._startup.native.operators() for name in operator.outputs}
        ):
            value = numpy.asarray(scope.value(name))
            by_type.setdefault(value.dtype.str, []).append((name, value))
        for _, parts in sorted(by_type.items()):
            flat = numpy.concatenate([value.reshape(-1) for _, value in parts])
            values = view(flat)
            the_world.default_group.communicator.run(
                _native.Call(_KIND.broadcast, values, values, values.count)
            )
            start = 0
            for name, value in parts:
                scope.set_value(name, flat[start : start + value.size].reshape(value.shape))
                start += value.size
