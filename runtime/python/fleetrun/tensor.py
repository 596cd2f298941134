"""Functions over variables. Each appends operators of the engine (runtime/engine/*_operators.cc) and returns
the result's variable; names, arguments and defaults are Paddle's. Shapes are checked by the engine when the
operator is
appended: Throws: Error(config) naming the operator and the shapes.
"""

from __future__ import annotations

import builtins
import math
import numbers

from fleetrun import _dtypes as dtypes
from fleetrun import _groups, _lazy, _more_names, _numbers
from fleetrun._arguments import refuse
from fleetrun._creation import (
    arange,
    bernoulli,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    multinomial,
    normal,
    ones,
    ones_like,
    rand,
    randint,
    randn,
    randperm,
    to_tensor,
    uniform,
    zeros,
    zeros_like,
)
from fleetrun._einsum import einsum
from fleetrun._error import Error
from fleetrun._graph import append, expect_variable
from fleetrun._selection import (
    argmax,
    argmin,
    argsort,
    cumsum,
    flip,
    gather,
    gather_nd,
    index_select,
    masked_select,
    nonzero,
    roll,
    scatter,
    sort,
    take_along_axis,
    topk,
    unique,
)
from fleetrun._shapes import (
    broadcast_to,
    chunk,
    concat,
    expand,
    expand_as,
    flatten,
    reshape,
    shape,
    slice,
    split,
    squeeze,
    stack,
    strided_slice,
    tile,
    transpose,
    tril,
    triu,
    unbind,
    unsqueeze,
    unstack,
)
from fleetrun._types import Any, ArrayLike, Callable, DTypeLike, Operand, Sequence, Variable

__all__ = [
    "abs", "acos", "add", "add_n", "all", "any", "arange", "argmax", "argmin", "argsort", "asin",
    "assign", "atan", "bernoulli", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bmm",
    "broadcast_to", "cast", "ceil", "chunk", "clip", "concat", "cos", "cumsum", "digamma", "divide",
    "dot", "einsum", "equal", "equal_all", "erf", "erfinv", "exp", "expand", "expand_as", "expm1", "eye",
    "flatten", "flip", "floor", "floor_divide", "floor_mod", "full", "full_like", "gather", "gather_nd",
    "greater_equal", "greater_than", "index_select", "isfinite", "isinf", "isnan", "less_equal",
    "less_than", "lgamma", "linspace", "log", "log10", "log1p", "log2", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logsumexp", "masked_select", "matmul", "max", "maximum", "mean",
    "meshgrid", "min", "minimum", "mm", "mod", "multinomial", "multiply", "nonzero", "norm", "normal",
    "not_equal", "numel", "ones", "ones_like", "outer", "pow", "prod", "rand", "randint", "randn",
    "randperm", "rank", "reciprocal", "remainder", "reshape", "roll", "round", "rsqrt", "scale",
    "scatter", "shape", "sign", "sin", "slice", "sort", "split", "sqrt", "square", "squeeze", "stack",
    "std", "strided_slice", "subtract", "sum", "t", "take_along_axis", "tan", "tanh", "tile", "to_tensor",
    "topk", "transpose", "tril", "triu", "unbind", "uniform", "unique", "unsqueeze", "unstack", "var",
    "where", "zeros", "zeros_like",
]  # fmt: skip

_BINARY = {
    "add": "elementwise_add",
    "subtract": "elementwise_sub",
    "multiply": "elementwise_mul",
    "divide": "elementwise_div",
    "maximum": "elementwise_max",
    "minimum": "elementwise_min",
    "mod": "elementwise_mod",
    "floor_divide": "elementwise_floordiv",
}


def binary(name: str, x: Operand, y: Operand) -> Variable:
    """`name` of _BINARY over two variables, of which one may be a number or an array."""
    left, right = _variable(x), _variable(y)
    if isinstance(right, numbers.Real) and not isinstance(right, bool):
        return _with_number(name, left, float(right))
    if isinstance(left, numbers.Real) and not isinstance(left, bool):
        return _number_first(name, float(left), right)
    return append(_BINARY[name], _BINARY[name], [left, right])


def _variable(value: Any) -> Any:
    """An array as a constant; variables and numbers as they are."""
    return to_tensor(value) if hasattr(value, "__array__") and getattr(value, "ndim", False) else value


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
    """Integers stay integers beside a whole number, and become float32 beside a fraction or under a
    division."""
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


