"""The types that signatures are made of, for the modules above the graph to import in one go."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from fleetrun._dtypes import DType, DTypeLike
from fleetrun._graph import Program
from fleetrun._numbers import ArrayLike, Operand, Shape
from fleetrun._param_attr import ParamLike
from fleetrun._scope import Scope
from fleetrun._variable import Parameter, Variable
from fleetrun.nn.initializer import Initializer
from fleetrun.regularizer import WeightDecay

# Variables, or their names.
Fetches: TypeAlias = Variable | str | Sequence[Variable | str]

__all__ = [
    "Any", "ArrayLike", "Callable", "DType", "DTypeLike", "Fetches", "Initializer", "Iterable", "Iterator",
    "Mapping", "Operand", "Parameter", "ParamLike", "Program", "Scope", "Sequence", "Shape", "Variable",
    "WeightDecay",
]  # fmt: skip
