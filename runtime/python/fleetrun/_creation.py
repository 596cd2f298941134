"""Functions that make variables from numbers: constants, ranges, random numbers. Part of fleetrun/tensor.py."""

import builtins

from fleetrun import _dtypes as dtypes, _numbers
from fleetrun._error import Error
from fleetrun._graph import append
from fleetrun._variable import Variable


def full(shape, fill_value, dtype=None, name=None):
    """A variable with one value; sizes may be variables."""
    attributes = {"value": float(fill_value), "dtype": dtypes.name_of(dtype or "float32")}
    inputs, sizes = _numbers.resolve("paddle.full", [], shape=_numbers.listed(shape))
    operator = "fill_dynamic" if inputs else "fill_constant"
    return append("fill_constant", operator, inputs, {**attributes, **sizes})


def ones(shape, dtype=None, name=None):
    """full() of 1."""
    return full(shape, 1.0, dtype)


def zeros(shape, dtype=None, name=None):
    """full() of 0."""
    return full(shape, 0.0, dtype)


def full_like(x, fill_value, dtype=None, name=None):
    """x's shape with one value."""
    return append("fill_any_like", "fill_any_like", [x], {
        "value": float(fill_value), "dtype": dtypes.name_of(dtype or x.dtype)})


def ones_like(x, dtype=None, name=None):
    """full_like() of 1."""
    return full_like(x, 1.0, dtype)


def zeros_like(x, dtype=None, name=None):
    """full_like() of 0."""
    return full_like(x, 0.0, dtype)


def to_tensor(data, dtype=None, place=None, stop_gradient=True):
    """A constant with the values of an array, a list or a number; fractions are float32 unless `dtype` says otherwise."""
    if isinstance(data, Variable):
        return data
    import numpy

    array = numpy.asarray(data)
    if array.dtype.kind not in "fiub":
        raise Error("config", f"paddle.to_tensor({data!r}): that is no array of numbers")
    if dtype is None and array.dtype == numpy.float64 and not isinstance(data, (numpy.ndarray, numpy.generic)):
        dtype = "float32"
    name = dtypes.name_of(dtype or array.dtype)
    return append("assign_value", "assign_value", [], {
        "shape": list(array.shape), "values": [float(value) for value in array.ravel()], "dtype": name})


def arange(start=0, end=None, step=1, dtype=None, name=None):
    """start, start + step, … below `end`; arange(n) counts from 0. Integers unless one of the three is a fraction."""
    if end is None:
        start, end = 0, start
    bounds = [start, end, step]
    if not any(isinstance(bound, float) for bound in bounds):
        inputs, attributes = _numbers.resolve("paddle.arange", [], bounds=bounds)
        kind = dtypes.name_of(dtype or "int64")
        return append("range", "range", inputs, {**attributes, "dtype": kind})
    if _numbers.has_variable(bounds):
        raise Error("config", "paddle.arange: a variable beside a fraction is not supported", "use integers")
    return append("range", "range", [], {"values": [float(bound) for bound in bounds],
                                                   "dtype": dtypes.name_of(dtype or "float32")})


def linspace(start, stop, num, dtype=None, name=None):
    """`num` values from start to stop, equally far apart."""
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    return to_tensor([start + step * place for place in range(num)], dtype or "float32")


def eye(num_rows, num_columns=None, dtype=None, name=None):
    """1 on the diagonal, else 0."""
    columns = num_rows if num_columns is None else num_columns
    return to_tensor([[float(row == column) for column in range(columns)] for row in range(num_rows)], dtype or "float32")


def _random(kind, shape, first, second, dtype=None, seed=0):
    inputs, sizes = _numbers.resolve("paddle." + kind, [], shape=_numbers.listed(shape))
    attributes = {**sizes, "kind": kind, "first": float(first), "second": float(second),
                  "dtype": dtypes.name_of(dtype or "float32")}
    if seed:
        attributes["seed"] = int(seed)
    return append("random", "random", inputs, attributes)


def rand(shape, dtype=None, name=None):
    """Uniform in [0, 1): new values in every run."""
    return _random("uniform", shape, 0.0, 1.0, dtype)


def uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None):  # noqa: A002, Paddle's argument names
    """Uniform in [min, max): new values in every run."""
    return _random("uniform", shape, min, max, dtype, seed)


def normal(mean=0.0, std=1.0, shape=None, name=None):
    """Normal with this mean and deviation, which are numbers: new values in every run."""
    if isinstance(mean, Variable) or isinstance(std, Variable):
        raise Error("config", "paddle.normal: a mean or std that is a variable is not supported",
                    "scale paddle.randn instead")
    return _random("normal", [1] if shape is None else shape, mean, std)


def randn(shape, dtype=None, name=None):
    """Normal with mean 0 and deviation 1: new values in every run."""
    return _random("normal", shape, 0.0, 1.0, dtype)


def randint(low=0, high=None, shape=[1], dtype=None, name=None):  # noqa: B006, Paddle's default
    """Integers in [low, high), in [0, low) without `high`: new ones in every run."""
    if high is None:
        low, high = 0, low
    return _random("integer", shape, low, high, dtype or "int64")


def randperm(n, dtype="int64", name=None):
    """0 … n-1 in random order, another one in every run."""
    made = append("randperm", "permutation", [], {"n": int(n)})
    return made if dtypes.name_of(dtype) == "int64" else made.cast(dtype)


def bernoulli(x, name=None):
    """1 with the probability that x gives, else 0. Shape: that of x, float32."""
    return append("bernoulli", "bernoulli", [x])


def multinomial(x, num_samples=1, replacement=False, name=None):
    """Places drawn in proportion to x. Shape: x[.., places] float32 -> [.., num_samples] int64."""
    return append("multinomial", "multinomial", [x], {"num_samples": int(num_samples),
                                                                "replacement": bool(replacement)})


def meshgrid(*args, **kwargs):
    """Each of n vectors repeated to the grid that they span. Shape: n times [size of each, in order]."""
    vectors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    made = []
    for place, vector in enumerate(vectors):
        grid = [1] * len(vectors)
        grid[place] = vector.shape[0]
        made.append(vector.reshape(grid).expand([other.shape[0] for other in vectors]))
    return made


def diag(x, offset=0, padding_value=0, name=None):
    """A vector of fixed size on a diagonal, `padding_value` elsewhere."""
    if x.ndim != 1 or builtins.min(x.shape) < 0 or offset:
        raise Error("config", f"paddle.diag of {x.name} {list(x.shape)} with offset={offset} is not supported",
                    "give it a vector of fixed size")
    unit = eye(x.shape[0], dtype=x.dtype)
    made = unit * x.unsqueeze(0)
    return made if padding_value == 0 else made + (1.0 - unit) * float(padding_value)
