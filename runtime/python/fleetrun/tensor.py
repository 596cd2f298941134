"""Functions over variables. Each appends operators of the engine (runtime/engine/*_operators.cc) and returns the
result's variable; names, arguments and defaults are Paddle's. Shapes are checked by the engine when the operator is
appended: Throws: Error(config) naming the operator and the shapes.
"""

import builtins
import numbers

from fleetrun import _dtypes as dtypes, framework
from fleetrun._arguments import refuse
from fleetrun._error import Error

_BINARY = {"add": "elementwise_add", "subtract": "elementwise_sub", "multiply": "elementwise_mul",
           "divide": "elementwise_div", "maximum": "elementwise_max", "minimum": "elementwise_min"}


def binary(name, x, y):
    """`name` of _BINARY over two variables, of which one may be a number."""
    if isinstance(y, numbers.Real) and not isinstance(y, bool):
        return _with_number(name, x, float(y))
    if isinstance(x, numbers.Real) and not isinstance(x, bool):
        return _number_first(name, float(x), y)
    return framework.append(_BINARY[name], _BINARY[name], [x, y])


def _with_number(name, x, number):
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
    return framework.append(_BINARY[name], _BINARY[name], [x, full_like(x, number)])


def _number_first(name, number, y):
    if name in ("add", "multiply"):
        return _with_number(name, y, number)
    if name == "subtract":
        return scale(y, -1.0, number)
    if name == "divide":
        return scale(framework.append("reciprocal", "reciprocal", [y]), number)
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