def add(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """x + y, with broadcasting."""
    return binary("add", x, y)


def subtract(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """x - y, with broadcasting."""
    return binary("subtract", x, y)


def multiply(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """x * y, value by value, with broadcasting."""
    return binary("multiply", x, y)


def divide(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """x / y, value by value, with broadcasting."""
    return binary("divide", x, y)


def maximum(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """The larger of x and y, value by value, with broadcasting."""
    return binary("maximum", x, y)


def minimum(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """The smaller of x and y, value by value, with broadcasting."""
    return binary("minimum", x, y)


def mod(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """The rest of x / y with y's sign, value by value, with broadcasting."""
    return binary("mod", x, y)


remainder = floor_mod = mod


def floor_divide(x: Operand, y: Operand, name: str | None = None) -> Variable:
    """x / y rounded down, value by value, with broadcasting."""
    return binary("floor_divide", x, y)


def pow(x: Variable, y: Variable | float, name: str | None = None) -> Variable:
    """x to the power of a number or of a variable."""
    if not isinstance(y, Variable):
        if x.dtype in (dtypes.int32, dtypes.int64) and y != int(y):
            x = cast(x, "float32")
        if x.dtype == dtypes.float32:
            return append("pow", "pow", [x], {"factor": float(y)})
        y = full_like(x, y)
    return append("elementwise_pow", "elementwise_pow", [x, y])


def scale(
    x: Variable,
    scale: float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """scale * x + bias, or scale * (x + bias)."""
    refuse("paddle.scale", act=(act, None))
    return append(
        "scale",
        "scale",
        [x],
        {"scale": float(scale), "bias": float(bias), "bias_after_scale": bool(bias_after_scale)},
    )


def _unary(operator: str, text: str, takes_whole: bool = False) -> Callable[..., Variable]:
    def function(x: Variable, name: str | None = None) -> Variable:
        if takes_whole and isinstance(x, Variable) and x.dtype in (dtypes.int32, dtypes.int64):
            x = cast(x, "float32")
        return append(operator, operator, [x])

    function.__name__ = function.__qualname__ = operator
    function.__doc__ = text
    return function


tanh = _unary("tanh", "The hyperbolic tangent, value by value.")
exp = _unary("exp", "e to the power of x, value by value.", True)
log = _unary("log", "The natural logarithm, value by value.", True)
log1p = _unary("log1p", "log(1 + x), value by value.", True)
sqrt = _unary("sqrt", "The square root, value by value.")
rsqrt = _unary("rsqrt", "1 / sqrt(x), value by value.")
square = _unary("square", "x * x, value by value.")
abs = _unary("abs", "The absolute value, value by value.")
reciprocal = _unary("reciprocal", "1 / x, value by value.")
sin = _unary("sin", "The sine, value by value.")
cos = _unary("cos", "The cosine, value by value.")
tan = _unary("tan", "The tangent, value by value.")
asin = _unary("asin", "The inverse of the sine, value by value.")
acos = _unary("acos", "The inverse of the cosine, value by value.")
atan = _unary("atan", "The inverse of the tangent, value by value.")
erf = _unary("erf", "The error function, value by value.")
erfinv = _unary("erfinv", "The inverse of the error function, value by value.")
lgamma = _unary("lgamma", "The logarithm of the gamma function, value by value.")
digamma = _unary("digamma", "The slope of lgamma(), value by value.")
expm1 = _unary("expm1", "exp(x) - 1, value by value.", True)
log2 = _unary("log2", "The logarithm to base 2, value by value.", True)
log10 = _unary("log10", "The logarithm to base 10, value by value.", True)
floor = _unary("floor", "Rounded down, value by value.")
ceil = _unary("ceil", "Rounded up, value by value.")
round = _unary("round", "Rounded, halves away from 0, value by value.")
sign = _unary("sign", "-1, 0 or 1, value by value.")
isnan = _unary("isnan", "Whether a value is NaN.")
isinf = _unary("isinf", "Whether a value is infinite.")
isfinite = _unary("isfinite", "Whether a value is neither NaN nor infinite.")


def clip(
    x: Variable,
    min: float | Variable | None = None,
    max: float | Variable | None = None,
    name: str | None = None,
) -> Variable:
    """x cut to [min, max]; a bound of None is none. Bounds of whole numbers lose their fractions."""
    expect_variable("clip", x)
    whole = x.dtype in (dtypes.int32, dtypes.int64)
    if whole or isinstance(min, Variable) or isinstance(max, Variable):
        for bound, cut in ((min, maximum), (max, minimum)):
            if isinstance(bound, Variable):
                bound = cast(reshape(bound, []), x.dtype)
                bound.stop_gradient = True
            elif bound is None or math.isinf(bound):
                continue
            x = cut(x, int(bound) if whole and not isinstance(bound, Variable) else bound)
        return x
    largest = 3.4028234663852886e38
    return append(
        "clip",
        "clip",
        [x],
        {"min": -largest if min is None else float(min), "max": largest if max is None else float(max)},
    )


def cast(x: Variable, dtype: DTypeLike) -> Variable:
    """x in another type."""
    return append("cast", "cast", [x], {"dtype": dtypes.name_of(dtype)})


def assign(x: Variable | ArrayLike, output: Variable | None = None) -> Variable:
    """A copy of a variable, or a constant of an array or a number, which has the shape [1]; into `output`
    when it is given."""
    given = to_tensor([x] if isinstance(x, (bool, int, float)) else x)
    made: Variable = append("assign", "assign", [given], outputs=None if output is None else [output.name])
    if given is x:
        _groups.copied(given, made if output is None else output)
    return made


def matmul(
    x: Variable, y: Variable, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None
) -> Variable:
    """The matrix product. Shape: [.., N, K] x [.., K, M] with leading axes broadcast; [K] is a row of x, a
    column of y."""
    for value in (x, y):
        expect_variable("matmul", value)
    row, column = x.ndim == 1, y.ndim == 1
    x, y = unsqueeze(x, 0) if row else x, unsqueeze(y, 1) if column else y
    product = append(
        "matmul",
        "matmul",
        [x, y],
        {"transpose_x": bool(transpose_x) and not row, "transpose_y": bool(transpose_y) and not column},
    )
    if row and column:
        return reshape(product, [])
    return squeeze(product, -2 if row else -1) if row or column else product


def mm(input: Variable, mat2: Variable, name: str | None = None) -> Variable:
    """matmul()."""
    return matmul(input, mat2)


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The sum of products along the last axis. Shape: [N] x [N], or [B, N] x [B, N] -> [B]."""
    return sum(x * y, axis=-1)


def outer(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Every value of x times every one of y. Shape: [N] x [M] -> [N, M]."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])


def t(input: Variable, name: str | None = None) -> Variable:
    """A matrix with its axes exchanged; a vector as it is."""
    if input.ndim > 2:
        raise Error("config", f"paddle.t of {input.name} {list(input.shape)}", "use paddle.transpose")
    return transpose(input, [1, 0]) if input.ndim == 2 else input


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Matrix products, one per example. Shape: [B, N, K] x [B, K, M]."""
    return matmul(x, y)


def _reduce(operator, kind, x, axis, keepdim):
    return append(kind, operator, [x], {"axis": _numbers.axes(axis), "keepdim": bool(keepdim)})


def mean(
    x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The mean over `axis` (a number, a list, or None for all)."""
    return _reduce("mean", "mean", x, axis, keepdim)


def sum(
    x: Variable,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The sum over `axis` (a number, a list, or None for all); of whole numbers and bools int64."""
    if dtype is not None or (isinstance(x, Variable) and x.dtype.name == "int32"):
        x = cast(x, dtype or "int64")
    return _reduce("sum", "sum", x, axis, keepdim)


def max(
    x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The largest over `axis` (a number, a list, or None for all)."""
    return _reduce("max", "max", x, axis, keepdim)


def min(
    x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The smallest over `axis` (a number, a list, or None for all)."""
    return _reduce("min", "min", x, axis, keepdim)


def prod(
    x: Variable,
    axis: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """The product over `axis` (a number, a list, or None for all)."""
    return _reduce("prod", "prod", x if dtype is None else cast(x, dtype), axis, keepdim)


def _truth(x):
    return x if x.dtype.name == "bool" else cast(x, "bool")


def all(
    x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """Whether all values over `axis` are true, or of numbers not 0."""
    return _reduce("all", "all", _truth(x), axis, keepdim)


def any(
    x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """Whether a value over `axis` is true, or of numbers not 0."""
    return _reduce("any", "any", _truth(x), axis, keepdim)


def logsumexp(
    x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """log(sum(exp(x))) over `axis`, without overflow."""
    most = max(x, axis, keepdim=True)
    total = log(sum(exp(x - most), axis, keepdim=True)) + most
    if keepdim:
        return total
    return reshape(total, []) if len(_numbers.axes(axis)) in (0, x.ndim) else squeeze(total, axis)


def norm(
    x: Variable,
    p: float | str = "fro",
    axis: int | Sequence[int] | None = None,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The p-norm over `axis`: p a number, plus or minus infinity, or "fro" (2); of 0 how many are not 0.
    1e-12 where all values are 0, so that it has a slope."""
    if p == float("inf"):
        return max(abs(x), axis, keepdim)
    if p == float("-inf"):
        return min(abs(x), axis, keepdim)
    if p == 0:
        return sum(cast(not_equal(x, 0.0), x.dtype), axis, keepdim=keepdim)
    power = 2.0 if p == "fro" else float(p)
    if power == 1.0:
        return sum(abs(x), axis, keepdim=keepdim)
    total = sum(square(x) if power == 2.0 else pow(abs(x), power), axis, keepdim=keepdim)
    return pow(clip(total, min=1e-24), 1.0 / power) if power != 2.0 else sqrt(clip(total, min=1e-24))


def var(
    x: Variable,
    axis: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The variance over `axis`."""
    distance = x - mean(x, axis, keepdim=True) if axis is not None else x - mean(x)
    result = mean(square(distance), axis, keepdim)
    if not unbiased:
        return result
    sizes = [x.shape[one] for one in {one % x.ndim for one in _numbers.axes(axis) or range(x.ndim)}]
    if -1 in sizes:
        count = cast(numel(x), x.dtype) / cast(numel(result), x.dtype)
        return result * (count / maximum(count - 1.0, 1.0))
    return scale(result, math.prod(sizes) / builtins.max(math.prod(sizes) - 1, 1))


def std(
    x: Variable,
    axis: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The square root of var()."""
    return sqrt(var(x, axis, unbiased, keepdim))


def add_n(inputs: Variable | Sequence[Variable], name: str | None = None) -> Variable:
    """The sum of a list of variables of one shape."""
    listed = [inputs] if isinstance(inputs, Variable) else list(inputs)
    total = listed[0] if len(listed) > 1 else assign(listed[0])
    for variable in listed[1:]:
        total = add(total, variable)
    return total


def numel(x: Variable, name: str | None = None) -> Variable:
    """How many values x has when the program runs, int64."""
    return prod(cast(shape(x), "int64"))


def rank(input: Variable) -> Variable:
    """The number of axes, int32."""
    return to_tensor(input.ndim, "int32")


def _compare(operator: str, meaning: str = "as bool") -> Callable[..., Variable]:
    def function(x: Operand, y: Operand, name: str | None = None) -> Variable:
        left, right = _variable(x), _variable(y)
        if not isinstance(right, Variable):
            right = full_like(left, right)
        elif not isinstance(left, Variable):
            left = full_like(right, left)
        return append(operator, operator, [left, right])

    function.__name__ = function.__qualname__ = operator
    function.__doc__ = f"{operator} of x and y, value by value, {meaning}."
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
bitwise_and = _compare("bitwise_and", "bit by bit; of bools, as bool")
bitwise_or = _compare("bitwise_or", "bit by bit; of bools, as bool")
bitwise_xor = _compare("bitwise_xor", "bit by bit; of bools, as bool")
bitwise_not = _unary("bitwise_not", "The other bits of whole numbers; of bools, not x.")


def equal_all(x: Variable, y: Operand, name: str | None = None) -> Variable:
    """Whether all values are equal."""
    return all(equal(x, y))


def where(condition: Variable, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """x where `condition` (bool) holds, else y, with broadcasting; without both nonzero(condition,
    as_tuple=True)."""
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


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("_more_math", _more_names.MATH),
        **_lazy.names("_more_shapes", _more_names.SHAPES),
        **_lazy.names("_cumulative", _more_names.CUMULATIVE),
        **_lazy.names("_placing", _more_names.PLACING),
        **_lazy.names("_quantiles", _more_names.QUANTILES),
        **_lazy.names("_in_place", f"{_more_names.IN_PLACE} {_more_names.METHODS_IN_PLACE}"),
        **_lazy.names("fluid._math", "fill_constant"),
        **_lazy.names("fluid._layers", "create_tensor"),
        **_lazy.names("fluid._arrays", "array_length array_read array_write create_array"),
        **_lazy.names("framework", "create_parameter"),
        **_lazy.names("static.inputs", "create_global_var"),
    },
)
