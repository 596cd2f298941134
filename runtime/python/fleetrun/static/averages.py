"""Averages of parameters over the steps of training: operators behind the updates, and two small programs
that put the averages in the parameters' place and back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fleetrun import framework, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._graph import appending_updates, unique_name
from fleetrun._types import Any, Callable, Parameter, Program, Variable
from fleetrun.static.inputs import create_global_var
from fleetrun.static.training import training_of

__all__ = [
    "ExponentialMovingAverage", "LookAhead", "LookaheadOptimizer", "ModelAverage", "OlderModelAverage",
]  # fmt: skip


class _Averages:
    """Parameters of the main program, and the two programs."""

    def __init__(self, what: str, parameters: Any = None) -> None:
        self._what, self._program = what, framework.default_main_program()
        asked = [one for one in self._program.all_parameters() if one.do_model_average]
        self._parameters: list[Parameter] = asked if parameters is None else list(parameters)
        _expect_values(what, self._program, self._parameters)

    def _make_programs(self, averages: Callable[[Callable[[str], Variable]], Any]) -> None:
        """averages(variable): a list of the parameters' averages, in their order, in the program that is
        built; variable(name) is that of the main program there."""
        self.apply_program, self.restore_program = framework.Program(), framework.Program()
        names = [(one.name, unique_name(one.name + ".average_tmp")) for one in self._parameters]
        with framework.program_guard(self.apply_program):
            variable = _variables_of(self._program, self.apply_program)
            made = averages(variable)
            for (name, copy), average in zip(names, made):
                tensor.assign(variable(name), variable(copy, name))
                tensor.assign(average, variable(name))
        with framework.program_guard(self.restore_program):
            variable = _variables_of(self._program, self.restore_program)
            for name, copy in names:
                tensor.assign(variable(copy, name), variable(name))

    @contextlib.contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Within `with` the parameters are their averages; need_restore=False: they stay so until
        restore()."""
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Gives the parameters the values back that they had before apply()."""
        executor.run(self.restore_program)


def _expect_values(what, program, parameters):
    """Throws: Error(config) naming a parameter that is in a table."""
    training = training_of(program)
    tables = {entry.parameter for entry in training.plan.entries()} if training is not None else set()
    for parameter in parameters:
        if parameter.name in tables:
            raise Error(
                "config",
                f"{what}: the values of {parameter.name} are in a table, and not in the program",
                "train without servers, with paddle.static.nn.embedding instead of sparse_embedding",
            )


def _variables_of(main, program):
    """variable(name, like): the one of the main program, or one of its kind, in another program."""

    def variable(name: str, like: str | None = None) -> Variable:
        if not program.has_var(name):
            known = main.var(like or name)
            program.native.add_variable(name, known.dtype.name, list(known.shape), persistable=True)
        return program.var(name)

    return variable


class ExponentialMovingAverage(_Averages):
    """average = decay * average + (1 - decay) * value of each parameter in each step, from 0 on; apply()
    divides by 1 - decay ^ steps.

    thres_steps: a variable t; decay is the less of `decay` and (t + 1) / (t + 10) then. As in Paddle apply()
    takes the last step's decay for all.
    """

    _COUNTER = "@EMA_STEP_COUNTER@"

    def __init__(
        self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None
    ) -> None:
        super().__init__("paddle.static.ExponentialMovingAverage")
        prefix, main = name or "", self._program
        self._decay = _global("scheduled_ema_decay_rate", decay, "float32")
        if thres_steps is not None:
            with appending_updates():
                rate = (tensor.cast(thres_steps, "float32") + 1.0) / (thres_steps + 10.0)
                least = tensor.minimum(tensor.reshape(rate, [1]), tensor.full([1], decay, "float32"))
                tensor.assign(least, self._decay)
        self._averages = [
            create_global_var(
                one.shape, 0.0, "float32", True, name=unique_name(prefix + one.name + "_ema")
            ).name
            for one in self._parameters
        ]
        counter = self._COUNTER
        _global(counter, 0, "int64")

        def averages(variable: Callable[[str], Variable]) -> list[Variable]:
            steps = tensor.cast(variable(counter), "float32")
            left = 1.0 - tensor.pow(variable("scheduled_ema_decay_rate"), steps)
            left = tensor.where(steps > 0.0, left, tensor.ones_like(left))
            return [_shaped(variable(name) / left, main.var(name)) for name in self._averages]

        self._make_programs(averages)

    def update(self) -> None:
        """Appends the averages to the main program; once, after minimize()."""
        _expect_values(self._what, self._program, self._parameters)
        with framework.program_guard(self._program), appending_updates():
            _count(self._COUNTER)
            for parameter, name in zip(self._parameters, self._averages):
                average = self._program.var(name)
                new = average * self._decay + parameter * (1.0 - self._decay)
                tensor.assign(_shaped(new, parameter), average)


def _global(name, value, dtype):
    """The main program's variable [1] of this name."""
    main = framework.default_main_program()
    return main.var(name) if main.has_var(name) else create_global_var([1], value, dtype, True, name=name)