def pow(x, y, name=None):  # noqa: A001, the name scripts use
    """x to the power of a number or of a variable."""
    if isinstance(y, numbers.Real):
        return framework.append("pow", "pow", [x], {"factor": float(y)})
    return framework.append("elementwise_pow", "elementwise_pow", [x, y])


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale * x + bias, or scale * (x + bias)."""
    refuse("paddle.scale", act=(act, None))
    return framework.append("scale", "scale", [x], {"scale": float(scale), "bias": float(bias),
                                                    "bias_after_scale": bool(bias_after_scale)})


def _unary(operator, text):
    def function(x, name=None):
        return framework.append(operator, operator, [x])

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


def clip(x, min=None, max=None, name=None):  # noqa: A002, Paddle's argument names
    """x cut to [min, max]; a bound of None is none."""
    largest = 3.4028234663852886e38
    return framework.append("clip", "clip", [x], {"min": -largest if min is None else float(min),
                                                  "max": largest if max is None else float(max)})


def cast(x, dtype):
    """x in another type."""
    return framework.append("cast", "cast", [x], {"dtype": dtypes.name_of(dtype)})


def assign(x, output=None):
    """A copy of a variable."""
    refuse("paddle.assign", output=(output, None))
    return framework.append("assign", "assign", [x])


def matmul(x, y, transpose_x=False, transpose_y=False, name=None):
    """The matrix product. Shape: [.., N, K] x [K, M] or [.., K, M]."""
    return framework.append("matmul", "matmul", [x, y], {"transpose_x": bool(transpose_x),
                                                         "transpose_y": bool(transpose_y)})


def bmm(x, y, name=None):
    """Matrix products, one per example. Shape: [B, N, K] x [B, K, M]."""
    return matmul(x, y)


def _axes(axis):
    if axis is None:
        return []
    return [int(one) for one in axis] if isinstance(axis, (list, tuple)) else [int(axis)]


def _reduce(operator, kind, x, axis, keepdim):
    return framework.append(kind, operator, [x], {"axis": _axes(axis), "keepdim": bool(keepdim)})


def mean(x, axis=None, keepdim=False, name=None):
    """The mean over `axis` (a number, a list, or None for all)."""
    return _reduce("mean", "mean", x, axis, keepdim)


def sum(x, axis=None, dtype=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """The sum over `axis` (a number, a list, or None for all)."""
    refuse("paddle.sum", dtype=(dtype, None))
    return _reduce("sum", "sum", x, axis, keepdim)


def max(x, axis=None, keepdim=False, name=None):  # noqa: A001, the name scripts use
    """The largest over `axis` (a number, a list, or None for all)."""
    return _reduce("max", "max", x, axis, keepdim)


def add_n(inputs, name=None):
    """The sum of a list of variables of one shape."""
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    total = inputs[0]
    for variable in inputs[1:]:
        total = add(total, variable)
    return total


def concat(x, axis=0, name=None):
    """Variables side by side along `axis`."""
    return framework.append("concat", "concat", list(x), {"axis": int(axis)})


def stack(x, axis=0, name=None):
    """Variables of one shape, stacked along a new axis."""
    return framework.append("stack", "stack", list(x), {"axis": int(axis)})


def split(x, num_or_sections, axis=0, name=None):
    """Parts of x along `axis`: that many equal ones, or of these sizes (one may be -1). Returns a list."""
    kind = framework.unique_name("split")
    if isinstance(num_or_sections, int):
        count, attributes = num_or_sections, {}
    else:
        sections = [int(size) for size in num_or_sections]
        count, attributes = len(sections), {"sections": sections}
    outputs = [framework.unique_name(kind + ".tmp") for _ in range(count)]
    made = framework.append("split", "split", [x], {"axis": int(axis), **attributes}, outputs)
    return made if isinstance(made, list) else [made]


def reshape(x, shape, name=None):
    """x with another shape: 0 keeps that size, one -1 is computed."""
    for size in shape:
        if isinstance(size, framework.Variable):
            raise Error("config", f"paddle.reshape: the size {size.name} is a variable", "give sizes as numbers, one may be -1")
    return framework.append("reshape", "reshape", [x], {"shape": [int(size) for size in shape]})


def flatten(x, start_axis=0, stop_axis=-1, name=None):
    """x with the axes start_axis … stop_axis joined into one."""
    return framework.append("flatten", "flatten", [x], {"start_axis": int(start_axis), "stop_axis": int(stop_axis)})


def squeeze(x, axis=None, name=None):
    """x without the axes `axis` where they are 1, or without all that are 1."""
    return framework.append("squeeze", "squeeze", [x], {"axes": _axes(axis)})


def unsqueeze(x, axis, name=None):
    """x with new axes of size 1 at these places of the result."""
    return framework.append("unsqueeze", "unsqueeze", [x], {"axes": _axes(axis)})


def transpose(x, perm, name=None):
    """x with its axes in this order."""
    return framework.append("transpose", "transpose", [x], {"perm": [int(axis) for axis in perm]})


def slice(input, axes, starts, ends):  # noqa: A001, A002, Paddle's names
    """input[starts:ends] along each of `axes`; negative numbers count from the end."""
    return framework.append("slice", "slice", [input], {
        "axes": [int(one) for one in axes], "starts": [int(one) for one in starts], "ends": [int(one) for one in ends]})


def index(x, items):
    """x[items]: numbers, slices without a step, and one Ellipsis."""
    items = list(items) if isinstance(items, tuple) else [items]
    if Ellipsis in items:
        place = items.index(Ellipsis)
        items[place:place + 1] = [_ALL] * (x.ndim - len(items) + 1)
    axes, starts, ends, dropped = [], [], [], []
    for axis, item in enumerate(items):
        if isinstance(item, numbers.Integral):
            start, end = int(item), int(item) + 1
            dropped.append(axis)
        elif isinstance(item, builtins.slice) and item.step in (None, 1):
            start, end = item.start, item.stop
        else:
            raise Error("config", f"{x.name}[{item!r}] is not supported", "use numbers and slices without a step")
        if item == _ALL:
            continue
        axes.append(axis)
        starts.append(0 if start is None else int(start))
        ends.append(_LAST if end is None or (axis in dropped and end == 0) else int(end))
    if not axes:
        return x
    part = slice(x, axes, starts, ends)
    if not dropped:
        return part
    # squeeze() keeps an axis whose size is unknown while the program is built.
    return reshape(part, [size for axis, size in enumerate(part.shape) if axis not in dropped])


_ALL = builtins.slice(None)
_LAST = 2**31 - 1


def full(shape, fill_value, dtype=None, name=None):
    """A variable of fixed shape with one value."""
    return framework.append("fill_constant", "fill_constant", [], {
        "shape": [int(size) for size in shape], "value": float(fill_value), "dtype": dtypes.name_of(dtype or "float32")})


def ones(shape, dtype=None, name=None):
    """full() of 1."""
    return full(shape, 1.0, dtype)


def zeros(shape, dtype=None, name=None):
    """full() of 0."""
    return full(shape, 0.0, dtype)


def full_like(x, fill_value, dtype=None, name=None):
    """x's shape with one value."""
    return framework.append("fill_any_like", "fill_any_like", [x], {
        "value": float(fill_value), "dtype": dtypes.name_of(dtype or x.dtype)})


def ones_like(x, dtype=None, name=None):
    """full_like() of 1."""
    return full_like(x, 1.0, dtype)


def zeros_like(x, dtype=None, name=None):
    """full_like() of 0."""
    return full_like(x, 0.0, dtype)


def _compare(operator):
    def function(x, y, name=None):
        return framework.append(operator, operator, [x, y])

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


def where(condition, x=None, y=None, name=None):
    """x where `condition` (bool) holds, else y; all of one shape."""
    if x is None or y is None:
        raise Error("config", "paddle.where with a condition alone is not supported", "give it x and y")
    return framework.append("where", "where", [condition, x, y])


# What a variable has as a method.
METHODS = {name: globals()[name] for name in (
    "add subtract multiply divide maximum minimum pow scale tanh exp log log1p sqrt rsqrt square abs reciprocal clip "
    "cast matmul bmm mean sum max split reshape flatten squeeze unsqueeze transpose equal not_equal less_than "
    "less_equal greater_than greater_equal logical_and logical_or").split()}
METHODS["astype"] = cast
