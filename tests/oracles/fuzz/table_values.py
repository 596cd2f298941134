"""Operations that random programs draw: value by value, comparisons, reductions. Each takes a Maker."""

import functools
import math

import numpy as np

OPERATIONS = []


def operation(function):
    """Puts a function into the table."""
    OPERATIONS.append(function)
    return function


def erf(x):
    """The error function."""
    return np.vectorize(math.erf, otypes=[float])(x)


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + np.exp(-x))


def softplus(x):
    """log(1 + exp(x))."""
    return np.logaddexp(0.0, x)


def rounded(x):
    """Halves away from 0."""
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def above(low):
    """Whether all values are above a number."""
    return lambda x: np.all(x > low)


def within(low, high):
    """Whether all values are between two numbers."""
    return lambda x: np.all((x > low) & (x < high))


def apart(x):
    """Whether all values are well away from 0."""
    return np.all(np.abs(x) > 0.2)


# name: (reference, which values it takes)
UNARY = {
    "paddle.abs": (np.abs, None),
    "paddle.exp": (np.exp, within(-20, 4)),
    "paddle.tanh": (np.tanh, None),
    "paddle.log": (np.log, above(0.05)),
    "paddle.log1p": (np.log1p, above(-0.9)),
    "paddle.log2": (np.log2, above(0.05)),
    "paddle.log10": (np.log10, above(0.05)),
    "paddle.expm1": (np.expm1, within(-20, 4)),
    "paddle.sqrt": (np.sqrt, above(0.05)),
    "paddle.rsqrt": (lambda x: 1 / np.sqrt(x), above(0.05)),
    "paddle.square": (np.square, within(-12, 12)),
    "paddle.reciprocal": (lambda x: 1 / x, apart),
    "paddle.sin": (np.sin, within(-50, 50)),
    "paddle.cos": (np.cos, within(-50, 50)),
    "paddle.tan": (np.tan, within(-1.2, 1.2)),
    "paddle.erf": (erf, None),
    "paddle.floor": (np.floor, None),
    "paddle.ceil": (np.ceil, None),
    "paddle.round": (rounded, None),
    "paddle.sign": (np.sign, None),
    "paddle.neg": (np.negative, None),
    "paddle.sinh": (np.sinh, within(-4, 4)),
    "paddle.cosh": (np.cosh, within(-4, 4)),
    "paddle.asinh": (np.arcsinh, None),
    "paddle.acosh": (np.arccosh, above(1.05)),
    "paddle.atanh": (np.arctanh, within(-0.9, 0.9)),
    "paddle.trunc": (np.trunc, None),
    "paddle.frac": (lambda x: x - np.trunc(x), None),
    "paddle.rad2deg": (np.rad2deg, within(-3, 3)),
    "paddle.deg2rad": (np.deg2rad, None),
    "paddle.stanh": (lambda x: 1.7159 * np.tanh(0.67 * x), None),
    "paddle.logit": (lambda x: np.log(x / (1 - x)), within(0.05, 0.95)),
    "paddle.assign": (np.array, None),
    "paddle.clone": (np.array, None),
    "F.relu": (lambda x: np.maximum(x, 0), None),
    "F.sigmoid": (sigmoid, None),
    "F.softsign": (lambda x: x / (1 + np.abs(x)), None),
    "F.relu6": (lambda x: np.clip(x, 0, 6), None),
    "F.silu": (lambda x: x * sigmoid(x), None),
    "F.swish": (lambda x: x * sigmoid(x), None),
    "F.mish": (lambda x: x * np.tanh(softplus(x)), None),
    "F.tanh": (np.tanh, None),
    "F.log_sigmoid": (lambda x: -softplus(-x), None),
    "F.tanhshrink": (lambda x: x - np.tanh(x), None),
    "F.hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, None),
    "F.hardsigmoid": (lambda x: np.clip(x * 0.1666667 + 0.5, 0, 1), None),
    "F.hardtanh": (lambda x: np.clip(x, -1, 1), None),
}


def _where(x, beyond, below):
    return np.where(x > 0, beyond, below)


def _softplus_of(x, beta, threshold):
    return np.where(beta * x > threshold, x, softplus(beta * x) / beta)


