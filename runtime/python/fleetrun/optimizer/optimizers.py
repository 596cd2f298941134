"""Optimizers as a script makes them. minimize() puts backward and updates into the program."""

import contextlib

from fleetrun import _native, framework, regularizer
from fleetrun._arguments import plain, refuse, warn_once
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._lazy import MissingName
from fleetrun._types import Any, Callable, Parameter, Program, Sequence, Variable, WeightDecay
from fleetrun.nn import clip
from fleetrun.nn.clip import Clip
from fleetrun.optimizer import rates
from fleetrun.optimizer._parameters import moving, named, state_numbers, without_decay
from fleetrun.optimizer._rows import say_what_decays, say_what_is_dense
from fleetrun.optimizer.lr import LRScheduler
from fleetrun.static import differentiated
from fleetrun.static.lookups import choices_of
from fleetrun.static.training import Rate, Training, attach, training_of

# What fluid.clip.set_gradient_clip() said of a program.
CLIPS: SideTable[Any] = SideTable("gradient_clip", lambda: None)

__all__ = [
    "Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "Lamb", "Momentum", "Optimizer", "RMSProp", "SGD",
]  # fmt: skip


class Optimizer:
    """Base: learning rate (a number, a paddle.optimizer.lr schedule, or where no table needs to know it a
    variable of one number that the program computes) and weight decay. `config` is what the engine gets."""

    kind = ""
    _startup: Program | None = None  # what backward() was told

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        weight_decay: float | WeightDecay | None,
        grad_clip: Clip | None,
        refused: dict[str, tuple[Any, Any]],
        parameters: Any,
        **config: Any,
    ) -> None:
        function = f"paddle.optimizer.{type(self).__name__}"
        self._chosen = named(function, parameters)
        learning_rate = plain(learning_rate)
        config = {name: plain(value) for name, value in config.items()}
        if isinstance(learning_rate, bool) or not isinstance(
            learning_rate, (int, float, LRScheduler, framework.Variable)
        ):
            raise Error(
                "config",
                f"{function}(learning_rate={learning_rate!r}) is not supported",
                "give the learning rate as a number or a paddle.optimizer.lr schedule",
            )
        if not isinstance(learning_rate, (int, float, LRScheduler)):
            rates.expect_one(function, learning_rate)
        if isinstance(learning_rate, (int, float)):
            rates.expect_finite(function, learning_rate=learning_rate)
        refuse(function, **{name: (value, default) for name, (value, default) in refused.items()})
        for name, value in config.items():
            if not isinstance(value, (bool, int, float)):
                raise Error(
                    "config", f"{function}({name}={value!r}) is not supported", f"give {name} as a number"
                )
        rates.expect_finite(function, **config)
        if grad_clip is not None and not isinstance(grad_clip, clip.KINDS):
            raise Error(
                "config",
                f"{function}(grad_clip={grad_clip!r}) is not supported",
                "use paddle.nn.ClipGradByGlobalNorm, ClipGradByNorm or ClipGradByValue",
            )
        self.grad_clip = grad_clip
        self._clips_own = False
        self._clipped: set[str] = set()  # by what ParamAttr says; empty: what need_clip says
        l1_decay, l2_decay = regularizer.coefficients(weight_decay, function)
        self._learning_rate = learning_rate
        # {program: the variable of its rate}, where scripts put one of their own.
        self._learning_rate_map: dict[Any, Any] = {}
        self.config = {"l1_decay": l1_decay, "l2_decay": l2_decay, **config}

    def __getattr__(self, name: str) -> Any:
        raise MissingName("paddle.optimizer.Optimizer", name, lambda: dir(type(self)))

    @property
    def counted(self) -> LRScheduler | None:
        """The schedule, where it counts the runs of the program by itself, as those of fluid.layers do."""
        schedule = self._learning_rate
        return schedule if isinstance(schedule, LRScheduler) and schedule.by_step else None

    def get_lr(self) -> float:
        """The learning rate that the next step takes. Throws: Error(config) for one that the program
        computes."""
        schedule = self._learning_rate
        if isinstance(schedule, LRScheduler):
            return schedule()
        if isinstance(schedule, framework.Variable):
            raise Error(
                "config", f"the learning rate is what the program computes: {schedule.name}", "fetch it"
            )
        return float(schedule)

    def _global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The variable of the program's learning rate; None before minimize() for a schedule."""
        main = program or framework.default_main_program()
        found: Variable | None = self._learning_rate_map.get(main)
        if found is None and isinstance(self._learning_rate, (int, float)):
            return rates.constant(main, self._learning_rate)
        return found

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameters: Any = None,
        no_grad_set: Any = None,
        parameter_list: Any = None,
    ) -> tuple[list[Any], list[tuple[Parameter, Any]]]:
        """Appends backward and update operators of `loss` (one value) to its program; with `parameters` (in
        1.x parameter_list) or no_grad_set only those that move these, or all but these, parameters.

        Returns (operators, [(parameter, gradient)]), as Paddle's does; the first is empty.
        Throws: Error(config) for a loss with more than one value, or an initializer or optimizer that a
        sparse table cannot honour, naming it.
        """
        moved = parameters or parameter_list
        with self.moving(loss.program, moved, no_grad_set):
            result = self.distribute(loss, startup_program, "async", servers=False)
        training = training_of(loss.program)
        if training is not None:
            training.minimized = (self, loss, moved, no_grad_set)
        return result

    def moving(
        self, main: Program, parameters: Any, no_grad_set: Any
    ) -> contextlib.AbstractContextManager[None]:
        """Where only those parameters are trainable that minimize(parameters=, no_grad_set=) moves, or where
        it has none that this optimizer was given. Throws: Error(config) as it is entered."""
        function = f"paddle.optimizer.{type(self).__name__}"
        chosen = named(function, parameters) or self._chosen
        return moving(main, chosen, named(function, no_grad_set) or set(), function)

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameters: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
        parameter_list: Any = None,
    ) -> list[tuple[Parameter, Any]]:
        """[(parameter, gradient)] of append_backward(), for apply_gradients(). parameters: those alone;
        no_grad_set: not those. Throws: as append_backward()."""
        main = loss.program
        refuse("Optimizer.backward", callbacks=(callbacks, None))
        self._startup = startup_program
        with self.moving(main, parameters or parameter_list, no_grad_set):
            made = differentiated.differentiate(main, loss, self._native_config(main, "learning_rate"))
            return differentiated.pairs(main, made)

    def begin_again(self, main: Program) -> None:
        """As if minimize() had not been called on the program. From now on each trainer clips its own
        gradients, before they are averaged."""
        self._learning_rate_map.pop(main, None)
        self._clips_own = True

    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Any]:
        """Appends what moves each parameter of [(parameter, gradient)] by its gradient, clipped and with
        decay as in minimize(). The gradients are variables: those of backward(), or what a script made of
        them. Throws: Error(config) for a program that has an optimizer already, and where Paddle would have
        moved only the rows of an embedding that a batch looks up."""
        given = [(parameter, gradient) for parameter, gradient in params_grads if gradient is not None]
        if not given:
            raise Error("config", "apply_gradients: no parameter has a gradient", "give those of backward()")
        main = given[0][0].program
        if training_of(main) is not None:
            raise Error(
                "config",
                f"apply_gradients of {given[0][0].name}: the program has an optimizer already",
                "call minimize() or apply_gradients() once for a program",
            )
        differentiated.expect_rows(
            main, [parameter.name for parameter, _ in given], type(self).__name__, self.kind
        )
        startup = self._startup or rates.startup_of(main)
        self._take_clip(main)
        rate = self._rate(main, startup, servers=False)
        config = self._native_config(main, rate.variable)
        config.state_numbers = state_numbers(self.kind, [parameter.name for parameter, _ in given])
        keys = differentiated.KEYS.of(main)
        named = [
            (parameter.name, gradient.name, keys.get(gradient.name, "")) for parameter, gradient in given
        ]
        clipped = _native.append_clip(main.native, named, config)
        _native.append_updates(main.native, startup.native, clipped, config)
        made = any(not gradient.startswith(parameter + "@GRAD") for parameter, gradient, _ in named)
        clips = self.grad_clip is not None
        tables = _native.TablePlan()
        training = Training(tables, "async", False, (main, startup), rate, clips)
        training.makes_gradients = made
        attach(main, training)
        return []

    def _take_clip(self, main):
        self.grad_clip = self.grad_clip or CLIPS.of(main)
        if self.grad_clip is None:
            self.grad_clip, self._clipped = clip.own_clip(main)

    def _rate(self, main, startup, servers):
        """The program's learning rate. A number is in a variable, too, which scripts read and set in the
        scope; but servers and tables are told it once."""
        schedule, rate, number, given = None, "", None, self._learning_rate_map.get(main, self._learning_rate)
        if isinstance(given, LRScheduler):
            schedule, rate = self, rates.rate_variable(main, startup, self.get_lr())
            if given.by_step:
                given.use(main.var(rate))
        elif isinstance(given, framework.Variable):
            rate = rates.computed_rate(given)
        elif not servers and not main.native.has_operator("sparse_embedding"):
            number = self.get_lr()
            rate = rates.rate_variable(main, startup, number)
        if rate:
            self._learning_rate_map.setdefault(main, main.var(rate))
        return Rate(schedule, rate, number)

    def distribute(
        self,
        loss: Variable,
        startup_program: Program | None,
        mode: str,
        servers: bool,
        tables: dict[str, Any] | None = None,
        adam_d2sum: bool = False,
        others: Sequence[Training] = (),
    ) -> tuple[list[Any], list[tuple[Parameter, Variable]]]:
        """minimize() with the parameters' place: servers (True) or this process.

        tables: what a strategy says of sparse tables, {parameter: function(native TableChoice, width, self)}.
        adam_d2sum: Adam's dense tables follow that rule. others: of programs that share its servers.
        """
        main = loss.program
        self._take_clip(main)
        startup = startup_program or rates.startup_of(main)
        trained = [one for one in main.all_parameters() if one.trainable]
        if not trained or not differentiated.reaches_parameter(main, loss):
            reason = (
                "it is computed from no trainable parameter"
                if trained
                else ("its program has no trainable parameter")
            )
            warn_once(f"minimize {loss.name}", f"minimize of {loss.name} has no effect: {reason}")
            attach(main, Training(_native.TablePlan(), mode, servers, (main, startup)))
            return [], []
        rate = self._rate(main, startup, servers)
        config = self._native_config(main, rate.variable)
        if not servers:
            say_what_is_dense(self, main)
            config.state_numbers = state_numbers(self.kind, [one.name for one in trained])
        if adam_d2sum:
            config.adam_d2sum = True
        # Elsewhere no server knows what the others send.
        config.clips_means = servers and mode == "sync" and not self._clips_own
        before = {each.name for each in main.list_vars()}
        plan = _native.distribute(
            main.native,
            startup.native,
            loss.name,
            config,
            servers,
            choices_of(main, tables or {}, mode, self),
            [other.plan for other in others],
        )
        say_what_decays(plan)
        if rate.variable and rate.schedule is None and plan.tables():
            raise Error(
                "config",
                f"the program computes the learning rate {rate.variable}, and tables are told it by the "
                "trainer",
                "use a schedule of paddle.optimizer.lr or fluid.layers, or embeddings without is_sparse",
            )
        clips = self.grad_clip is not None
        attach(main, Training(plan, mode, servers, (main, startup), rate, clips))
        made = [(one, differentiated.gradient_name(one.name, before)) for one in trained]
        return [], [(one, main.var(gradient)) for one, gradient in made if main.has_var(gradient)]

    def _native_config(self, main, rate):
        config = _native.OptimizerConfig()
        for name, value in self.config.items():
            setattr(config, name, value)
        config.kind = getattr(_native.OptimizerConfig.Kind, self.kind)
        if self.grad_clip is not None:
            self.grad_clip.put_into(config)
        config.rate = rate
        config.learning_rate = 1.0 if rate else self.get_lr()
        for parameter in main.all_parameters():
            takes = parameter.need_clip if self.grad_clip is None else self.grad_clip.takes(parameter)
            need_clip = parameter.name in self._clipped if self._clipped else takes
            if parameter.regularizer is None and parameter.rate_factor == 1.0 and need_clip:
                continue
            l1_decay, l2_decay = regularizer.coefficients(
                parameter.regularizer, f"parameter {parameter.name}"
            )
            config.set_own(
                parameter.name,
                parameter.rate_factor,
                parameter.regularizer is not None,
                l1_decay,
                l2_decay,
                bool(need_clip),
            )
        return config


