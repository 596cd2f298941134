"""Programs, the one that is being built, and what appends to it. Each holds a program of the native engine.

The default programs and the unique names belong to the process, as in Paddle: a script builds into whatever
program_guard, or else the process, says. Building is single-threaded. Source: documents 002 and 003.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from fleetrun import _dtypes as dtypes
from fleetrun import _mode, _native
from fleetrun._arguments import plain
from fleetrun._dtypes import DTypeLike
from fleetrun._error import Error
from fleetrun._lazy import MissingName
from fleetrun._one_block import OneBlock
from fleetrun._param_attr import ParamAttr, ParamLike, to_attr
from fleetrun._scope import Scope, global_scope
from fleetrun._variable import Parameter, Variable
from fleetrun.nn import initializer as initializers
from fleetrun.nn.initializer import Initializer
from fleetrun.regularizer import WeightDecay

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
T = TypeVar("T")
_seed = 0


class UniqueNameGenerator:
    """Numbers names: called with a key it gives PREFIX + key_N, N counting from 0 per key."""

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = prefix or ""
        self.ids: dict[str, int] = {}

    def __call__(self, key: str) -> str:
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"


_names = UniqueNameGenerator()


def unique_name(key: str) -> str:
    """`key`_N, N counting from 0 per key: servers and trainers that run one script get the same names."""
    return _names(key)


def switch_unique_name(
    new_generator: UniqueNameGenerator | None = None, new_para_name_checker: Any = None
) -> UniqueNameGenerator:
    """Numbers names by another generator, by a new one when none is given. Returns the one before it."""
    global _names
    before, _names = _names, UniqueNameGenerator() if new_generator is None else new_generator
    return before


@contextlib.contextmanager
def unique_name_guard(new_generator: UniqueNameGenerator | str | bytes | None = None) -> Iterator[None]:
    """Within `with`, names are numbered from 0 again; behind the prefix `new_generator`, or by that
    generator."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    before = switch_unique_name(new_generator)
    try:
        yield
    finally:
        switch_unique_name(before)


class SideTable(Generic[T]):
    """What another module keeps with each program, which itself holds only its graph.

    name: the attribute by which scripts reach the value. make: makes it for a program that has none. copied:
    gives a clone its own; None: a clone begins without, and one for test with for_test=False.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], T],
        copied: Callable[[T], T] | None = None,
        for_test: bool = True,
    ) -> None:
        self.name = name
        self.copied = copied
        self.for_test = for_test
        self._make = make

    def of(self, program: Program) -> T:
        """The program's value."""
        value = program.sides.get(self)
        return program.sides.setdefault(self, self._make()) if value is None else value

    def put(self, program: Program, value: T) -> None:
        """Replaces the program's value."""
        program.sides[self] = value


