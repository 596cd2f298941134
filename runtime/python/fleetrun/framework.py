"""Programs and variables as a script sees them; each holds a program of the native engine.

The default programs, the unique names and the global scope belong to the process, as in Paddle: a script
builds into whatever program_guard, or else the process, says. Building is single-threaded.
Source: documents 002 and 003.
"""

import contextlib
import functools
import linecache
import os
import sys
import threading

from fleetrun import _lazy, _native, _dtypes as dtypes
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr, to_attr

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_names = {}
_scope = None
_seed = 0
_parameter_count = 0


def unique_name(prefix):
    """`prefix`_N, N counting from 0 per prefix: servers and trainers that run one script get the same names."""
    number = _names.get(prefix, 0)
    _names[prefix] = number + 1
    return f"{prefix}_{number}"


@contextlib.contextmanager
def unique_name_guard(new_generator=None):
    """Within `with`, names are numbered from 0 again."""
    global _names
    refuse("paddle.utils.unique_name.guard", new_generator=(new_generator, None))
    before, _names = _names, {}
    try:
        yield
    finally:
        _names = before


class Program:
    """Variables and operators in order. `random_seed` 0: fresh random numbers in every run of a start-up program."""

    def __init__(self, native=None):
        self.native = native if native is not None else _native.Program()
        self.native.random_seed = self.native.random_seed or _seed
        self._variables = {}
        self._parameters = {}
        # What sparse_embedding calls say of their tables, by parameter (static/lookups.py).
        self.lookups = {}
        self._training = None
        self._origin = None
        self._cloned_at = 0
        # DataLoaders that Executor.run asks for what is not fed (io/generator_loader.py).
        self.loaders = []
        # The executor's: what runs this program, and over which scope; and who does: one thread at a time.
        self.runner = None
        self.turn = threading.RLock()
        # after_run(native scope): what the executor calls when this program has run; None for nothing.
        self.after_run = None

    @property
    def training(self):
        """The tables that an optimizer planned for this program or the one it was cloned from (static/training.py)."""
        return self._training or (self._origin.training if self._origin else None)

    @training.setter
    def training(self, training):
        self._training = training

    @property
    def is_trained(self):
        """Whether minimize() was called on this very program."""
        return self._training is not None

    @property
    def random_seed(self):
        """The seed of dropout and, for a start-up program, of the initial values; 0 for fresh numbers."""
        return self.native.random_seed

    @random_seed.setter
    def random_seed(self, seed):
        self.native.random_seed = int(seed)

    @property
    def _fleet_opt(self):
        """None, or after a distributed minimize() what scripts look at: empty, and nothing can be put in."""
        from fleetrun.static.training import FixedOptions

        return FixedOptions() if self.training is not None else None

    def global_block(self):
        """The one block that a program has: itself."""
        return self

    current_block = global_block

    def var(self, name):
        """The variable of this name. Throws: Error(config) naming the nearest one when there is none."""
        known = self._variables.get(name)
        if known is None:
            self.native.variable(name)
            known = self._variables[name] = Variable(self, name)
        return known

    def has_var(self, name):
        """Whether there is a variable of this name."""
        return self.native.has_variable(name)

    @property
    def vars(self):
        """All variables by name."""
        return {name: self.var(name) for name in self.native.variable_names()}

    def list_vars(self):
        """All variables, by name."""
        return list(self.vars.values())

    def all_parameters(self):
        """The parameters in the order in which they were made."""
        return list(self._parameters.values())

    @property
    def ops(self):
        """The operators in order, each with .type, .inputs, .outputs and .attributes."""
        return self.native.operators()

    def state_dict(self, mode="all", scope=None):
        """{name: value in the scope} of what the program keeps: mode "all", "param" (parameters) or "opt" (the rest).

        Throws: Error(config) for a program that has no values yet.
        """
        if mode not in ("all", "param", "opt"):
            raise Error("config", f"Program.state_dict(mode={mode!r})", 'use "all", "param" or "opt"')
        scope, values = scope or global_scope(), {}
        for name in self.native.variable_names():
            if not self.native.variable(name).persistable or (mode != "all" and (name in self._parameters) != (mode == "param")):
                continue
            values[name] = scope.find_var(name)
            if values[name] is None:
                raise Error("config", f"{name} has no value yet", "run the start-up program first")
        return values

    def set_state_dict(self, state_dict, scope=None):
        """Copies values, by name, into the scope. Throws: Error(config) for one of another shape."""
        import numpy

        for name, value in state_dict.items():
            if not self.native.has_variable(name):
                continue
            value, shape = numpy.asarray(value), self.native.variable(name).shape
            if list(value.shape) != list(shape):
                raise Error("config", f"{name} is {list(shape)} in the program, and {list(value.shape)} in the state")
            (scope or global_scope()).var(name).set(value)

    def clone(self, for_test=False):
        """A copy; for_test drops backward and updates, and switches dropout off. Parameters are shared by name."""
        copy = Program(self.native.clone_for_test() if for_test else self.native.copy())
        copy._parameters = {name: copy._adopt(parameter) for name, parameter in self._parameters.items()}
        copy.lookups = dict(self.lookups)
        copy.loaders = list(self.loaders)
        copy._origin = self
        copy._cloned_at = copy.native.operator_count() if for_test else 0
        return copy

    def follow_origin(self):
        """Takes over what minimize() changed in the program that this one was cloned from for test: lookups whose
        rows moved to servers. Left as it is when operators were added since."""
        if self._cloned_at and self._cloned_at == self.native.operator_count():
            self.native = self._origin.native.clone_for_test()
        self._cloned_at = 0

    def _adopt(self, parameter):
        twin = Parameter(self, parameter.name, parameter.regularizer, parameter.rate_factor, parameter.need_clip)
        self._variables[parameter.name] = twin
        return twin

    def add_parameter(self, name, regularizer, rate_factor, need_clip=True):
        """Registers the native variable `name` as a parameter."""
        parameter = Parameter(self, name, regularizer, rate_factor, need_clip)
        self._variables[name] = self._parameters[name] = parameter
        return parameter

    def to_dot(self):
        """The program as text for graphviz: `dot -Tsvg` draws operators as boxes, what is fed or kept as ellipses."""
        return self.native.to_dot()

    def __str__(self):
        return str(self.native)

    to_string = lambda self, throw_on_error=False, with_details=False: str(self)  # noqa: E731