class SGD(Optimizer):
    """w -= learning_rate * g."""

    kind = "sgd"

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, weight_decay, grad_clip, {}, parameters)


class Momentum(Optimizer):
    """v = momentum * v + g; w -= learning_rate * v; use_nesterov: w -= learning_rate * (g + momentum * v).

    A sparse table moves the rows that a batch looks up.
    """

    kind = "momentum"

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        momentum: float = 0.9,
        parameters: Sequence[Parameter] | None = None,
        use_nesterov: bool = False,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay,
            grad_clip,
            {
                "rescale_grad": (rescale_grad, 1.0),
                "use_multi_tensor": (use_multi_tensor, False),
            },
            parameters,
            momentum=momentum,
            nesterov=bool(use_nesterov),
        )


class Adagrad(Optimizer):
    """m += g * g; w -= learning_rate * g / (sqrt(m) + epsilon); m starts at initial_accumulator_value."""

    kind = "adagrad"

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        epsilon: float = 1e-06,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay,
            grad_clip,
            {},
            parameters,
            epsilon=epsilon,
            initial_accumulator=initial_accumulator_value,
        )


class Adam(Optimizer):
    """Adam with bias correction. lazy_mode: an embedding's rows change only when a batch looks them up.

    In a sparse table that is always so, and each row counts its own steps.
    """

    kind = "adam"
    # Whether epsilon is added as it is, as in Paddle 1.x.
    older_formula = False

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay,
            grad_clip,
            {},
            parameters,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            lazy_rows=bool(lazy_mode),
            older_formula=self.older_formula,
        )