# text with {a}: (reference of x and a, the a to choose from, which values it takes)
WITH_NUMBER = {
    "F.leaky_relu({{0}}, {a})": (lambda x, a: np.where(x < 0, a * x, x), (0.01, 0.3), None),
    "F.elu({{0}}, {a})": (lambda x, a: _where(x, x, a * np.expm1(x)), (1.0, 0.5), None),
    "F.celu({{0}}, {a})": (lambda x, a: _where(x, x, a * np.expm1(x / a)), (1.0, 0.6), None),
    "F.selu({{0}}, {a}, 1.6)": (lambda x, a: a * _where(x, x, 1.6 * np.expm1(x)), (1.05, 1.5), None),
    "F.gelu({{0}}, {a})": (
        lambda x, a: (
            0.5
            * x
            * (1 + (np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) if a else erf(x / math.sqrt(2))))
        ),
        (True, False),
        None,
    ),
    "F.softplus({{0}}, {a}, 3)": (lambda x, a: _softplus_of(x, a, 3), (1.0, 0.5, 2.0), None),
    "F.hardshrink({{0}}, {a})": (lambda x, a: np.where(np.abs(x) > a, x, 0), (0.5, 0.25), None),
    "F.softshrink({{0}}, {a})": (lambda x, a: np.sign(x) * np.maximum(np.abs(x) - a, 0), (0.5, 0.25), None),
    "F.thresholded_relu({{0}}, {a})": (lambda x, a: np.where(x > a, x, 0), (1.0, 0.25), None),
    "paddle.clip({{0}}, {a}, 1.25)": (lambda x, a: np.clip(x, a, 1.25), (-1.0, 0.35), None),
    "paddle.clip({{0}}, min={a})": (lambda x, a: np.maximum(x, a), (-1.0, 0.35), None),
    "paddle.clip({{0}}, max={a})": (lambda x, a: np.minimum(x, a), (1.0, 0.35), None),
    "paddle.pow({{0}}, {a})": (lambda x, a: x**a, (2, 2.5, -1.5, 0.5), within(0.05, 8)),
    "paddle.pow({{0}}, 3 * {a})": (lambda x, a: x ** (3 * a), (1,), within(-5, 5)),
    "paddle.scale({{0}}, 1.5, {a})": (lambda x, a: 1.5 * x + a, (0.5, -2.0), None),
    "paddle.scale({{0}}, 1.5, {a}, bias_after_scale=False)": (lambda x, a: 1.5 * (x + a), (0.5, -2.0), None),
    "({{0}} + {a})": (lambda x, a: x + a, (2, -0.5), None),
    "({a} + {{0}})": (lambda x, a: a + x, (2, 0.5), None),
    "({{0}} - {a})": (lambda x, a: x - a, (2, 0.5), None),
    "({a} - {{0}})": (lambda x, a: a - x, (2, 0.5), None),
    "({{0}} * {a})": (lambda x, a: x * a, (2, -0.5), None),
    "({a} * {{0}})": (lambda x, a: a * x, (2, 0.5), None),
    "({{0}} / {a})": (lambda x, a: x / a, (2, -0.5), None),
    "({a} / {{0}})": (lambda x, a: a / x, (2, 0.5), apart),
    "(-{{0}} * {a})": (lambda x, a: -x * a, (1,), None),
    "({{0}} ** {a})": (lambda x, a: x**a, (2, 1.5), within(0.05, 8)),
    "paddle.nan_to_num({{0}}, {a})": (lambda x, a: x * 1.0, (0.0, 1.0), None),
}


@operation
def unary(maker):
    """A function of each value."""
    name = maker.pick(*UNARY)
    reference, fits = UNARY[name]
    maker.step(name + "({0})", reference, maker.any(fits=fits, least=0))


@operation
def with_number(maker):
    """A function of each value and a number."""
    text = maker.pick(*WITH_NUMBER)
    reference, numbers, fits = WITH_NUMBER[text]
    a = maker.pick(*numbers)
    maker.step(
        text.format(a=a), functools.partial(lambda x, a, f: f(x, a), a=a, f=reference), maker.any(fits=fits)
    )


# name: (reference, which second values it takes, whether no gradient flows)
BINARY = {
    "paddle.add": (np.add, None),
    "paddle.subtract": (np.subtract, None),
    "paddle.multiply": (np.multiply, None),
    "paddle.divide": (np.divide, apart),
    "paddle.maximum": (np.maximum, None),
    "paddle.minimum": (np.minimum, None),
    "paddle.fmax": (np.fmax, None),
    "paddle.fmin": (np.fmin, None),
}
BINARY_OF_FLOAT32 = {
    "paddle.hypot": (np.hypot, apart),
    "paddle.logaddexp": (np.logaddexp, None),
    "F.square_error_cost": (lambda x, y: (x - y) ** 2, None),
}
SIGNS = {"paddle.add": "+", "paddle.subtract": "-", "paddle.multiply": "*", "paddle.divide": "/"}


