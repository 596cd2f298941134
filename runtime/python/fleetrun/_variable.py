"""Variables: named tensors of a program. What computes with them lies above: fleetrun/_methods.py."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from fleetrun import _dtypes as dtypes
from fleetrun import _native
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._operators import Operators
from fleetrun._scope import global_scope


class Description:
    """The name, shape and type of a variable, as calls."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def name(self) -> str:
        """Its name."""
        return self._variable.name

    def shape(self) -> list[int]:
        """Sizes; -1 for one that is known only when the program runs."""
        return list(self._variable.shape)

    def set_shape(self, shape: Sequence[int]) -> None:
        """Declares it of another shape, -1 for a size that is known only when the program runs."""
        self._variable.program.native.set_shape(self._variable.name, [int(size) for size in shape])

    def dtype(self) -> dtypes.DType:
        """Its DType."""
        return self._variable.dtype

    def lod_level(self) -> int:
        """1 for a variable of sequences, else 0."""
        return self._variable.lod_level

    def persistable(self) -> bool:
        """Whether it keeps its value from one run to the next."""
        return self._variable.persistable

    def need_check_feed(self) -> bool:
        """True: what is fed has the declared shape and type."""
        return True

    def set_need_check_feed(self, need_check_feed: bool) -> None:
        """Accepted: a feed of another shape or type than declared is an error that says so, with either."""


class Size(int):
    """How many values a variable has, -1 where that is known only when the program runs. Called, as in static
    programs of Paddle, a variable of that number."""

    _variable: Variable

    def __call__(self) -> Variable:
        # By name: that module lies above this one.
        made: Variable = importlib.import_module("fleetrun.tensor").numel(self._variable)
        return made


