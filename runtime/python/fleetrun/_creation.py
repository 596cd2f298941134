"""Functions that make variables from numbers: constants, ranges, random numbers. Part of
fleetrun/tensor.py."""

from __future__ import annotations

from fleetrun import _dtypes as dtypes
from fleetrun import _numbers
from fleetrun._error import Error
from fleetrun._graph import append
from fleetrun._types import Any, ArrayLike, DTypeLike, Shape, Variable


def full(
    shape: Shape, fill_value: float | Variable, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """A variable with one value; sizes and the value may be variables."""
    if isinstance(fill_value, Variable):
        return _filled(full(shape, 0.0, dtype), fill_value)
    attributes = {"value": float(fill_value), "dtype": dtypes.name_of(dtype or "float32")}
    inputs, sizes = _numbers.resolve("paddle.full", [], shape=_numbers.listed(shape))
    operator = "fill_dynamic" if inputs else "fill_constant"
    return append("fill_constant", operator, inputs, {**attributes, **sizes})


def _filled(zeros: Variable, value: Variable) -> Variable:
    value = value.reshape([]).cast(zeros.dtype)
    value.stop_gradient = True  # as in Paddle
    return append("fill_constant", "elementwise_add", [zeros, value])


def ones(shape: Shape, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """full() of 1."""
    return full(shape, 1.0, dtype)


def zeros(shape: Shape, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """full() of 0."""
    return full(shape, 0.0, dtype)


def full_like(
    x: Variable, fill_value: float | Variable, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """x's shape with one value."""
    if isinstance(fill_value, Variable):
        return _filled(full_like(x, 0.0, dtype), fill_value)
    return append(
        "fill_any_like",
        "fill_any_like",
        [x],
        {"value": float(fill_value), "dtype": dtypes.name_of(dtype or x.dtype)},
    )


def ones_like(x: Variable, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """full_like() of 1."""
    return full_like(x, 1.0, dtype)


def zeros_like(x: Variable, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """full_like() of 0."""
    return full_like(x, 0.0, dtype)


def to_tensor(
    data: ArrayLike | Variable, dtype: DTypeLike | None = None, place: Any = None, stop_gradient: bool = True
) -> Variable:
    """A constant with the values of an array, a list or a number; fractions are float32 unless `dtype` says
    otherwise."""
    if isinstance(data, Variable):
        return data
    import numpy

    array = numpy.asarray(data)
    if array.dtype.kind not in "fiub":
        raise Error("config", f"paddle.to_tensor({data!r}): that is not an array of numbers")
    if (
        dtype is None
        and array.dtype == numpy.float64
        and not isinstance(data, (numpy.ndarray, numpy.generic))
    ):
        dtype = "float32"
    name = dtypes.name_of(dtype or array.dtype)
    return append(
        "assign_value",
        "assign_value",
        [],
        {"shape": list(array.shape), "values": [float(value) for value in array.ravel()], "dtype": name},
    )


def arange(
    start: float | Variable = 0,
    end: float | Variable | None = None,
    step: float | Variable = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """start, start + step, … below `end`; arange(n) counts from 0. Integers unless one of the three is a
    fraction."""
    if end is None:
        start, end = 0, start
    bounds: list[Any] = [start, end, step]
    if not any(isinstance(bound, float) for bound in bounds):
        inputs, attributes = _numbers.resolve("paddle.arange", [], bounds=bounds)
        kind = dtypes.name_of(dtype or "int64")
        return append("range", "range", inputs, {**attributes, "dtype": kind})
    if _numbers.has_variable(bounds):
        raise Error("config", "paddle.arange: a variable beside a fraction is not supported", "use integers")
    return append(
        "range",
        "range",
        [],
        {"values": [float(bound) for bound in bounds], "dtype": dtypes.name_of(dtype or "float32")},
    )


def linspace(
    start: float, stop: float, num: int, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """`num` values from start to stop, equally far apart."""
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    return to_tensor([start + step * place for place in range(num)], dtype or "float32")


def eye(
    num_rows: int, num_columns: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """1 on the diagonal, else 0."""
    columns = num_rows if num_columns is None else num_columns
    return to_tensor(
        [[float(row == column) for column in range(columns)] for row in range(num_rows)], dtype or "float32"
    )


def _random(kind, shape, first, second, dtype=None, seed=0):
    inputs, sizes = _numbers.resolve("paddle." + kind, [], shape=_numbers.listed(shape))
    attributes = {
        **sizes,
        "kind": kind,
        "first": float(first),
        "second": float(second),
        "dtype": dtypes.name_of(dtype or "float32"),
    }
    if seed:
        attributes["seed"] = int(seed)
    return append("random", "random", inputs, attributes)


def rand(shape: Shape, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """Uniform in [0, 1): new values in every run."""
    return _random("uniform", shape, 0.0, 1.0, dtype)


def uniform(
    shape: Shape,
    dtype: DTypeLike | None = None,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Uniform in [min, max): new values in every run."""
    return _random("uniform", shape, min, max, dtype, seed)


def normal(
    mean: float = 0.0, std: float = 1.0, shape: Shape | None = None, name: str | None = None
) -> Variable:
    """Normal with this mean and deviation, which are numbers: new values in every run."""
    if isinstance(mean, Variable) or isinstance(std, Variable):
        raise Error(
            "config",
            "paddle.normal: a mean or std that is a variable is not supported",
            "scale paddle.randn instead",
        )
    return _random("normal", [1] if shape is None else shape, mean, std)


def randn(shape: Shape, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """Normal with mean 0 and deviation 1: new values in every run."""
    return _random("normal", shape, 0.0, 1.0, dtype)


def randint(
    low: int = 0,
    high: int | None = None,
    shape: Shape = [1],  # noqa: B006, Paddle's default
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """Integers in [low, high), in [0, low) without `high`: new ones in every run."""
    if high is None:
        low, high = 0, low
    return _random("integer", shape, low, high, dtype or "int64")


def randperm(n: int, dtype: DTypeLike = "int64", name: str | None = None) -> Variable:
    """0 … n-1 in random order, another one in every run."""
    return permutation(n, dtype)


def permutation(n, dtype, seed=0):
    """randperm(), the same one in every process where there is a seed."""
    made = append("randperm", "permutation", [], {"n": int(n), **({"seed": int(seed)} if seed else {})})
    return made if dtypes.name_of(dtype) == "int64" else made.cast(dtype)


def bernoulli(x: Variable, name: str | None = None) -> Variable:
    """1 with the probability that x gives, else 0. Shape: that of x, float32."""
    return append("bernoulli", "bernoulli", [x])


def multinomial(
    x: Variable, num_samples: int = 1, replacement: bool = False, name: str | None = None
) -> Variable:
    """Places drawn in proportion to x. Shape: x[.., places] float32 -> [.., num_samples] int64."""
    return append(
        "multinomial", "multinomial", [x], {"num_samples": int(num_samples), "replacement": bool(replacement)}
    )


def meshgrid(*args: Any, **kwargs: Any) -> list[Variable]:
    """Each of n vectors repeated to the grid that they span. Shape: n times [size of each, in order]."""
    vectors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    sizes = [one.numel() if one.size < 0 else one.size for one in vectors]
    made = []
    for place, vector in enumerate(vectors):
        grid = [1] * len(vectors)
        grid[place] = -1
        made.append(vector.reshape(grid).expand(sizes))
    return made
