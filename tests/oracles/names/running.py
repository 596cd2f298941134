"""Values up to each along an axis; and functions of one tensor that few models have."""

import numpy

X = [[0.5, -1.25, 2.0, 0.75], [3.0, 0.75, -0.5, 3.0], [-1.0, -1.0, 0.25, 1.5]]
ZEROS = [[0.5, 0.0, 2.0, 0.0], [3.0, 0.75, -0.5, 3.0]]


def products(paddle, net):
    x, zeros = net.parameter("x", X), net.parameter("zeros", ZEROS)
    return {"last": paddle.cumprod(x, -1), "first": paddle.cumprod(x, 0), "zeros": paddle.cumprod(zeros, 1)}


def sums_of_powers(paddle, net):
    x = net.parameter("x", X)
    return {"last": paddle.logcumsumexp(x, -1), "flat": paddle.logcumsumexp(x),
            "first": paddle.logcumsumexp(x, 0)}


def extremes(paddle, net):
    x = net.parameter("x", X)
    made = {}
    for name in ("cummax", "cummin"):
        for axis in (0, -1, None):
            values, places = getattr(paddle, name)(x, axis)
            made[f"{name} {axis}"], made[f"{name} {axis} places"] = values, places
    return made


def areas(paddle, net):
    """Of an input that is fed: Paddle 2.6.2 gives every row the gradient of the first."""
    y, x = net.data("y", X, shape=[3, 4]), net.data("x", [0.0, 1.0, 3.0, 3.5], shape=[4])
    return {"plain": paddle.cumulative_trapezoid(y), "dx": paddle.cumulative_trapezoid(y, dx=0.5),
            "x": paddle.cumulative_trapezoid(y, x)}


def angles(paddle, net):
    small = net.parameter("small", [[0.5, -0.25, 0.75], [0.1, -0.9, 0.3]])
    x = net.parameter("x", [[1.0, -2.0, 0.5, -0.3], [2.0, 1.0, -1.0, 3.0]])
    y = net.parameter("y", [[-1.0, -0.5, 2.0, 1.0], [0.5, -3.0, -1.0, -0.25]])
    return {"asin": paddle.asin(small), "acos": paddle.acos(small), "atan": paddle.atan(x),
            "atan2": paddle.atan2(x, y)}


def gammas(paddle, net):
    x = net.parameter("x", [[0.5, 1.25, 2.0, 7.5], [3.0, 0.1, 12.0, 30.0]])
    small = net.parameter("small", [[0.5, -0.25, 0.75], [0.001, -0.99, 0.3]])
    return {"lgamma": paddle.lgamma(x), "digamma": paddle.digamma(x), "erfinv": paddle.erfinv(small)}


def norms_cut(paddle, net):
    x = net.parameter("x", [[[2.0, 2.0, -2.0], [3.0, 0.3, 3.0]], [[2.0, -8.0, 2.0], [3.1, 3.7, 3.0]]])
    return {"renorm": paddle.renorm(x, 1.0, 2, 2.05), "two": paddle.renorm(x, 2.0, 0, 4.0)}


def counts(paddle, net):
    x = net.data("x", [1, 2, 1, 4, 5], "int64", shape=[5])
    w = net.data("w", [2.1, 0.4, 0.1, 0.5, 0.5], shape=[5])
    values = net.data("values", [1.0, 2.0, 1.0, 4.0, 9.0, -1.0], shape=[6])
    return {"bins": paddle.bincount(x), "weights": paddle.bincount(x, w),
            "minlength": paddle.bincount(x, None, 9),
            "histogram": paddle.histogram(values, 4, 0, 3), "range": paddle.histogram(values, 5)}


def places(paddle, net):
    x = net.parameter("x", X)
    along = net.data("along", [[0, 2, 1, 0]], "int64", shape=[1, 4])
    updates = net.parameter("updates", [[5.0, 6.0, 7.0, 8.0]])
    made = {"put": paddle.put_along_axis(x, along, updates, 0),
            "added": paddle.put_along_axis(x, along, updates, 0, "add")}
    rows = net.data("rows", [0, 2], "int64", shape=[2])
    columns = net.data("columns", [3, 1], "int64", shape=[2])
    value = net.parameter("value", [9.0, -9.0])
    made["index_put"] = paddle.index_put(x, (rows, columns), value)
    made["accumulated"] = paddle.index_put(x, (rows, columns), value, True)
    made["filled"] = paddle.index_fill(x, rows, 1, -1.0)
    return made


def losses(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", X)
    label = net.data("label", [1, 3, 0], "int64", shape=[3])
    weight = net.data("weight", [1.0, 2.0, 0.5, 1.5], shape=[4])
    y = net.data("y", numpy.cos(numpy.array(X)), shape=[3, 4])
    variance = net.parameter("variance", numpy.abs(numpy.array(X)) + 0.1)
    return {"margin": functional.multi_margin_loss(x, label, reduction="none"),
            "squares": functional.multi_margin_loss(x, label, 2, 0.5, weight),
            "gaussian": functional.gaussian_nll_loss(x, y, variance),
            "full": functional.gaussian_nll_loss(x, y, variance, True, reduction="none")}


def products_of_matrices(paddle, net):
    x = net.parameter("x", X)
    square = net.parameter("square", [[0.5, -1.0], [2.0, 0.25]])
    return {"norm": paddle.linalg.norm(x, axis=1),
            "power": paddle.linalg.matrix_power(square, 3),
            "dot": paddle.linalg.multi_dot([square, square, square])}
