"""Gradients of gradients, as penalties on their norm have them, and functions of float64."""

import numpy
from name_cases import within

X = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]
POSITIVE = [[0.5, 1.25, 2.0], [1.5, 0.75, 0.3]]


def _first(paddle, x, y):
    """The gradient of the sum of y^2 by x."""
    return paddle.static.gradients(paddle.sum(paddle.square(y)), x)[0]


def of_functions(paddle, net):
    x, p, functional = net.parameter("x", X), net.parameter("p", POSITIVE), paddle.nn.functional
    made = {name: getattr(paddle, name)(x) for name in ("tanh", "square", "sin", "cos", "abs")}
    made["leaky"], made["elu"] = functional.leaky_relu(x, 0.2), functional.elu(x)
    made["relu"], made["scaled"] = functional.relu(x), paddle.tanh(x * 0.5 - 0.25)
    made["sigmoid"] = functional.sigmoid(x)
    roots = paddle.sqrt(p) * 3.0 + paddle.rsqrt(p) + paddle.log(p) + paddle.pow(p, 2.5)
    return {**{name: _first(paddle, x, y) for name, y in made.items()}, "roots": _first(paddle, p, roots)}


def of_two(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", [[0.75, 1.5, -2.0]])
    made = {"add": x + y, "subtract": x - y, "multiply": x * y, "divide": x / y}
    return {name: _first(paddle, y, one) for name, one in made.items()}


def of_shapes(paddle, net):
    x = net.parameter("x", X)
    made = {"reshape": paddle.reshape(x, [3, 2]), "transpose": paddle.transpose(x, [1, 0]),
            "concat": paddle.concat([x, x * 2.0], 1), "slice": x[:, 1:], "sum": paddle.sum(x, 1),
            "mean": paddle.mean(x, 0), "expand": paddle.expand(x, [2, 2, 3]),
            "split": paddle.split(x, 3, 1)[0]}
    return {name: _first(paddle, x, one * one) for name, one in made.items()}


@within(absolute=1e-4)
def of_layers(paddle, net):
    x = net.parameter("x", X)
    image = net.parameter("image", numpy.sin(numpy.arange(2 * 2 * 5 * 4)).reshape(2, 2, 5, 4))
    dense = paddle.tanh(paddle.nn.Linear(3, 4)(x))
    curved = paddle.nn.functional.leaky_relu(paddle.nn.Conv2D(2, 3, 3, stride=2, padding=1)(image), 0.1)
    return {"dense": _first(paddle, x, paddle.nn.Linear(4, 2)(dense)),
            "convolution": _first(paddle, image, paddle.nn.Conv2D(3, 2, 2)(curved))}


def penalty(paddle, net):
    """Of what is computed from inputs alone, and wants a gradient all the same."""
    real, other = net.data("real", X), net.data("other", POSITIVE)
    mixed = real * 0.25 + other * 0.75
    mixed.stop_gradient = False
    w = net.parameter("w", [[0.5], [-1.0], [0.25]])
    slope = paddle.static.gradients(paddle.tanh(paddle.matmul(mixed, w)), mixed)[0]
    norm = paddle.sqrt(paddle.sum(paddle.square(slope), axis=1))
    return {"slope": slope, "penalty": paddle.mean(paddle.square(norm - 1.0))}


def float64(paddle, net):
    x, p = net.parameter("x", X), net.parameter("p", POSITIVE)
    wide, positive, functional = paddle.cast(x, "float64"), paddle.cast(p, "float64"), paddle.nn.functional
    names = "abs ceil cos exp expm1 floor round sign sin square tan tanh erf atan"
    made = {name: getattr(paddle, name)(wide) for name in names.split()}
    for name in "log log1p log2 log10 sqrt rsqrt reciprocal lgamma digamma".split():
        made[name] = getattr(paddle, name)(positive)
    for name in "relu sigmoid softplus silu elu gelu hardswish relu6 log_sigmoid softsign leaky_relu".split():
        made[name] = getattr(functional, name)(wide)
    return {**made, "clip": paddle.clip(wide, -0.5, 1.0), "pow": paddle.pow(positive, 1.5)}
