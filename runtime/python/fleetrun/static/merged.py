"""An optimizer that steps once for several batches, by the sum or the mean of their gradients."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._graph import appending_updates, unique_name
from fleetrun._types import Any, Program, Sequence, Variable
from fleetrun.optimizer import rates
from fleetrun.static.amp import Decorated
from fleetrun.static.averages import choose
from fleetrun.static.differentiated import differentiate, pairs
from fleetrun.static.held_back import only_where
from fleetrun.static.inputs import create_global_var
from fleetrun.static.training import training_of

__all__ = ["GradientMergeOptimizer"]


class GradientMergeOptimizer:
    """inner_optimizer steps in every k_steps-th run of the program; avg: by the mean of the gradients of
    these runs, else their sum, which it clips and decays as it does one gradient.

    Every run computes its step; what it has written is put back where it was not the last of its k_steps.
    """

    def __init__(self, inner_optimizer: Any, k_steps: int = 1, avg: bool = True) -> None:
        if not isinstance(k_steps, int) or k_steps < 1:
            raise Error("config", f"GradientMergeOptimizer(k_steps={k_steps!r})", "it is 1 or more")
        self.inner_optimizer, self.k_steps, self.avg = inner_optimizer, k_steps, avg

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Any], list[Any]]:
        """backward() and apply_gradients()."""
        made = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(made), made

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[Any]:
        """[(parameter, gradient)] of one run; of an embedding with is_sparse of all its rows."""
        self.inner_optimizer._startup = startup_program
        if isinstance(self.inner_optimizer, Decorated):
            self.inner_optimizer.scale(loss, startup_program)
        with self.inner_optimizer.moving(loss.program, parameter_list, no_grad_set):
            return pairs(loss.program, differentiate(loss.program, loss))

    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Any]:
        """The inner optimizer's, of what k_steps runs have gathered."""
        given = [pair for pair in params_grads if pair[1] is not None]
        if not given:
            raise Error(
                "config", "GradientMergeOptimizer: no parameter has a gradient", "give those of backward()"
            )
        main: Any = given[0][1].program
        startup = self.inner_optimizer._startup or rates.startup_of(main)
        with framework.program_guard(main, startup), appending_updates():
            name = unique_name("gradient_merge_step")
            step = create_global_var([1], 0, "int32", True, name=name)
            tensor.assign((step + 1) % self.k_steps, step)
            last = tensor.equal(step, tensor.zeros_like(step))
            merged = [(one, self._gather(one, gradient, last)) for one, gradient in given]
        with only_where(last, main, startup):
            self.inner_optimizer.apply_gradients(merged)
        # They are gathered from means over replicas, by updates.
        training: Any = training_of(main)
        training.makes_gradients = False
        return []

    def _gather(self, parameter, gradient, last):
        name = f"{parameter.name}@GRAD@GradientMerge"
        gathered = create_global_var(parameter.shape, 0.0, "float32", True, name=name)
        total = gathered + gradient
        tensor.assign(choose(last, tensor.zeros_like(total), total), gathered)
        return total * (1.0 / self.k_steps) if self.avg else total

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner_optimizer"], name)