def _two(maker, fits=None, same=False, wide=True):
    x = maker.any(wide=wide)
    y = maker.like(x.shape) if same else maker.partner(x)
    if fits is not None and not fits(y.array):
        from_there = maker.leaf(y.shape, 0.4, 1.8)
        y = from_there if y.dtype == "float32" else y
    if fits is not None and not fits(y.array):
        raise unfit()
    if not maker.ties and np.any(x.array == y.array):
        raise unfit()
    return (x, y) if same or maker.flag() or fits is not None else (y, x)


def unfit():
    from programs import Unfit

    return Unfit()


@operation
def binary(maker):
    """A function of two values that broadcast."""
    name = maker.pick(*BINARY)
    reference, fits = BINARY[name]
    x, y = _two(maker, fits)
    sign = SIGNS.get(name)
    maker.step(f"({{0}} {sign} {{1}})" if sign and maker.flag() else name + "({0}, {1})", reference, x, y)


@operation
def binary_of_one_shape(maker):
    """A function of two values of one shape."""
    name = maker.pick(*BINARY_OF_FLOAT32)
    reference, fits = BINARY_OF_FLOAT32[name]
    maker.step(name + "({0}, {1})", reference, *_two(maker, fits, same=True, wide=False))


@operation
def power_of_two_values(maker):
    """x to the power of y."""
    x = maker.any(fits=within(0.1, 6))
    maker.step("paddle.pow({0}, {1})", np.power, x, maker.partner(x))


@operation
def rests(maker):
    """Operators through which no gradient flows in Paddle."""
    name, reference = maker.pick(
        ("paddle.mod", np.mod),
        ("paddle.remainder", np.mod),
        ("paddle.floor_mod", np.mod),
        ("paddle.floor_divide", np.floor_divide),
    )
    x, y = _two(maker, apart, wide=False)
    maker.step(name + "({0}, {1})", reference, x, y, flat=True)


@operation
def interpolation(maker):
    """x + w * (y - x), and x + y + z."""
    x = maker.any()
    y = maker.like(x.shape)
    if maker.flag():
        maker.step("paddle.lerp({0}, {1}, 0.3)", lambda x, y: x + 0.3 * (y - x), x, y)
    elif maker.flag():
        maker.step("paddle.add_n([{0}, {1}, {0}])", lambda x, y: x + y + x, x, y)
    else:
        maker.step("paddle.heaviside({0}, {1})", np.heaviside, x, y)


@operation
def smoothed_labels(maker):
    """Labels, of which Paddle gives no gradient."""
    x = maker.leaf(maker.shape(2), parameter=False)
    maker.step("F.label_smooth({0}, epsilon=0.1)", lambda x: 0.9 * x + 0.1 / x.shape[-1], x, flat=True)


@operation
def counted(maker):
    """A value that is overwritten; in Paddle 2.6.2 its gradient takes that back."""
    if maker.ties:
        raise unfit()
    maker.step("paddle.increment({0} * 1.0, 2.5)", lambda x: x + 2.5, maker.like((1,)))


@operation
def ldexp(maker):
    """x * 2^n."""
    x = maker.any()
    maker.step("paddle.ldexp({0}, {1})", np.ldexp, x, maker.like(x.shape, "int64", 0, 2))


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less_than": np.less,
    "less_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_equal": np.greater_equal,
}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


@operation
def comparison(maker):
    """A mask of two values."""
    name = maker.pick(*COMPARISONS)
    maker.step(f"paddle.{name}({{0}}, {{1}})", COMPARISONS[name], *_two(maker, wide=False))


@operation
def mask(maker):
    """A mask that selects, counts or combines."""
    x = maker.any(least=1)
    one = maker.like(x.shape, "bool", 0, 1)
    kind = maker.random.randint(0, 7)
    if kind == 0:
        maker.step("paddle.where({0}, {1}, {2})", np.where, one, x, maker.like(x.shape))
    elif kind == 1:
        name = maker.pick(*LOGIC)
        maker.step(f"paddle.{name}({{0}}, {{1}})", LOGIC[name], one, maker.like(x.shape, "bool", 0, 1))
    elif kind == 2:
        maker.step("paddle.logical_not({0})", np.logical_not, one)
    elif kind == 3:
        axes, keep = maker.axes(one), maker.flag()
        name = maker.pick("all", "any")
        maker.step(
            f"paddle.{name}({{0}}, axis={axes}, keepdim={keep})",
            lambda m, f=getattr(np, name): f(m, axis=tuple_of(axes), keepdims=keep),
            one,
        )
    elif kind == 4:
        maker.step("paddle.cast({0}, 'float32')", lambda m: m.astype(float), one, flat=True)
    elif kind == 5 and one.array.any():
        maker.step("paddle.masked_select({0}, {1})", lambda x, m: x[m], x, one)
    elif kind == 6:
        maker.step("paddle.masked_fill({0}, {1}, 0.75)", lambda x, m: np.where(m, 0.75, x), x, one)
    else:
        maker.step(
            "paddle.where({0} > {1}, {0}, {1} * 0.5)",
            lambda x, y: np.where(x > y, x, 0.5 * y),
            x,
            maker.like(x.shape),
        )


