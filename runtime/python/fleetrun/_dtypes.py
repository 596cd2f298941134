"""The types a variable may have: float32, float64, int32, int64, bool."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetrun._error import Error

if TYPE_CHECKING:
    import numpy


class DType:
    """One type; equal to its name, so that `var.dtype == "float32"` holds too."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> builtins.bool:
        return self.name == (other.name if isinstance(other, DType) else _plain_name(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"paddle.{self.name}"


float32 = DType("float32")
float64 = DType("float64")
int32 = DType("int32")
int64 = DType("int64")
bool = DType("bool")
# Types that Paddle has too: names to compare with, which no variable of a program can have.
uint8, int8, int16, float16, bfloat16, complex64, complex128 = (
    DType(_name) for _name in ("uint8", "int8", "int16", "float16", "bfloat16", "complex64", "complex128")
)

# What names a type: itself, "float32", numpy.float32, numpy.dtype("float32").
if TYPE_CHECKING:
    DTypeLike: TypeAlias = DType | str | type | numpy.dtype
else:
    DTypeLike = Any
ALL = {dtype.name: dtype for dtype in (float32, float64, int32, int64, bool)}


def _plain_name(dtype):
    """ "float32" from a string, a numpy dtype or a numpy type, without importing numpy."""
    if isinstance(dtype, str):
        return dtype.removeprefix("paddle.")
    name: Any = getattr(dtype, "name", None) or getattr(dtype, "__name__", "")
    return {"bool_": "bool", "float": "float64", "int": "int64"}.get(name, name)


def _name_in_numpy(name):
    """Of "float", "double", "long", "f4" and the like, which are names of NumPy's."""
    import numpy

    try:
        return numpy.dtype(name).name
    except TypeError:
        return name


def name_of(dtype: DTypeLike) -> str:
    """The type's name. Throws: Error(config) for a type that fleetrun does not have."""
    name = dtype.name if isinstance(dtype, DType) else _plain_name(dtype)
    if name not in ALL and isinstance(dtype, str):
        name = _name_in_numpy(name)
    if name not in ALL:
        raise Error("config", f"data type {dtype!r} is not supported", f"use one of {', '.join(ALL)}")
    return name


def of(dtype: DTypeLike) -> DType:
    """The DType of anything that name_of() takes."""
    return ALL[name_of(dtype)]


def iinfo(dtype: DTypeLike) -> Any:
    """numpy.iinfo of a type of integers: min, max, bits."""
    import numpy

    return numpy.iinfo(dtype.name if isinstance(dtype, DType) else _plain_name(dtype))


def finfo(dtype: DTypeLike) -> Any:
    """numpy.finfo of a type of fractions: min, max, eps, tiny, bits."""
    import numpy

    return numpy.finfo(dtype.name if isinstance(dtype, DType) else _plain_name(dtype))
