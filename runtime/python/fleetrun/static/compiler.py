"""paddle.static.CompiledProgram: a program with strategies that change nothing here. Source: document 000."""

from fleetrun import framework
from fleetrun._error import Error


class CompiledProgram:
    """A program as Executor.run and train_from_dataset take it. build_strategy, exec_strategy: see BuildStrategy and
    ExecutionStrategy, their keys have no effect."""

    def __init__(self, program_or_graph, build_strategy=None):
        if not isinstance(program_or_graph, framework.Program):
            raise Error("config", f"CompiledProgram of {program_or_graph!r}, which is no program",
                        "pass a paddle.static.Program")
        self.compiled_from = program_or_graph

    def with_data_parallel(self, loss_name=None, build_strategy=None, exec_strategy=None, share_vars_from=None,
                           places=None):
        """The same: one thread computes a fed batch, where Paddle shares it out among CPU_NUM threads; the gradients are
        those of the whole batch in both."""
        return self

    def __getattr__(self, name):
        return getattr(self.compiled_from, name)