class Program(OneBlock):
    """A graph: variables and operators in order. random_seed 0: fresh random numbers in every run of a
    start-up program."""

    # None, or after minimize() what scripts look at (static/training.py).
    _fleet_opt: Any = None

    def __init__(self, native: _native.Program | None = None) -> None:
        self.native = native if native is not None else _native.Program()
        self.native.random_seed = self.native.random_seed or _seed
        self._variables: dict[Any, Any] = {}
        self._parameters: dict[Any, Any] = {}
        # What this one was cloned from, and how many operators a clone for test had then.
        self.origin: Any = None
        self._cloned_at = 0
        # Of the body of a loop: the program around it (static/loops.py).
        self.outer: Any = None
        # What other modules keep with this program: a SideTable's value each.
        self.sides: dict[Any, Any] = {}

    @property
    def random_seed(self) -> int:
        """The seed of dropout and, for a start-up program, of the initial values; 0 for fresh numbers."""
        return self.native.random_seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        self.native.random_seed = int(seed)

    @contextlib.contextmanager
    def _lr_schedule_guard(self, is_with_opt: bool = False) -> Iterator[None]:
        """Accepted: operators that compute a learning rate are like the others."""
        yield

    @contextlib.contextmanager
    def _optimized_guard(self, param_and_grads: Any) -> Iterator[None]:
        """Within `with`, operators follow the updates of a step, and a clone for test has none of them."""
        with appending_updates():
            yield

    def var(self, name: str) -> Variable:
        """The variable of this name. Throws: Error(config) naming the nearest one when there is none."""
        known = self._variables.get(name)
        if known is None:
            self.native.variable(name)
            known = self._variables[name] = Variable(self, name)
        return known

    def has_var(self, name: str) -> bool:
        """Whether there is a variable of this name."""
        return self.native.has_variable(name)

    @property
    def vars(self) -> dict[str, Variable]:
        """All variables by name, as the script made them; those of a copy sorted. Scripts feed their inputs
        in this order."""
        names = self.native.variable_names()
        own = self._variables if self.origin is None else ()
        made = [name for name in own if self.native.has_variable(name)]
        return {name: self.var(name) for name in dict.fromkeys([*made, *names])}

    def list_vars(self) -> list[Variable]:
        """The values of vars."""
        return list(self.vars.values())

    def create_var(
        self,
        name: str | None = None,
        shape: Sequence[int] = (),
        dtype: DTypeLike = "float32",
        persistable: bool = False,
        stop_gradient: bool = False,
        lod_level: int = 0,
        **more: Any,
    ) -> Variable:
        """A variable that no operator has made; the one of this name where there is one already. more:
        `initializer`, which fills it when the program runs, and what Paddle's C++ object is told besides,
        accepted."""
        name = name or unique_name("_generated_var")
        if not self.has_var(name):
            self.native.add_variable(
                name,
                dtypes.name_of(dtype),
                [int(size) for size in shape],
                int(lod_level or 0),
                persistable=bool(persistable),
                stop_gradient=bool(stop_gradient),
            )
        if more.get("initializer") is not None:
            known = self.native.variable(name)
            more["initializer"].append(self, name, known.shape, known.type)
        return self.var(name)

    def create_parameter(self, shape: Any, dtype: Any = "float32", name: Any = None, **attr: Any) -> Any:
        """paddle.create_parameter() here; attr: of ParamAttr, and what Paddle's C++ object is told; in
        the start-up program `initializer` only. optimize_attr: Paddle's own word for learning_rate."""
        # What layers say of each variable, and is so of a parameter.
        attr = {key: value for key, value in attr.items() if key not in _OF_VARIABLES}
        attr.setdefault("learning_rate", (attr.pop("optimize_attr", None) or {}).get("learning_rate", 1.0))
        if self is default_startup_program():
            return self.create_var(name, shape, dtype, True, initializer=attr.get("initializer"))
        with program_guard(self):
            return create_parameter(shape, dtype, name, ParamAttr(**attr))

    def append_op(
        self, type: str, inputs: Any = None, outputs: Any = None, attrs: Any = None, **more: Any
    ) -> None:
        """Computes an operator of Paddle into its output: fluid/_appended.py has those that there are."""
        # By name: layers lie above programs.
        with program_guard(self):
            importlib.import_module("fleetrun.fluid._appended").append_op(type, inputs, outputs, attrs)

    def all_parameters(self) -> list[Parameter]:
        """The parameters in the order in which they were made."""
        return list(self._parameters.values())

    @property
    def ops(self) -> list[_native.Operator]:
        """The operators in order, each with .type, .inputs, .outputs and .attributes."""
        return self.native.operators()

    def state_dict(self, mode: str = "all", scope: Scope | None = None) -> dict[str, Any]:
        """{name: value in the scope} of what the program keeps: mode "all", "param" (parameters) or "opt"
        (the rest).

        Throws: Error(config) for a program that has no values yet.
        """
        if mode not in ("all", "param", "opt"):
            raise Error("config", f"Program.state_dict(mode={mode!r})", 'use "all", "param" or "opt"')
        scope, values = scope or global_scope(), {}
        for name in self.native.variable_names():
            if not self.native.variable(name).persistable or (
                mode != "all" and (name in self._parameters) != (mode == "param")
            ):
                continue
            values[name] = scope.find_var(name)
            if values[name] is None:
                raise Error("config", f"{name} has no value yet", "run the start-up program first")
        return values

    def set_state_dict(self, state_dict: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Copies values, by name, into the scope. Throws: Error(config) for one of another shape."""
        import numpy

        for name, value in state_dict.items():
            if not self.native.has_variable(name):
                continue
            value, shape = numpy.asarray(value), self.native.variable(name).shape
            if list(value.shape) != list(shape):
                raise Error(
                    "config", f"{name} is {list(shape)} in the program, and {list(value.shape)} in the state"
                )
            (scope or global_scope()).var(name).set(value)

    def clone(self, for_test: bool = False) -> Program:
        """A copy; for_test drops backward and updates, and switches dropout off. Parameters are shared by
        name."""
        copy = Program(self.native.clone_for_test() if for_test else self.native.copy())
        copy._parameters = {name: copy._adopt(parameter) for name, parameter in self._parameters.items()}
        copy.sides = {
            table: table.copied(value)
            for table, value in self.sides.items()
            if table.copied is not None and (table.for_test or not for_test)
        }
        copy.origin, copy._fleet_opt = self, self._fleet_opt
        copy._cloned_at = copy.native.operator_count() if for_test else 0
        return copy

    def follow_origin(self) -> None:
        """Takes over what minimize() changed in the program that this one was cloned from for test: lookups
        whose rows moved to servers. Left as it is when operators were added since."""
        if self._cloned_at and self._cloned_at == self.native.operator_count():
            self.native = self.origin.native.clone_for_test()
        self.stay()

    def stay(self) -> None:
        """Leaves a clone for test as it is from now on: it follows its origin no more."""
        self._cloned_at = 0

    def _adopt(self, parameter):
        twin = Parameter(
            self, parameter.name, parameter.regularizer, parameter.rate_factor, parameter.need_clip
        )
        twin.startup, twin.do_model_average = parameter.startup, parameter.do_model_average
        self._variables[parameter.name] = twin
        return twin

    def add_parameter(
        self, name: str, regularizer: WeightDecay | None, rate_factor: float, need_clip: bool = True
    ) -> Parameter:
        """Registers the native variable `name` as a parameter."""
        parameter = Parameter(self, name, regularizer, rate_factor, need_clip)
        self._variables[name] = self._parameters[name] = parameter
        return parameter

    def to_dot(self) -> str:
        """The program as text for graphviz: `dot -Tsvg` draws operators as boxes, what is fed or kept as
        ellipses."""
        return self.native.to_dot()

    def __str__(self) -> str:
        return str(self.native)

    @staticmethod
    def parse_from_string(binary_str: bytes) -> Program:
        """The program of serialize_program(), or of a file `__model__`. Throws: Error(data)."""
        # By name: programs lie below what reads files.
        return importlib.import_module("fleetrun.static.serial").deserialize_program(binary_str)

    @property
    def desc(self) -> Any:
        """What scripts write programs to files with: desc.serialize_to_string()."""
        return importlib.import_module("fleetrun.static.serial").Desc(self)

    @classmethod
    def global_seed(cls, seed: int = 0) -> None:
        """paddle.seed()."""
        globals()["seed"](seed)

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """The program as text."""
        return str(self)

    def beside(self, name: str) -> Any:
        """What the SideTable of this name has of it, None for nothing."""
        # A copy: threads that read ahead ask while the script's adds a table.
        sides = list(self.__dict__.get("sides", {}).items())
        return next((value for table, value in sides if table.name == name), None)

    def __getattr__(self, name: str) -> Any:
        # program.training, program.loaders: the names that these tables had when the program held them.
        value = self.beside(name)
        if value is not None:
            return value
        raise MissingName("paddle.static.Program", name, lambda: dir(self))


_OF_VARIABLES = (
    "belong_to_optimizer", "is_data", "is_distributed", "lod_level", "need_check_feed", "persistable",
    "stop_gradient", "type",
)  # fmt: skip


class _Defaults:
    main: Any = None
    startup: Any = None
    # Inside a branch of a cond: what says where the operators read and write (static/control_flow.py).
    branch: Any = None
    # What operators are for: "update" after minimize(), for what follows the updates.
    role: str | None = None


def default_main_program() -> Program:
    """The program that calls build into; made on first use."""
    if _Defaults.main is None:
        _Defaults.main = Program()
    return _Defaults.main


def default_startup_program() -> Program:
    """The program that gives parameters their first values."""
    if _Defaults.startup is None:
        _Defaults.startup = Program()
    return _Defaults.startup


def switch_main_program(program: Program) -> Program:
    """Lets calls build into `program`. Returns the one before it."""
    before, _Defaults.main = default_main_program(), program
    return before


def switch_startup_program(program: Program) -> Program:
    """Lets parameters get their first values from `program`. Returns the one before it."""
    before, _Defaults.startup = default_startup_program(), program
    return before


def get_var(name: str, program: Program | None = None) -> Variable:
    """The variable of this name. Throws: Error(config) naming the nearest one."""
    return (program or default_main_program()).var(name)


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Within `with`, calls build into these programs instead."""
    before = (default_main_program(), default_startup_program())
    _Defaults.main = main_program
    _Defaults.startup = startup_program or before[1]
    try:
        yield
    finally:
        _Defaults.main, _Defaults.startup = before


@contextlib.contextmanager
def redirected(branch: Any) -> Iterator[None]:
    """Within `with`, branch.inputs(names) and branch.outputs(names) say what operators read and write."""
    before, _Defaults.branch = _Defaults.branch, branch
    branch.above = before
    try:
        yield
    finally:
        _Defaults.branch = before


@contextlib.contextmanager
def redirected_as(branch: Any) -> Iterator[None]:
    """Within `with`, operators are redirected as they were under `branch`, which is None or one of
    redirected()."""
    before, _Defaults.branch = _Defaults.branch, branch
    try:
        yield
    finally:
        _Defaults.branch = before


def branch() -> Any:
    """What operators are redirected by now: one of redirected(), or None."""
    return _Defaults.branch


@contextlib.contextmanager
def appending_updates() -> Iterator[None]:
    """Within `with`, operators follow the updates of a step, and a clone for test has none of them."""
    before, _Defaults.role = _Defaults.role, "update"
    try:
        yield
    finally:
        _Defaults.role = before


def standing_for(name: str) -> str:
    """The variable that operators read for `name`: another one inside a branch that has written to it."""
    return _Defaults.branch.inputs([name])[0] if _Defaults.branch is not None else name


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Accepted: names are unique without it."""
    yield


def seed(seed: int) -> None:
    """Seeds initial values and dropout of programs, those that exist and those to come; 0 for fresh
    numbers."""
    global _seed
    _seed = int(seed)
    for program in (default_main_program(), default_startup_program()):
        program.random_seed = _seed


def temporaries(layer: str, count: int) -> list[str]:
    """Names of that many outputs of a layer's operator."""
    return [unique_name(layer + ".tmp") for _ in range(count)]


# Which input is ids or labels: the engine has them as int64, and Paddle takes int32, too.
_WHOLE = {"embedding": 1, "sparse_embedding": 0, "cross_entropy": 1, "accuracy": 1, "auc": 1}


def expect_variable(function: str, value: object) -> None:
    """Throws: Error(config) for an argument of paddle.FUNCTION that is no variable."""
    if isinstance(value, Variable):
        return
    raise Error(
        "config",
        f"paddle.{function}: {value!r} is not a variable of a program",
        "inputs come from paddle.static.data, parameters or other calls"
        + ("" if _mode.asked_for_static else f"; where it feeds arrays to layers, {_mode.dynamic_hint()}"),
    )


def append(
    kind: str,
    operator: str,
    inputs: Sequence[Variable | None],
    attributes: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    layer: str | None = None,
) -> Any:
    """Appends `operator` and returns its outputs as Variables: `outputs` (names), or one named LAYER.tmp_0,
    the layer being `kind`_N when none is given. An input of None is one that is not given."""
    _mode.expect_static()
    program = default_main_program()
    if outputs is None:
        outputs = [unique_name((layer or unique_name(kind)) + ".tmp")]
    for variable in inputs:
        if variable is not None:
            expect_variable(kind, variable)
    names = ["" if variable is None else variable.name for variable in inputs]
    place = _WHOLE.get(operator)
    whole = None if place is None else inputs[place]
    if place is not None and whole is not None and whole.dtype.name == "int32":
        names[place] = append("cast", "cast", [whole], {"dtype": "int64"}).name
    written = list(outputs)
    if _Defaults.branch is not None:
        names, written = _Defaults.branch.inputs(names), _Defaults.branch.outputs(written)
    told = {name: plain(value) for name, value in (attributes or {}).items()}
    told |= {} if _Defaults.role is None else {"role": _Defaults.role}
    program.native.append(operator, names, written, told, _script_line())
    # Under its own name also what a loop's step writes anew: that is there after the loop.
    made = [program.var(name) for name in outputs]
    return made[0] if len(made) == 1 else made


def _script_line():
    """The line of the script that led here, for errors: "train.py:12: y = paddle.add(a, b)"."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    return f"{file}:{number}: {linecache.getline(file, number).strip()}".removesuffix(": ")


def create_parameter(
    shape: Sequence[int],
    dtype: DTypeLike = "float32",
    name: str | None = None,
    attr: ParamLike = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:
    """A parameter of `shape`, initialised by its attribute, else `default_initializer`, else XavierUniform (a
    bias: 0).

    Throws: Error(config) for a type that is not float32 or a name taken by a parameter of another shape.
    """
    return make_parameter("create_parameter", shape, dtype, attr, is_bias, default_initializer, name)


def make_parameter(
    layer: str,
    shape: Sequence[int],
    dtype: DTypeLike,
    attr: ParamLike,
    is_bias: bool,
    default_initializer: Initializer | None,
    name: str | None = None,
    named: bool = False,
) -> Parameter:
    """create_parameter() for a layer: LAYER_N.w_0 or .b_0, LAYER.w_0 when it is `named` already."""
    _mode.expect_static()
    attr = to_attr(attr, f"paddle.{layer}") or ParamAttr()
    if dtypes.name_of(dtype) != "float32":
        raise Error(
            "config", f"paddle.{layer}: a parameter of type {dtypes.name_of(dtype)}", "parameters are float32"
        )
    name = name or attr.name
    if name is None:
        prefix = layer if named else unique_name(layer)
        name = unique_name(prefix + (".b" if is_bias else ".w"))
    main, startup = default_main_program(), default_startup_program()
    while main.outer is not None:
        main = main.outer
    shape = [int(size) for size in shape]
    if min(shape, default=0) < 0:
        raise Error(
            "config",
            f"paddle.{layer}: a parameter of the shape {shape}",
            "its sizes are known, and none is below 0",
        )
    if name in main._parameters:
        known = main._parameters[name]
        if list(known.shape) != shape:
            raise Error(
                "config",
                f"parameter {name} has the shape {list(known.shape)}, and {shape} is asked for",
                "give one of the two another name in ParamAttr",
            )
        return known
    for program in (main, startup):
        program.native.add_variable(
            name,
            "float32",
            shape,
            persistable=True,
            trainable=bool(attr.trainable),
            stop_gradient=not attr.trainable,
        )
    initializer = attr.initializer or initializers.of_layer(is_bias, default_initializer)
    initializer.append(startup, name, shape)
    # Scripts ask the start-up program, too, which of its variables are parameters.
    startup._variables[name] = Parameter(startup, name)
    parameter = main.add_parameter(name, attr.regularizer, attr.learning_rate, bool(attr.need_clip))
    parameter.startup, parameter.gradient_clip_attr = startup, attr.gradient_clip
    parameter.do_model_average = bool(attr.do_model_average)
    return parameter