class AdamW(Adam):
    """Adam with a decay apart from the gradient: w -= learning_rate * weight_decay * w before each step.
    apply_decay_param_fun: whether a parameter of this name decays. On servers the rows that a step
    touches decay."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float = 0.01,
        lr_ratio: Any = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Clip | None = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        refuse("paddle.optimizer.AdamW", lr_ratio=(lr_ratio, None))
        weight_decay = plain(weight_decay)
        if isinstance(weight_decay, bool) or not isinstance(weight_decay, (int, float)):
            raise Error(
                "config", f"paddle.optimizer.AdamW(weight_decay={weight_decay!r})", "give it as a number"
            )
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, lazy_mode, multi_precision
        )
        self.config["own_decay"] = float(weight_decay)
        self._decays = apply_decay_param_fun

    def _native_config(self, main, rate):
        return without_decay(super()._native_config(main, rate), main, self._decays)


class Adamax(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; u = max(|g|, beta2 * u + epsilon); w -= learning_rate / (1 - beta1^t)
    * m / u."""

    kind = "adamax"

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate, weight_decay, grad_clip, {}, parameters, beta1=beta1, beta2=beta2, epsilon=epsilon
        )


class Adadelta(Optimizer):
    """s = rho * s + (1 - rho) * g * g; d = sqrt((u + epsilon) / (s + epsilon)) * g; u = rho * u + (1 - rho) *
    d * d; w -= learning_rate * d."""

    kind = "adadelta"
    # Whether w moves by the new u, as in Paddle 1.x.
    older_formula = False

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        epsilon: float = 1e-06,
        rho: float = 0.95,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay,
            grad_clip,
            {},
            parameters,
            rho=rho,
            epsilon=epsilon,
            older_formula=self.older_formula,
        )


