"""Functions over variables. Each appends operators of the engine (runtime/engine/*_operators.cc) and returns the
result's variable; names, arguments and defaults are Paddle's. Shapes are checked by the engine when the operator is
appended: Throws: Error(config) naming the operator and the shapes.
"""

import builtins
import numbers

from fleetrun import _dtypes as dtypes, _numbers
from fleetrun._arguments import refuse
from fleetrun._creation import (arange, bernoulli, diag, eye, full, full_like, linspace, meshgrid,  # noqa: F401
                                multinomial, normal, ones, ones_like, rand, randint, randn, randperm, to_tensor, uniform,
                                zeros, zeros_like)
from fleetrun._einsum import einsum  # noqa: F401
from fleetrun._error import Error
from fleetrun._graph import append, unique_name
from fleetrun._picking import (argmax, argmin, argsort, cumsum, flip, gather, gather_nd, index_select,  # noqa: F401
                               masked_select, nonzero, roll, scatter, sort, take_along_axis, topk, unique)
from fleetrun._variable import Variable

_BINARY = {"add": "elementwise_add", "subtract": "elementwise_sub", "multiply": "elementwise_mul",
           "divide": "elementwise_div", "maximum": "elementwise_max", "minimum": "elementwise_min",
           "mod": "elementwise_mod", "floor_divide": "elementwise_floordiv"}


def binary(name, x, y):
    """`name` of _BINARY over two variables, of which one may be a number or an array."""
    x, y = _variable(x), _variable(y)
    if isinstance(y, numbers.Real) and not isinstance(y, bool):
        return _with_number(name, x, float(y))
    if isinstance(x, numbers.Real) and not isinstance(x, bool):
        return _number_first(name, float(x), y)
    return append(_BINARY[name], _BINARY[name], [x, y])


def _variable(value):
    """An array as a constant; variables and numbers as they are."""
    return to_tensor(value) if hasattr(value, "__array__") and getattr(value, "ndim", 0) else value


def _with_number(name, x, number):
    if x.dtype != dtypes.float32:
        return _with_constant(name, x, number)
    if name == "add":
        return scale(x, 1.0, number)
    if name == "subtract":
        return scale(x, 1.0, -number)
    if name == "multiply":
        return scale(x, number)
    if name == "divide":
        if number == 0:
            raise Error("config", f"{x.name} / 0")
        return scale(x, 1.0 / number)
    return append(_BINARY[name], _BINARY[name], [x, full_like(x, number)])


def _with_constant(name, x, number):
    """Integers stay integers beside a whole number, and become float32 beside a fraction or under a division."""
    if x.dtype in (dtypes.int32, dtypes.int64) and (number != int(number) or name == "divide"):
        return _with_number(name, cast(x, "float32"), number)
    if name in ("add", "subtract", "multiply") and x.dtype in (dtypes.int32, dtypes.int64):
        return scale(x, number) if name == "multiply" else scale(x, 1.0, number if name == "add" else -number)
    return append(_BINARY[name], _BINARY[name], [x, full_like(x, number)])


def _number_first(name, number, y):
    if y.dtype in (dtypes.int32, dtypes.int64) and (number != int(number) or name == "divide"):
        y = cast(y, "float32")
    if y.dtype != dtypes.float32 and name not in ("add", "multiply"):
        return append(_BINARY[name], _BINARY[name], [full_like(y, number), y])
    if name in ("add", "multiply"):
        return _with_number(name, y, number)
    if name == "subtract":
        return scale(y, -1.0, number)
    if name == "divide":
        return scale(append("reciprocal", "reciprocal", [y]), number)
    return _with_number(name, y, number)


def add(x, y, name=None):
    """x + y, with broadcasting."""
    return binary("add", x, y)


def subtract(x, y, name=None):
    """x - y, with broadcasting."""
    return binary("subtract", x, y)


def multiply(x, y, name=None):
    """x * y, value by value, with broadcasting."""
    return binary("multiply", x, y)