@operation
def observed(maker):
    """What says something of values, and is no number to learn from."""
    x = maker.any()
    name, reference = maker.pick(
        ("isnan", np.isnan),
        ("isinf", np.isinf),
        ("isfinite", np.isfinite),
        ("numel", lambda x: np.int64(x.size)),
        ("shape", lambda x: np.array(x.shape, "int32")),
        ("rank", lambda x: np.int32(x.ndim)),
        ("is_empty", lambda x: np.bool_(False)),
        ("zeros_like", np.zeros_like),
        ("ones_like", np.ones_like),
    )
    maker.step(f"paddle.{name}({{0}})", reference, x, flat=True)


@operation
def close(maker):
    """Whether two are close or the same."""
    x, y = _two(maker, same=True, wide=False)
    name, reference = maker.pick(
        ("allclose", lambda x, y: np.bool_(np.allclose(x, y))),
        ("isclose", np.isclose),
        ("equal_all", lambda x, y: np.bool_(np.array_equal(x, y))),
    )
    maker.step(f"paddle.{name}({{0}}, {{1}})", reference, x, y)


@operation
def of_integers(maker):
    """Arithmetic of int64."""
    shape = maker.shape()
    x, y = maker.like(shape, "int64", -5, 5), maker.like(shape, "int64", 1, 4)
    name, reference = maker.pick(
        ("add", np.add),
        ("subtract", np.subtract),
        ("multiply", np.multiply),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
        ("mod", np.mod),
        ("floor_divide", np.floor_divide),
        ("abs", np.abs),
        ("bitwise_and", np.bitwise_and),
        ("bitwise_or", np.bitwise_or),
        ("bitwise_xor", np.bitwise_xor),
        ("invert", np.invert),
        ("sum", None),
        ("max", None),
        ("min", None),
        ("cast", None),
    )
    if name == "abs":
        maker.step("paddle.abs({0})", reference, x)
    elif name.startswith("bitwise"):
        maker.step(f"paddle.{name}({{0}}, {{1}})", reference, x, y)
    elif name == "invert":
        maker.step("paddle.bitwise_not({0})", np.invert, x)
    elif name == "cast":
        maker.step("paddle.cast({0}, 'float32')", lambda x: x.astype(float), x, flat=True)
    elif name in ("sum", "max", "min"):
        axes, keep = maker.axes(x), maker.flag()
        maker.step(
            f"paddle.{name}({{0}}, axis={axes}, keepdim={keep})",
            lambda x, f=getattr(np, name): f(x, axis=tuple_of(axes), keepdims=keep),
            x,
        )
    else:
        if name in ("mod", "floor_divide") and not np.all(y.array != 0):
            raise unfit()
        maker.step(f"paddle.{name}({{0}}, {{1}})", reference, x, y)


@operation
def wider(maker):
    """To float64 and back."""
    x = maker.any(wide=True)
    to = "float64" if x.dtype == "float32" else "float32"
    maker.step(f"paddle.cast({{0}}, '{to}')", np.array, x, dtypes=[to])


def tuple_of(axes):
    return tuple(axes) if isinstance(axes, list) else axes


def _norm(p):
    def norm(x, axis, keepdims):
        return np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1.0 / p)

    return norm


REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
REDUCTIONS_OF_FLOAT32 = {
    "amax": np.max,
    "amin": np.min,
    "nansum": np.nansum,
    "nanmean": np.nanmean,
    "logsumexp": lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
}


