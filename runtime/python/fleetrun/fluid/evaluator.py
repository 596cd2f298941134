"""paddle.fluid.evaluator: measures that the program itself sums up from run to run, of Paddle 1.x."""

from __future__ import annotations

from fleetrun import _lazy, framework, tensor
from fleetrun._types import Any, Program, Sequence, Variable
from fleetrun.fluid import _chains, _labels
from fleetrun.fluid._math import sums
from fleetrun.static.inputs import create_global_var

__all__ = ["ChunkEvaluator", "EditDistance", "Evaluator"]


class Evaluator:
    """`states`: variables that the program adds to in each run; `metrics`: what one run has added."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        self._name = framework.unique_name(name)

    def _sum_up(self, value: Variable, suffix: str) -> Variable:
        """A state that `value`, a number, is added to in each run. Shape: [1]."""
        name = framework.unique_name(f"{self._name}_{suffix}")
        state = create_global_var([1], 0.0, value.dtype, persistable=True, name=name)
        state.stop_gradient = True
        sums([state, tensor.reshape(value, [1])], state)
        self.states.append(state)
        return state

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Begins again from 0."""
        import numpy

        scope: Any = framework.global_scope()
        for state in self.states:
            scope.find_var(state.name).get_tensor().set(numpy.zeros([1], state.dtype.name), None)

    def _totals(self) -> list[float]:
        """What the states hold."""
        import numpy

        scope: Any = framework.global_scope()
        return [float(numpy.array(scope.find_var(one.name).get_tensor())[0]) for one in self.states]

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """The measure of all runs since reset()."""
        raise NotImplementedError


class EditDistance(Evaluator):
    """edit_distance() of sequences; metrics: the sum of a run's distances, and how many of its sequences have
    one. eval(): (the mean distance, the share of sequences that have one)."""

    def __init__(
        self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        distances, count = _labels.edit_distance(input, label, ignored_tokens=ignored_tokens)
        right = tensor.cast(tensor.equal(distances, tensor.zeros([1], "float32")), "int64")
        wrong = count - tensor.reshape(tensor.sum(right), [1])
        total = tensor.reshape(tensor.sum(distances), [1])
        self.total_distance = self._sum_up(total, "total_distance")
        self.seq_num = self._sum_up(count, "seq_num")
        self.instance_error = self._sum_up(wrong, "instance_error")
        self.metrics += [total, wrong]

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """(mean distance [1], share of sequences that have one [1])."""
        import numpy

        total, count, wrong = self._totals()
        return numpy.array([total / count], "float32"), numpy.array([wrong / count], "float32")


class ChunkEvaluator(Evaluator):
    """chunk_eval() of sequences; metrics: a run's precision, recall and F1. eval(): those of all runs."""

    def __init__(
        self,
        input: Variable,
        label: Variable,
        chunk_scheme: str,
        num_chunk_types: int,
        excluded_chunk_types: Sequence[int] | None = None,
    ) -> None:
        super().__init__("chunk_eval")
        found = _chains.chunk_eval(input, label, chunk_scheme, num_chunk_types, excluded_chunk_types)
        names = ("num_infer_chunks", "num_label_chunks", "num_correct_chunks")
        states = [self._sum_up(value, name) for value, name in zip(found[3:], names)]
        self.num_infer_chunks, self.num_label_chunks, self.num_correct_chunks = states
        self.metrics += found[:3]

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """(precision [1], recall [1], F1 [1])."""
        import numpy

        guessed, there, right = self._totals()
        precision = right / guessed if guessed else 0.0
        recall = right / there if there else 0.0
        both = 2.0 * precision * recall / (precision + recall) if right else 0.0
        return tuple(numpy.array([value], "float32") for value in (precision, recall, both))


__getattr__, __dir__ = _lazy.attach(__name__)