class Lamb(Optimizer):
    """Adam's step with its decay, scaled by the norm of the parameter over its own norm.
    exclude_from_weight_decay_fn: whether a parameter does not decay; always_adapt: such a one is scaled too.
    In one process or with collectives: a table on servers has a part of each parameter only."""

    kind = "lamb"
    # Whether no bias is corrected, and every parameter's step scaled, as in Paddle 1.x.
    older_formula = False

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-06,
        parameters: Sequence[Parameter] | None = None,
        grad_clip: Clip | None = None,
        exclude_from_weight_decay_fn: Callable[[Parameter], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            None,
            grad_clip,
            {},
            parameters,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            own_decay=lamb_weight_decay,
            always_adapts=bool(always_adapt),
            older_formula=self.older_formula,
        )
        self._excludes = exclude_from_weight_decay_fn

    def _native_config(self, main, rate):
        excludes = self._excludes
        decays = None if excludes is None else lambda name: not excludes(main.var(name))
        return without_decay(super()._native_config(main, rate), main, decays)


class RMSProp(Optimizer):
    """s = rho * s + (1 - rho) * g * g; v = momentum * v + learning_rate * g / sqrt(s + epsilon); w -= v.
    centered: the square of the gradient's mean, averaged as s is, is taken off s."""

    kind = "rmsprop"

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        rho: float = 0.95,
        epsilon: float = 1e-06,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Sequence[Parameter] | None = None,
        weight_decay: float | WeightDecay | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay,
            grad_clip,
            {},
            parameters,
            rho=rho,
            epsilon=epsilon,
            momentum=momentum,
            centered=bool(centered),
        )