def _count(name):
    """One more in each step."""
    counter = framework.default_main_program().var(name)
    tensor.assign(counter + 1, counter)
    return counter


def _shaped(value, like):
    """Of a parameter of one value or of none, by which [1] was multiplied: its shape."""
    return value if list(value.shape) == list(like.shape) else tensor.reshape(value, list(like.shape))


class _WindowAverage(_Averages):
    """The mean of each parameter over the last steps: average_window_rate of all, at least
    min_average_window and at most max_average_window. Its operators go behind what is in the program, so it
    is made after minimize()."""

    _SUMS = 16384  # Steps whose values are added to one sum, as in Paddle.

    def __init__(
        self,
        average_window_rate: float,
        parameters: Any,
        min_average_window: int,
        max_average_window: int,
    ) -> None:
        super().__init__("ModelAverage", parameters)
        if min_average_window > max_average_window:
            raise Error(
                "config",
                f"ModelAverage(min_average_window={min_average_window}, "
                f"max_average_window={max_average_window})",
                "the least is not above the most",
            )
        self._rate, self._least, self._most = average_window_rate, min_average_window, max_average_window
        self._kept = [self._variables(parameter) for parameter in self._parameters]
        with appending_updates():
            for parameter, names in zip(self._parameters, self._kept):
                self._accumulate(parameter, names)
        self._make_programs(self._means)

    @staticmethod
    def _variables(parameter):
        """The names of its counts and sums, which are Paddle's."""
        names = {}
        for kind in ("num_updates", "num_accumulates", "old_num_accumulates", "sum_1", "sum_2", "sum_3"):
            shape, dtype = (parameter.shape, "float32") if "sum" in kind else ([1], "int64")
            name = unique_name(f"{parameter.name}_{kind}")
            names[kind] = create_global_var(shape, 0, dtype, True, name=name).name
        return names

    def _accumulate(self, parameter, names):
        kept = {kind: self._program.var(name) for kind, name in names.items()}
        updates, old, third = kept["num_updates"], kept["old_num_accumulates"], kept["sum_3"]
        tensor.assign(updates + 1, updates)
        full = tensor.equal(updates % self._SUMS, tensor.zeros_like(updates))
        count = kept["num_accumulates"] + 1
        share = tensor.cast(tensor.cast(updates, "float32") * float(self._rate), "int64")
        window = tensor.minimum(share, tensor.full([1], self._most, "int64"))
        too_long = tensor.logical_and(count >= self._least, tensor.greater_equal(count, window))
        zero, sum_1 = tensor.zeros_like(third), kept["sum_1"] + parameter
        new_1, new_2 = choose(full, zero, sum_1), choose(full, kept["sum_2"] + sum_1, kept["sum_2"])
        tensor.assign(choose(too_long, new_1 + new_2, third), third)
        tensor.assign(choose(too_long, zero, new_2), kept["sum_2"])
        tensor.assign(choose(too_long, zero, new_1), kept["sum_1"])
        tensor.assign(choose(too_long, count, old), old)
        tensor.assign(choose(too_long, tensor.zeros_like(count), count), kept["num_accumulates"])

    def _means(self, variable):
        means = []
        for names, parameter in zip(self._kept, self._parameters):
            steps = variable(names["num_accumulates"]) + variable(names["old_num_accumulates"])
            total = tensor.add_n([variable(names[kind]) for kind in ("sum_1", "sum_2", "sum_3")])
            means.append(_shaped(total / tensor.cast(steps, "float32"), parameter))
        return means