class Variable:
    """A named tensor of a program. Arithmetic on it appends operators (fleetrun/tensor.py)."""

    def __init__(self, program, name):
        self.program = program
        self.name = name

    @property
    def native(self):
        """The engine's variable, as it is now."""
        return self.program.native.variable(self.name)

    @property
    def shape(self):
        """Sizes; -1 for one that is known only when the program runs."""
        return tuple(self.native.shape)

    @property
    def T(self):
        """With its axes in reverse order."""
        return _tensor().transpose(self, list(range(self.ndim))[::-1])

    @property
    def size(self):
        """Number of values; -1 when it is known only when the program runs."""
        import math

        return -1 if min(self.shape, default=1) < 0 else math.prod(self.shape)

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.native.shape)

    @property
    def dtype(self):
        """Its DType."""
        return dtypes.of(self.native.type)

    @property
    def lod_level(self):
        """1 for a slot with a variable number of values per example, else 0."""
        return self.native.lod_level

    @functools.cached_property
    def is_data(self):
        """Whether it is fed."""
        return self.native.is_data

    @property
    def persistable(self):
        """Whether it keeps its value from one run to the next."""
        return self.native.persistable

    @property
    def block(self):
        """The program's block."""
        return self.program

    @property
    def stop_gradient(self):
        """True: no gradient flows through it."""
        return self.native.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stop):
        self.program.native.set_stop_gradient(self.name, bool(stop))

    def __repr__(self):
        return f"var {self.name} : shape{self.shape}, dtype={self.dtype.name}, stop_gradient={self.stop_gradient}"

    def __bool__(self):
        raise Error("config", f"variable {self.name} has no value while the program is being built",
                    "fetch it with Executor.run and decide on the fetched array")

    def __len__(self):
        if not self.shape or self.shape[0] < 0:
            raise Error("config", f"variable {self.name} has no fixed length, its shape is {list(self.shape)}")
        return self.shape[0]

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def __add__(self, other):
        return _tensor().binary("add", self, other)

    def __radd__(self, other):
        return _tensor().binary("add", self, other)

    def __sub__(self, other):
        return _tensor().binary("subtract", self, other)

    def __rsub__(self, other):
        return _tensor().binary("subtract", other, self)

    def __mul__(self, other):
        return _tensor().binary("multiply", self, other)

    def __rmul__(self, other):
        return _tensor().binary("multiply", self, other)

    def __truediv__(self, other):
        return _tensor().binary("divide", self, other)

    def __rtruediv__(self, other):
        return _tensor().binary("divide", other, self)

    def __floordiv__(self, other):
        return _tensor().floor_divide(self, other)

    def __mod__(self, other):
        return _tensor().mod(self, other)

    def __lt__(self, other):
        return _tensor().less_than(self, other)

    def __le__(self, other):
        return _tensor().less_equal(self, other)

    def __gt__(self, other):
        return _tensor().greater_than(self, other)

    def __ge__(self, other):
        return _tensor().greater_equal(self, other)

    def __eq__(self, other):
        """Compares values when `other` is a variable or a number; a variable is no other thing's equal."""
        return _tensor().equal(self, other) if isinstance(other, (Variable, int, float)) else False

    def __ne__(self, other):
        return _tensor().not_equal(self, other) if isinstance(other, (Variable, int, float)) else True

    __hash__ = object.__hash__

    def __and__(self, other):
        return _tensor().logical_and(self, other)

    def __or__(self, other):
        return _tensor().logical_or(self, other)

    def __invert__(self):
        return _tensor().logical_not(self)

    def __rpow__(self, other):
        return _tensor().pow(_tensor().full_like(self, other), self)

    def __abs__(self):
        return _tensor().abs(self)

    def __neg__(self):
        return _tensor().scale(self, -1.0)

    def __matmul__(self, other):
        return _tensor().matmul(self, other)

    def __pow__(self, other):
        return _tensor().pow(self, other)

    def __getitem__(self, index):
        return _tensor().index(self, index)

    def __getattr__(self, name):
        methods = _tensor().METHODS
        if name in methods:
            function = methods[name]
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        from fleetrun._lazy import missing

        raise AttributeError(missing("paddle.Tensor", name, set(methods) | set(dir(type(self)))))