def divide(x, y, name=None):
    """x / y, value by value, with broadcasting."""
    return binary("divide", x, y)


def maximum(x, y, name=None):
    """The larger of x and y, value by value, with broadcasting."""
    return binary("maximum", x, y)


def minimum(x, y, name=None):
    """The smaller of x and y, value by value, with broadcasting."""
    return binary("minimum", x, y)


def mod(x, y, name=None):
    """The rest of x / y with y's sign, value by value, with broadcasting."""
    return binary("mod", x, y)


remainder = floor_mod = mod


def floor_divide(x, y, name=None):
    """x / y rounded down, value by value, with broadcasting."""
    return binary("floor_divide", x, y)


def pow(x, y, name=None):  # noqa: A001, the name scripts use
    """x to the power of a number or of a variable."""
    if isinstance(y, numbers.Real):
        return append("pow", "pow", [x], {"factor": float(y)})
    return append("elementwise_pow", "elementwise_pow", [x, y])


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale * x + bias, or scale * (x + bias)."""
    refuse("paddle.scale", act=(act, None))
    return append("scale", "scale", [x], {"scale": float(scale), "bias": float(bias),
                                                    "bias_after_scale": bool(bias_after_scale)})


def _unary(operator, text):
    def function(x, name=None):
        return append(operator, operator, [x])

    function.__name__ = function.__qualname__ = operator
    function.__doc__ = text
    return function


tanh = _unary("tanh", "The hyperbolic tangent, value by value.")
exp = _unary("exp", "e to the power of x, value by value.")
log = _unary("log", "The natural logarithm, value by value.")
log1p = _unary("log1p", "log(1 + x), value by value.")
sqrt = _unary("sqrt", "The square root, value by value.")
rsqrt = _unary("rsqrt", "1 / sqrt(x), value by value.")
square = _unary("square", "x * x, value by value.")
abs = _unary("abs", "The absolute value, value by value.")  # noqa: A001, the name scripts use
reciprocal = _unary("reciprocal", "1 / x, value by value.")
sin = _unary("sin", "The sine, value by value.")
cos = _unary("cos", "The cosine, value by value.")
tan = _unary("tan", "The tangent, value by value.")
erf = _unary("erf", "The error function, value by value.")
expm1 = _unary("expm1", "exp(x) - 1, value by value.")
log2 = _unary("log2", "The logarithm to base 2, value by value.")
log10 = _unary("log10", "The logarithm to base 10, value by value.")
floor = _unary("floor", "Rounded down, value by value.")
ceil = _unary("ceil", "Rounded up, value by value.")
round = _unary("round", "Rounded, halves away from 0, value by value.")  # noqa: A001, the name scripts use
sign = _unary("sign", "-1, 0 or 1, value by value.")
isnan = _unary("isnan", "Whether a value is NaN.")
isinf = _unary("isinf", "Whether a value is infinite.")
isfinite = _unary("isfinite", "Whether a value is neither NaN nor infinite.")


def clip(x, min=None, max=None, name=None):  # noqa: A002, Paddle's argument names
    """x cut to [min, max]; a bound of None is none."""
    for bound in (min, max):
        if isinstance(bound, Variable):
            raise Error("config", f"paddle.clip: the bound {bound.name} is a variable", "use paddle.maximum and paddle.minimum")
    largest = 3.4028234663852886e38
    return append("clip", "clip", [x], {"min": -largest if min is None else float(min),
                                                  "max": largest if max is None else float(max)})


def cast(x, dtype):
    """x in another type."""
    return append("cast", "cast", [x], {"dtype": dtypes.name_of(dtype)})


def assign(x, output=None):
    """A copy of a variable, or a constant of an array or number; into `output` when it is given."""
    x = to_tensor(x)
    return append("assign", "assign", [x], outputs=None if output is None else [output.name])


def matmul(x, y, transpose_x=False, transpose_y=False, name=None):
    """The matrix product. Shape: [.., N, K] x [.., K, M] with leading axes broadcast; [K] is a row of x, a column of y."""
    row, column = x.ndim == 1, y.ndim == 1
    x, y = unsqueeze(x, 0) if row else x, unsqueeze(y, 1) if column else y
    product = append("matmul", "matmul", [x, y], {"transpose_x": bool(transpose_x) and not row,
                                                            "transpose_y": bool(transpose_y) and not column})
    if row and column:
        return reshape(product, [])
    return squeeze(product, -2 if row else -1) if row or column else product


def mm(input, mat2, name=None):  # noqa: A002, Paddle's argument name
    """matmul()."""
    return matmul(input, mat2)


def dot(x, y, name=None):
    """The sum of products along the last axis. Shape: [N] x [N], or [B, N] x [B, N] -> [B]."""
    return sum(x * y, axis=-1)


def outer(x, y, name=None):
    """Every value of x times every one of y. Shape: [N] x [M] -> [N, M]."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])