class ModelAverage(_WindowAverage):
    """paddle.incubate: of `parameters`, all of the program where there are none given. name: accepted."""

    def __init__(
        self,
        average_window_rate: float,
        parameters: Any = None,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        name: str | None = None,
    ) -> None:
        chosen = parameters or framework.default_main_program().all_parameters()
        super().__init__(average_window_rate, chosen, min_average_window, max_average_window)


class OlderModelAverage(_WindowAverage):
    """fluid.optimizer.ModelAverage: of the parameters whose attributes do not say do_model_average=False.
    regularization, name: accepted, they change nothing."""

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(average_window_rate, None, min_average_window, max_average_window)


def choose(condition: Variable, x: Variable, y: Variable) -> Variable:
    """x where the condition [1] holds, else y; of the shape of both."""
    size = list(x.shape)
    return tensor.where(tensor.expand(tensor.reshape(condition, [1] * len(size)), size), x, y)


class _Lookahead:
    """Each k steps of an optimizer, fast values and slow ones become their mean:
    alpha * fast + (1 - alpha) * slow."""

    _from_the_start = False

    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None) -> None:
        if not (0.0 <= alpha <= 1.0 and isinstance(k, int) and k > 0):
            raise Error("config", f"LookAhead(alpha={alpha}, k={k})", "alpha is within [0, 1], k above 0")
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, k

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameters: Any = None,
        no_grad_set: Any = None,
    ) -> Any:
        """The inner optimizer's, and the steps of slow values behind it."""
        refuse("LookAhead.minimize", parameters=(parameters, None), no_grad_set=(no_grad_set, None))
        main, startup = loss.program, startup_program or framework.default_startup_program()
        with framework.program_guard(main, startup), appending_updates():
            step = _global(unique_name("lookahead_step"), 0, "int32")
            tensor.assign(step + 1, step)
        result = self.inner_optimizer.minimize(loss, startup_program)
        trained = [one for one in main.all_parameters() if main.has_var(one.name + "@GRAD")]
        _expect_values("LookAhead", main, trained)
        with framework.program_guard(main, startup), appending_updates():
            slow = self._keep(main, startup, step, trained)
            last = tensor.equal(step % self.k, tensor.zeros_like(step))
            for parameter in trained:
                kept = slow[parameter.name]
                mean = tensor.scale(parameter, self.alpha) + tensor.scale(kept, 1.0 - self.alpha)
                tensor.assign(choose(last, mean, kept), kept)
                tensor.assign(choose(last, mean, parameter), parameter)
        return result

    def _keep(self, main, startup, step, trained):
        """Slow values by the names of theirs: first what the start-up program gives, or the first step."""
        slow: dict[str, Variable] = {}
        for parameter in trained:
            name = unique_name(parameter.name + "_slow")
            kept = slow[parameter.name] = create_global_var(parameter.shape, 0.0, "float32", True, name=name)
            if self._from_the_start:
                with framework.program_guard(startup):
                    tensor.assign(startup.var(parameter.name), startup.var(name))
            else:
                first = tensor.equal(step, tensor.ones_like(step))
                tensor.assign(choose(first, parameter, kept), kept)
        return slow

    def distribute(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: tables have no slow values. Throws: Error(config)."""
        raise Error(
            "config",
            "LookAhead on servers: a table has no slow values",
            "train on servers with the inner optimizer, or collectively (fleet.init(is_collective=True))",
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner_optimizer"], name)


class LookaheadOptimizer(_Lookahead):
    """Paddle 1.x: the slow values are first those that the start-up program gives."""

    _from_the_start = True


class LookAhead(_Lookahead):
    """Paddle 2.x: the slow values are first those that the first step gave."""
