"""A program that is trained collectively: its gradients are averaged, and its parameters start alike on every rank."""

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view
from fleetrun.distributed._world import the_world
from fleetrun.distributed.parallel.options import ParallelOptions

_KIND = _native.CallKind


class CollectiveProgram:
    """What fleet.minimize() hangs on the training (static/training.py) of a program when there are several trainers."""

    def __init__(self, strategy, startup):
        for field, what in (("localsgd", "local SGD"), ("adaptive_localsgd", "local SGD"), ("dgc", "gradient compression"),
                            ("fp16_allreduce", "float16 on the way")):
            if getattr(strategy, field):
                raise Error("config", f"DistributedStrategy.{field} with a program: {what} is for PyTorch modules",
                            f"leave {field} at False")
        self._options = ParallelOptions.of(strategy)
        self._communicators = None
        self._startup = startup
        startup.after_run = self.start_alike

    def make_runner(self, program, scope):
        """The native runner of `program` over the native scope."""
        options = self._options
        if self._communicators is None:
            self._communicators = the_world.new_communicators("program", options.communicators, options.communicator_options)
        memory = options.memory_mib if options.joins_gradients else -1.0
        return _native.CollectiveRunner(program.native, scope, self._communicators, memory, options.groups_size)

    def start_alike(self, scope):
        """Sets what the start-up program has made to rank 0's values."""
        import numpy

        by_type = {}
        for name in sorted({name for operator in self._startup.native.operators() for name in operator.outputs}):
            value = numpy.asarray(scope.value(name))
            by_type.setdefault(value.dtype.str, []).append((name, value))
        for _, parts in sorted(by_type.items()):
            flat = numpy.concatenate([value.reshape(-1) for _, value in parts])
            values = view(flat)
            the_world.default_group.communicator.run(_native.Call(_KIND.broadcast, values, values, values.count))
            start = 0
            for name, value in parts:
                scope.set_value(name, flat[start:start + value.size].reshape(value.shape))
                start += value.size