def t(input, name=None):  # noqa: A002, Paddle's argument name
    """A matrix with its axes exchanged; a vector as it is."""
    if input.ndim > 2:
        raise Error("config", f"paddle.t of {input.name} {list(input.shape)}", "use paddle.transpose")
    return transpose(input, [1, 0]) if input.ndim == 2 else input


def bmm(x, y, name=None):
    """Matrix products, one per example. Shape: [B, N, K] x [B, K, M]."""
    return matmul(x, y)


def _axes(axis):
    if axis is None:
        return []
    if isinstance(axis, Variable):
        raise Error("config", f"the axis {axis.name} is a variable", "give axes as numbers")
    return [int(one) for one in axis] if isinstance(axis, (list, tuple)) else [int(axis)]


def _reduce(operator, kind, x, axis, keepdim):
    return append(kind, operator, [x], {"axis": _axes(axis), "keepdim": bool(keepdim)})


def mean(x, axis=None, keepdim=False, name=None):
    """The mean over `axis` (a number, a list, or None for all)."""
    return _reduce("mean", "mean", x, axis, keepdim)


def sum(x, axis=None, dtype=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """The sum over `axis` (a number, a list, or None for all)."""
    return _reduce("sum", "sum", x if dtype is None else cast(x, dtype), axis, keepdim)


def max(x, axis=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """The largest over `axis` (a number, a list, or None for all)."""
    return _reduce("max", "max", x, axis, keepdim)


def min(x, axis=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """The smallest over `axis` (a number, a list, or None for all)."""
    return _reduce("min", "min", x, axis, keepdim)


def prod(x, axis=None, keepdim=False, dtype=None, name=None):
    """The product over `axis` (a number, a list, or None for all)."""
    return _reduce("prod", "prod", x if dtype is None else cast(x, dtype), axis, keepdim)


def all(x, axis=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """Whether all values (bool) over `axis` are true."""
    return _reduce("all", "all", x, axis, keepdim)


def any(x, axis=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """Whether a value (bool) over `axis` is true."""
    return _reduce("any", "any", x, axis, keepdim)


def logsumexp(x, axis=None, keepdim=False, name=None):
    """log(sum(exp(x))) over `axis`, without overflow."""
    most = max(x, axis, keepdim=True)
    total = log(sum(exp(x - most), axis, keepdim=True)) + most
    if keepdim:
        return total
    return reshape(total, []) if len(_axes(axis)) in (0, x.ndim) else squeeze(total, axis)


def norm(x, p="fro", axis=None, keepdim=False, name=None):
    """The p-norm over `axis`: p a number, infinity or "fro" (2). 1e-12 where all values are 0, so that it has a slope."""
    if p == float("inf"):
        return max(abs(x), axis, keepdim)
    power = 2.0 if p == "fro" else float(p)
    if power == 1.0:
        return sum(abs(x), axis, keepdim=keepdim)
    total = sum(square(x) if power == 2.0 else pow(abs(x), power), axis, keepdim=keepdim)
    return pow(clip(total, min=1e-24), 1.0 / power) if power != 2.0 else sqrt(clip(total, min=1e-24))


def var(x, axis=None, unbiased=True, keepdim=False, name=None):
    """The variance over `axis`, whose sizes must be fixed when it is unbiased."""
    distance = x - mean(x, axis, keepdim=True) if axis is not None else x - mean(x)
    result = mean(square(distance), axis, keepdim)
    if not unbiased:
        return result
    count = 1
    for one in _axes(axis) or range(x.ndim):
        count *= x.shape[one]
        if x.shape[one] < 0:
            raise Error("config", f"paddle.var of {x.name} {list(x.shape)}: axis {one} has no fixed size", "use unbiased=False")
    return scale(result, count / builtins.max(count - 1, 1))


def std(x, axis=None, unbiased=True, keepdim=False, name=None):
    """The square root of var()."""
    return sqrt(var(x, axis, unbiased, keepdim))


def add_n(inputs, name=None):
    """The sum of a list of variables of one shape."""
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    total = inputs[0]
    for variable in inputs[1:]:
        total = add(total, variable)
    return total


def concat(x, axis=0, name=None):
    """Variables side by side along `axis`."""
    return append("concat", "concat", list(x), {"axis": int(axis)})


def stack(x, axis=0, name=None):
    """Variables of one shape, stacked along a new axis."""
    return append("stack", "stack", list(x), {"axis": int(axis)})


def split(x, num_or_sections, axis=0, name=None):
    """Parts of x along `axis`: that many equal ones, or of these sizes (one may be -1). Returns a list."""
    kind = unique_name("split")
    if isinstance(num_or_sections, int):
        count, attributes = num_or_sections, {}
    else:
        sections = [int(size) for size in num_or_sections]
        count, attributes = len(sections), {"sections": sections}
    outputs = [unique_name(kind + ".tmp") for _ in range(count)]
    made = append("split", "split", [x], {"axis": int(axis), **attributes}, outputs)
    return made if isinstance(made, list) else [made]


def reshape(x, shape, name=None):
    """x with another shape: 0 keeps that size, one -1 is computed; sizes may be variables."""
    inputs, attributes = _numbers.resolve("paddle.reshape", [x], shape=_numbers.listed(shape))
    return append("reshape", "reshape", inputs, attributes)


def tile(x, repeat_times, name=None):
    """x repeated so many times along each axis, from the last one; times may be variables."""
    inputs, attributes = _numbers.resolve("paddle.tile", [x], repeat_times=_numbers.listed(repeat_times))
    return append("tile", "tile", inputs, attributes)


def expand(x, shape, name=None):
    """x with axes of 1, and new ones at the front, repeated to `shape`; -1 keeps a size, sizes may be variables."""
    inputs, attributes = _numbers.resolve("paddle.expand", [x], shape=_numbers.listed(shape))
    return append("expand", "expand", inputs, attributes)


broadcast_to = expand


def expand_as(x, y, name=None):
    """expand() to y's shape."""
    return append("expand_as", "expand_as", [x, y])


def tril(x, diagonal=0, name=None):
    """The values up to that diagonal of the last two axes; 0 above it."""
    return append("tril", "tril", [x], {"diagonal": int(diagonal)})


def triu(x, diagonal=0, name=None):
    """The values from that diagonal of the last two axes on; 0 below it."""
    return append("triu", "triu", [x], {"diagonal": int(diagonal)})


def shape(input):  # noqa: A002, Paddle's argument name
    """The sizes of `input` when the program runs. Shape: [axes] int32."""
    return append("shape", "shape", [input])


def numel(x, name=None):
    """How many values x has when the program runs, int64."""
    return prod(cast(shape(x), "int64"))


def rank(input):  # noqa: A002, Paddle's argument name
    """The number of axes, int32."""
    return to_tensor(input.ndim, "int32")


def flatten(x, start_axis=0, stop_axis=-1, name=None):
    """x with the axes start_axis … stop_axis joined into one."""
    return append("flatten", "flatten", [x], {"start_axis": int(start_axis), "stop_axis": int(stop_axis)})


def squeeze(x, axis=None, name=None):
    """x without the axes `axis` where they are 1, or without all that are 1 as far as is known."""
    return append("squeeze", "squeeze", [x], {"axes": _axes(axis)})


def unsqueeze(x, axis, name=None):
    """x with new axes of size 1 at these places of the result."""
    return append("unsqueeze", "unsqueeze", [x], {"axes": _axes(axis)})


def transpose(x, perm, name=None):
    """x with its axes in this order."""
    return append("transpose", "transpose", [x], {"perm": [int(axis) for axis in perm]})


def slice(input, axes, starts, ends):  # noqa: A001, A002, Paddle's names
    """input[starts:ends] along each of `axes`; negative numbers count from the end, variables may be among them."""
    return strided_slice(input, axes, starts, ends, None)


def strided_slice(x, axes, starts, ends, strides, name=None):
    """slice() that takes every `strides`-th place."""
    inputs, attributes = _numbers.resolve("paddle.slice", [x], starts=_numbers.listed(starts), ends=_numbers.listed(ends))
    steps = {} if strides is None else {"steps": [int(one) for one in strides]}
    return append("slice", "slice", inputs, {"axes": [int(one) for one in axes], **attributes, **steps})


def chunk(x, chunks, axis=0, name=None):
    """`chunks` equal parts of x along `axis`."""
    return split(x, chunks, axis)


def unbind(input, axis=0):  # noqa: A002, Paddle's argument name
    """The parts of `input` along `axis` (of fixed size), without that axis."""
    size = input.shape[axis]
    if size < 0:
        raise Error("config", f"paddle.unbind: axis {axis} of {input.name} {list(input.shape)} has no fixed size")
    return [squeeze(part, axis) for part in split(input, size, axis)]


def unstack(x, axis=0, num=None):
    """unbind()."""
    return unbind(x, axis)


def _compare(operator):
    def function(x, y, name=None):
        x, y = _variable(x), _variable(y)
        if not isinstance(y, Variable):
            y = full_like(x, y)
        elif not isinstance(x, Variable):
            x = full_like(y, x)
        return append(operator, operator, [x, y])

    function.__name__ = function.__qualname__ = operator
    function.__doc__ = f"{operator} of x and y, value by value, as bool."
    return function


equal = _compare("equal")
not_equal = _compare("not_equal")
less_than = _compare("less_than")
less_equal = _compare("less_equal")
greater_than = _compare("greater_than")
greater_equal = _compare("greater_equal")
logical_and = _compare("logical_and")
logical_or = _compare("logical_or")


logical_xor = _compare("logical_xor")
logical_not = _unary("logical_not", "Whether a value is 0 or false.")


def equal_all(x, y, name=None):
    """Whether all values are equal."""
    return all(equal(x, y))


def where(condition, x=None, y=None, name=None):
    """x where `condition` (bool) holds, else y, with broadcasting; without both nonzero(condition, as_tuple=True)."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise Error("config", "paddle.where with one of x and y", "give it both")
    x, y = _variable(x), _variable(y)
    if not isinstance(x, Variable):
        x = full([1], x, y.dtype if isinstance(y, Variable) else "float32")
    if not isinstance(y, Variable):
        y = full([1], y, x.dtype)
    if not condition.shape == x.shape == y.shape:
        every = add(add(zeros_like(condition, "float32"), zeros_like(x, "float32")), zeros_like(y, "float32"))
        condition, x, y = (expand_as(one, every) for one in (condition, x, y))
    return append("where", "where", [condition, x, y])