class Parameter(Variable):
    """A variable that lives in the scope and that optimizers update."""

    def __init__(self, program, name, regularizer=None, rate_factor=1.0, need_clip=True):
        super().__init__(program, name)
        self.regularizer = regularizer
        self.rate_factor = rate_factor
        self.need_clip = need_clip

    @property
    def trainable(self):
        """Whether optimizers update it."""
        return self.native.trainable

    def __repr__(self):
        return "persist " + ("trainable " if self.trainable else "") + "param" + super().__repr__()[3:]


def _tensor():
    from fleetrun import tensor

    return tensor


class _Defaults:
    main = None
    startup = None


def default_main_program():
    """The program that calls build into; made on first use."""
    if _Defaults.main is None:
        _Defaults.main = Program()
    return _Defaults.main


def default_startup_program():
    """The program that gives parameters their first values."""
    if _Defaults.startup is None:
        _Defaults.startup = Program()
    return _Defaults.startup


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """Within `with`, calls build into these programs instead."""
    before = (default_main_program(), default_startup_program())
    _Defaults.main = main_program
    _Defaults.startup = startup_program or before[1]
    try:
        yield
    finally:
        _Defaults.main, _Defaults.startup = before


@contextlib.contextmanager
def name_scope(prefix=None):
    """Accepted: names are unique without it."""
    yield


def global_scope():
    """The process's scope: parameters and metrics by name, kept from run to run."""
    global _scope
    if _scope is None:
        _scope = Scope()
    return _scope


@contextlib.contextmanager
def scope_guard(scope):
    """Within `with`, `scope` is the global scope."""
    global _scope
    before, _scope = global_scope(), scope
    try:
        yield
    finally:
        _scope = before


class Scope:
    """Values by name. find_var(name).get_tensor() gives the tensor; numpy.array(tensor) its values."""

    def __init__(self):
        self.native = _native.Scope()

    def find_var(self, name):
        """The value of this name, or None."""
        return ScopeVariable(self.native, name) if self.native.has(name) else None

    def var(self, name):
        """The value of this name, made empty when it is not there."""
        self.native.make(name)
        return ScopeVariable(self.native, name)

    def local_var_names(self):
        """The names of all values."""
        return self.native.names()