class Variable(Operators):
    """A named tensor of a program. Arithmetic on it appends operators (fleetrun/tensor.py)."""

    def __init__(self, program: Any, name: str) -> None:
        self.program = program
        self.name = name

    @property
    def native(self) -> _native.Variable:
        """The engine's variable, as it is now."""
        return self.program.native.variable(self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes; -1 for one that is known only when the program runs."""
        return tuple(self.native.shape)

    @property
    def T(self) -> Variable:
        """With its axes in reverse order; a vector is itself."""
        return self if self.ndim == 1 else self.transpose(list(range(self.ndim))[::-1])

    @property
    def size(self) -> Size:
        """Number of values; -1 when it is known only when the program runs. size() is a variable."""
        size = Size(-1 if min(self.shape, default=1) < 0 else math.prod(self.shape))
        size._variable = self
        return size

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.native.shape)

    @property
    def dtype(self) -> dtypes.DType:
        """Its DType."""
        return dtypes.of(self.native.type)

    @property
    def type(self) -> str:
        """The kind, of core.VarDesc.VarType: gradients of rows are none of their own here."""
        return "LOD_TENSOR"

    @property
    def lod_level(self) -> int:
        """1 for a slot with a variable number of values per example, 2 for one of sequences, else 0."""
        return 2 if self.name in (self.program.beside("groups") or ()) else self.native.lod_level

    @functools.cached_property
    def is_data(self) -> bool:
        """Whether it is fed."""
        return self.native.is_data

    @property
    def persistable(self) -> bool:
        """Whether it keeps its value from one run to the next."""
        return self.native.persistable

    @persistable.setter
    def persistable(self, keep: bool) -> None:
        self.program.native.set_persistable(self.name, bool(keep))

    def item(self) -> Variable:
        """Itself, as in Paddle's programs: its value is known only when the program runs. Throws:
        Error(config) for a variable of several values."""
        if len(self.shape) > 1:
            raise Error(
                "config", f"item() of {self.name} {list(self.shape)}: it is for a variable of one value"
            )
        return self

    @property
    def grad_name(self) -> str:
        """The name of its gradient."""
        return self.name + "@GRAD"

    @property
    def is_parameter(self) -> bool:
        """Whether it is a parameter, of one that optimizers move and of one that they do not."""
        return isinstance(self, Parameter)

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """What it is, for people."""
        return str(self)

    def dim(self) -> int:
        """Number of axes."""
        return self.ndim

    ndimension = dim

    def detach(self) -> Variable:
        """A copy through which no gradient flows."""
        copy = self.assign()
        copy.stop_gradient = True
        return copy

    def cpu(self) -> Variable:
        """A copy: the engine runs on the CPU."""
        return self.assign()

    def element_size(self) -> int:
        """The bytes of one value."""
        import numpy

        return numpy.dtype(self.dtype.name).itemsize

    def get_value(self, scope: Any = None) -> Any:
        """What the scope (the global one) holds of it. Throws: Error(config) before it has a value."""
        found = (scope or global_scope()).find_var(self.name)
        if found is None:
            raise Error("config", f"{self.name} has no value yet", "run the start-up program first")
        return found.get_tensor()

    def set_value(self, value: Any, scope: Any = None) -> None:
        """Copies an array of its shape into the scope. Throws: Error(config) for one of another shape and
        for a variable, which has no values before its program runs."""
        import numpy

        if isinstance(value, Variable):
            raise Error(
                "config",
                f"set_value of {self.name}: {value.name} is a variable, whose values only a run gives",
                "give it an array, or the parameter an initializer (ParamAttr)",
            )
        array = numpy.asarray(value, dtype=self.dtype.name)
        if len(array.shape) != self.ndim or any(
            want not in (-1, size) for want, size in zip(self.shape, array.shape)
        ):
            raise Error(
                "config", f"set_value of {self.name} {list(self.shape)}: {list(array.shape)} is given"
            )
        (scope or global_scope()).var(self.name).set(array)

    @property
    def desc(self) -> Description:
        """What Paddle's C++ object of a variable is asked."""
        return Description(self)

    @property
    def block(self) -> Any:
        """The program's block."""
        return self.program

    @property
    def stop_gradient(self) -> bool:
        """True: no gradient flows through it."""
        return self.native.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        self.program.native.set_stop_gradient(self.name, bool(stop))

    def __repr__(self) -> str:
        kind = f"dtype={self.dtype.name}, stop_gradient={self.stop_gradient}"
        return f"var {self.name} : shape{self.shape}, {kind}"

    def __bool__(self) -> bool:
        """True, as in Paddle, where scripts ask whether there is a variable. Throws: Error(config) for a
        bool, which scripts take for its value."""
        if self.dtype.name == "bool":
            raise Error(
                "config",
                f"variable {self.name} has no value while the program is being built",
                "use paddle.static.nn.cond or paddle.where, or fetch it and decide on the fetched array",
            )
        warn_once(
            "variable as a bool",
            f"variable {self.name} counts as true, whatever its value; write `is not None`",
        )
        return True

    def __len__(self) -> int:
        if not self.shape or self.shape[0] < 0:
            raise Error(
                "config", f"variable {self.name} has no fixed length, its shape is {list(self.shape)}"
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[index] for index in range(len(self)))


class Parameter(Variable):
    """A variable that lives in the scope and that optimizers update."""

    # The program that gives it its first value.
    startup: Any = None
    # ParamAttr(gradient_clip=…), or fluid.clip.set_gradient_clip() with its name.
    gradient_clip_attr: Any = None
    # Whether averages over the steps have it (static/averages.py).
    do_model_average = True

    def __init__(
        self,
        program: Any,
        name: str,
        regularizer: Any = None,
        rate_factor: float = 1.0,
        need_clip: bool = True,
    ) -> None:
        super().__init__(program, name)
        self.regularizer = regularizer
        self.rate_factor = rate_factor
        self.need_clip = need_clip

    @property
    def trainable(self) -> bool:
        """Whether optimizers update it."""
        return self.native.trainable

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self.program.native.set_trainable(self.name, bool(trainable))
        if trainable:
            self.stop_gradient = False

    def __repr__(self) -> str:
        return "persist " + ("trainable " if self.trainable else "") + "param" + super().__repr__()[3:]