@operation
def reduction(maker):
    """One value of many."""
    wide = maker.random.random() < 0.3
    names = REDUCTIONS if wide else {**REDUCTIONS, **REDUCTIONS_OF_FLOAT32}
    name = maker.pick(*names)
    x = maker.any(wide=wide)
    chooses = name in ("max", "min", "amax", "amin")
    if chooses and not maker.ties and len(set(x.array.flat)) < x.array.size:
        raise unfit()
    axes, keep = maker.axes(x), maker.flag()
    maker.step(
        f"paddle.{name}({{0}}, axis={axes}, keepdim={keep})",
        lambda x, f=names[name]: f(x, axis=tuple_of(axes), keepdims=keep),
        x,
    )


@operation
def spread(maker):
    """Variance, deviation, median and norms."""
    x = maker.any(least=1)
    axis, keep = maker.axis(x), maker.flag()
    size = x.shape[axis]
    kind = maker.random.randint(0, 4)
    if kind < 2:
        unbiased = maker.flag() and size > 1
        name, reference = ("var", np.var) if kind else ("std", np.std)
        result = reference(x.array, axis=axis, ddof=int(unbiased))
        if name == "std" and not np.all(result > 0.1):
            raise unfit()
        maker.step(
            f"paddle.{name}({{0}}, axis={axis}, unbiased={unbiased}, keepdim={keep})",
            lambda x: reference(x, axis=axis, ddof=int(unbiased), keepdims=keep),
            x,
        )
    elif kind == 2:
        maker.step(
            f"paddle.median({{0}}, axis={axis}, keepdim={keep})",
            lambda x: np.median(x, axis=axis, keepdims=keep),
            x,
        )
    elif kind == 3:
        p = maker.pick(1, 2, 3, 2.5)
        if not np.all(np.abs(x.array).max(axis) > 0.1):
            raise unfit()
        maker.step(
            f"paddle.norm({{0}}, {p}, axis={axis}, keepdim={keep})", lambda x: _norm(p)(x, axis, keep), x
        )
    else:
        maker.step(
            f"paddle.count_nonzero({{0}}, axis={axis}, keepdim={keep})",
            lambda x: np.sum((x != 0).astype("int64"), axis=axis, keepdims=keep),
            x,
        )


@operation
def ordered(maker):
    """Running sums, orders and places."""
    x = maker.any(least=1)
    axis = maker.axis(x)
    size = x.shape[axis]
    kind = maker.random.randint(0, 6)
    down = maker.flag()

    if kind in (2, 3, 5) and not maker.ties:
        if not np.all(np.diff(np.sort(x.array.astype("float32"), axis), axis=axis)):
            raise unfit()  # which of equal values they name is an implementation's

    def order(x):
        return np.argsort(-x if down else x, axis=axis, kind="stable")

    if kind == 0:
        maker.step(f"paddle.cumsum({{0}}, axis={axis})", lambda x: np.cumsum(x, axis=axis), x)
    elif kind == 1:
        maker.step(
            f"paddle.sort({{0}}, axis={axis}, descending={down})",
            lambda x: np.take_along_axis(x, order(x), axis),
            x,
        )
    elif kind == 2:
        maker.step(f"paddle.argsort({{0}}, axis={axis}, descending={down})", order, x)
    elif kind == 3:
        k = maker.random.randint(1, size)
        maker.step(
            f"paddle.topk({{0}}, {k}, axis={axis}, largest={down})",
            lambda x: (
                np.take(np.take_along_axis(x, order(x), axis), range(k), axis),
                np.take(order(x), range(k), axis),
            ),
            x,
        )
    elif kind == 4:
        name, keep = maker.pick("argmax", "argmin"), maker.flag()
        maker.step(
            f"paddle.{name}({{0}}, axis={axis}, keepdim={keep})",
            lambda x, f=getattr(np, name): f(x, axis=axis, keepdims=keep),
            x,
        )
    elif kind == 5:
        # The places of Paddle 2.6.2 have the shape without the axis.
        k, keep = maker.random.randint(1, size), maker.flag() and not maker.ties

        def kth(x):
            places = np.argsort(x, axis=axis, kind="stable")
            place = np.take(places, [k - 1], axis)
            value = np.take_along_axis(x, place, axis)
            return (value, place) if keep else (np.squeeze(value, axis), np.squeeze(place, axis))

        maker.step(f"paddle.kthvalue({{0}}, {k}, axis={axis}, keepdim={keep})", kth, x)
    else:
        row = maker.leaf((3,), parameter=False)
        row.array = np.sort(row.array)
        right = maker.flag()
        name = maker.pick(("bucketize", "{0}, {1}"), ("searchsorted", "{1}, {0}"))
        maker.step(
            f"paddle.{name[0]}({name[1]}, right={right})",
            lambda x, r: np.searchsorted(r, x, "right" if right else "left"),
            x,
            row,
        )