class ScopeVariable:
    """One value of a Scope: numpy reads it, set() replaces it."""

    def __init__(self, scope, name):
        self._scope = scope
        self.name = name

    def get_tensor(self):
        """Itself: the tensor."""
        return self

    def __array__(self, dtype=None, copy=None):
        import numpy

        value = numpy.asarray(self._scope.value(self.name))
        return value if dtype is None else value.astype(dtype)

    def shape(self):
        """Sizes."""
        return list(self.__array__().shape)

    _get_dims = shape  # what scripts call that zero a metric's counters

    def set(self, array, place=None):
        """Copies `array` in; type and shape become the array's."""
        import numpy

        self._scope.set_value(self.name, numpy.ascontiguousarray(array))


def seed(seed):  # noqa: A001, Paddle's argument name
    """Seeds initial values and dropout of programs, those that exist and those to come; 0 for fresh numbers."""
    global _seed
    _seed = int(seed)
    for program in (default_main_program(), default_startup_program()):
        program.random_seed = _seed


def append(kind, operator, inputs, attributes=None, outputs=None, layer=None):
    """Appends `operator` and returns its outputs as Variables: `outputs` (names), or one named LAYER.tmp_0, the layer
    being `kind`_N when none is given. An input of None is one that is not given."""
    program = default_main_program()
    if outputs is None:
        outputs = [unique_name((layer or unique_name(kind)) + ".tmp")]
    for variable in inputs:
        if variable is not None and not isinstance(variable, Variable):
            raise Error("config", f"paddle.{kind}: {variable!r} is no variable of a program",
                        "inputs come from paddle.static.data, parameters or other calls")
    names = ["" if variable is None else variable.name for variable in inputs]
    program.native.append(operator, names, outputs, attributes or {}, _script_line())
    made = [program.var(name) for name in outputs]
    return made[0] if len(made) == 1 else made


def _script_line():
    """The line of the script that led here, for errors: "train.py:12: y = paddle.add(a, b)"."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    return f"{file}:{number}: {linecache.getline(file, number).strip()}".removesuffix(": ")


def create_parameter(shape, dtype="float32", name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter of `shape`, initialised by its attribute, else `default_initializer`, else XavierUniform (a bias: 0).

    Throws: Error(config) for a type that is not float32 or a name taken by a parameter of another shape.
    """
    return make_parameter("create_parameter", shape, dtype, attr, is_bias, default_initializer, name)


def make_parameter(layer, shape, dtype, attr, is_bias, default_initializer, name=None, named=False):
    """create_parameter() for a layer: the parameter becomes LAYER_N.w_0 or .b_0, LAYER.w_0 when it is already `named`."""
    from fleetrun.nn import initializer as initializers

    attr = to_attr(attr, f"paddle.{layer}") or ParamAttr()
    if dtypes.name_of(dtype) != "float32":
        raise Error("config", f"paddle.{layer}: a parameter of type {dtypes.name_of(dtype)}", "parameters are float32")
    name = name or attr.name
    if name is None:
        prefix = layer if named else unique_name(layer)
        name = unique_name(prefix + (".b" if is_bias else ".w"))
    main, startup = default_main_program(), default_startup_program()
    shape = [int(size) for size in shape]
    if min(shape, default=0) < 0:
        raise Error("config", f"paddle.{layer}: a parameter of the shape {shape}", "its sizes are known, and none is below 0")
    if name in main._parameters:
        known = main._parameters[name]
        if list(known.shape) != shape:
            raise Error("config", f"parameter {name} has the shape {list(known.shape)}, and {shape} is asked for",
                        "give one of the two another name in ParamAttr")
        return known
    for program in (main, startup):
        program.native.add_variable(name, "float32", shape, persistable=True, trainable=bool(attr.trainable),
                                    stop_gradient=not attr.trainable)
    initializer = attr.initializer or default_initializer
    if initializer is None:
        initializer = initializers.Constant(0.0) if is_bias else initializers.XavierUniform()
    initializer.append(startup, name, shape)
    return main.add_parameter(name, attr.regularizer, attr.learning_rate, bool(attr.need_clip))


__getattr__, _ = _lazy.attach(__name__, "paddle.framework", {
    "core": "core",
    "io_utils": "static.io_utils",
    **_lazy.names("_saving", "save load"),
    **_lazy.names("_mode", "get_default_dtype set_default_dtype in_dynamic_mode"),
    **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace"),
})
