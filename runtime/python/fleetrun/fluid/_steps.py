"""fluid.layers: StaticRNN."""

from __future__ import annotations

import contextlib

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Iterator, Sequence, Variable
from fleetrun.static import loops

__all__ = ["StaticRNN"]


class _Loop:
    """The steps of a StaticRNN whose number only a run knows: a loop, from the first step_input() on."""

    def __init__(self, memories: Sequence[Variable]) -> None:
        self._context = loops.building()
        self._body = self._context.__enter__()
        self._steps = loops.StepBuilder(self._body)
        self._count: Any = None
        self._carried: list[str] = []
        for memory in memories:  # what operators read for a memory is then the loop's
            self._body.written[memory.name] = self._steps.carry(memory).name
            self._carried.append(memory.name)

    def step_input(self, x: Variable) -> Variable:
        with self._steps.outside():
            count = tensor.shape(x)[0]
        self._count = count if self._count is None else self._count
        return tensor.squeeze(tensor.gather(x, self._steps.index), [0])

    def outside(self) -> Any:
        return self._steps.outside()

    def memory(self, init: Variable) -> Variable:
        memory = self._steps.carry(init)
        self._carried.append(memory.name)
        return memory

    def end(self, updates: dict[str, str], outputs: Sequence[Variable]) -> list[Variable]:
        program = framework.default_main_program()
        following = [program.var(framework.standing_for(updates.get(name, name))) for name in self._carried]
        self._steps.end(following, [tensor.unsqueeze(one, 0) for one in outputs])
        self.close()
        return self._steps.append(self._count)[1]

    def close(self) -> None:
        """Ends building the loop's step."""
        self._context.__exit__(None, None, None)


class StaticRNN:
    """A network over time: what `with rnn.step():` appends for the first step is appended again for each of
    the others. The number of steps is the first size of what step_input() takes; where that is not known, the
    steps are a loop."""

    def __init__(self, name: str | None = None) -> None:
        self._steps = 0
        # {variable of the first step: those of all steps}, {memory: what it becomes}.
        self._inputs: dict[str, list[Variable]] = {}
        self._memories: dict[str, str] = {}
        self._outputs: list[Variable] = []
        self._kept: list[Any] = []
        self._loop: _Loop | None = None
        # {variable of a step: the whole one}.
        self._whole: dict[str, Variable] = {}

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """One step."""
        program = framework.default_main_program()
        known = set(program.native.variable_names())
        begin = program.native.operator_count()
        try:
            yield
        except BaseException:
            if self._loop is not None:
                self._loop.close()
            raise
        if self._loop is not None:
            self._kept = self._loop.end(self._memories, self._outputs)
            return
        if not self._steps:
            raise Error("config", "StaticRNN without a step_input", "give it the sequence: rnn.step_input(x)")
        operators = program.ops[begin:]
        left_out = [one.name for values in self._inputs.values() for one in values] + list(self._memories)
        operators = [op for op in operators if not set(op.outputs) & {*left_out, *self._first}]
        results = [[one] for one in self._outputs]
        now: dict[str, str] = {}
        for step in range(1, self._steps):
            before, now = now, {name: values[step].name for name, values in self._inputs.items()}
            for memory, update in self._memories.items():
                now[memory] = before.get(update, update)
            for op in operators:
                for name in op.outputs:
                    if name not in known:
                        now[name] = framework.unique_name(name)
                names = [now.get(name, name) for name in op.inputs]
                made = [now.get(name, name) for name in op.outputs]
                program.native.append(op.type, names, made, op.attributes, op.where)
            for values, one in zip(results, self._outputs):
                values.append(program.var(now.get(one.name, one.name)))
        self._kept = [tensor.stack(values, 0) for values in results]

    _first: frozenset[str] = frozenset()

    def step_input(self, x: Variable) -> Variable:
        """The x of this step. Shape: x[steps, ..] -> [..]. Throws: Error(config) for another number of steps
        than that of another input."""
        steps = x.shape[0]
        if steps < 0 and not self._steps or self._loop is not None:
            if self._loop is None:
                program = framework.default_main_program()
                self._loop = _Loop([program.var(name) for name in self._memories])
            made = self._loop.step_input(x)
            self._whole[made.name] = x
            return made
        if steps < 0:  # a run has to have as many as the others
            x = tensor.reshape(x, [self._steps, *[0] * (len(x.shape) - 1)])
            self._first = self._first | {x.name}
            steps = self._steps
        if steps < 1 or (self._steps and self._steps != steps):
            raise Error(
                "config",
                f"StaticRNN.step_input({x.name}): its first size is {steps}"
                + (f", another's {self._steps}" if self._steps else ""),
                "give all sequences the same number of steps, as their first size",
            )
        self._steps = steps
        values = tensor.unstack(x, 0)
        self._inputs[values[0].name] = values
        return values[0]

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """What update_memory() has put in in the step before; in the first `init`, or `init_value` in
        `shape`, whose batch size is that of batch_ref."""
        if init is None and (shape is None or batch_ref is None):
            raise Error("config", "StaticRNN.memory without init", "give it init, or shape and batch_ref")
        with contextlib.nullcontext() if self._loop is None else self._loop.outside():
            if init is None and shape is not None and batch_ref is not None:
                axis = ref_batch_dim_idx - 1 if batch_ref.name in self._inputs else ref_batch_dim_idx
                sizes: list[Any] = list(shape)
                sizes[init_batch_dim_idx] = tensor.shape(self._whole.get(batch_ref.name, batch_ref))[axis]
                init = tensor.full(sizes, init_value, "float32")
            memory: Variable = tensor.assign(init)  # type: ignore[arg-type]
        if self._loop is not None:
            memory = self._loop.memory(memory)
        self._first = self._first | {memory.name}
        self._memories[memory.name] = memory.name
        return memory

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Lets the memory be `var` in the next step."""
        if mem.name not in self._memories:
            raise Error("config", f"StaticRNN.update_memory({mem.name}): it is not a memory")
        self._memories[mem.name] = var.name

    def step_output(self, o: Variable) -> None:
        """Gives o of every step. Shape: [steps, ..]."""
        self._outputs.append(o)

    def output(self, *outputs: Variable) -> None:
        """step_output() of each."""
        for one in outputs:
            self.step_output(one)

    def __call__(self) -> Any:
        """What step_output() was given, of all steps: one variable, or a list."""
        return self._kept[0] if len(self._kept) == 1 else self._kept
