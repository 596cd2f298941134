"""Layers with parameters that few models have."""

from name_cases import values_of


def products_of_two(paddle, net):
    x, y = net.parameter("x", values_of("x", [3, 4])), net.parameter("y", values_of("y", [3, 2]))
    return {"out": paddle.nn.Bilinear(4, 2, 3)(x, y),
            "plain": paddle.nn.Bilinear(4, 2, 2, bias_attr=False)(x, y),
            "static": paddle.static.nn.bilinear_tensor_product(x, y, 5)}


def without_chance(paddle, net):
    """Layers that draw numbers while training, in a test."""
    functional, x = paddle.nn.functional, net.parameter("x", values_of("x", [2, 3, 4]) * 4)
    return {"rrelu": functional.rrelu(x, 0.1, 0.4, training=False),
            "alpha": functional.alpha_dropout(x, 0.5, training=False),
            "none": functional.dropout(x, 0.0, axis=[0])}
