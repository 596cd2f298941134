"""Variables: named tensors of a program. What computes with them lies above: fleetrun/_methods.py fills METHODS."""

import functools
import math

from fleetrun import _dtypes as dtypes
from fleetrun._error import Error
from fleetrun._lazy import missing

# What a variable has as a method, operators among them: {name: function of the variable and what else it takes}.
METHODS = {}


def _operator(name, swapped=False):
    def method(self, other):
        return METHODS[name](other, self) if swapped else METHODS[name](self, other)

    return method


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
        return METHODS["transpose"](self, list(range(self.ndim))[::-1])

    @property
    def size(self):
        """Number of values; -1 when it is known only when the program runs."""
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

    __add__ = _operator("add")
    __radd__ = _operator("add")
    __sub__ = _operator("subtract")
    __rsub__ = _operator("subtract", swapped=True)
    __mul__ = _operator("multiply")
    __rmul__ = _operator("multiply")
    __truediv__ = _operator("divide")
    __rtruediv__ = _operator("divide", swapped=True)
    __floordiv__ = _operator("floor_divide")
    __mod__ = _operator("mod")
    __pow__ = _operator("pow")
    __rpow__ = _operator("__rpow__")
    __matmul__ = _operator("matmul")
    __lt__ = _operator("less_than")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater_than")
    __ge__ = _operator("greater_equal")
    __and__ = _operator("logical_and")
    __or__ = _operator("logical_or")
    __getitem__ = _operator("__getitem__")

    def __eq__(self, other):
        """Compares values when `other` is a variable or a number; a variable is not equal to any other thing."""
        return METHODS["equal"](self, other) if isinstance(other, (Variable, int, float)) else False

    def __ne__(self, other):
        return METHODS["not_equal"](self, other) if isinstance(other, (Variable, int, float)) else True

    __hash__ = object.__hash__

    def __invert__(self):
        return METHODS["logical_not"](self)

    def __abs__(self):
        return METHODS["abs"](self)

    def __neg__(self):
        return METHODS["scale"](self, -1.0)

    def __getattr__(self, name):
        if name in METHODS and not name.startswith("_"):
            return functools.partial(METHODS[name], self)
        raise AttributeError(missing("paddle.Tensor", name, {*METHODS, *dir(type(self))}))


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
