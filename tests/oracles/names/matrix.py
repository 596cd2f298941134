"""Products of matrices."""

import numpy

X = numpy.arange(12).reshape(3, 4) / 4.0 - 1.0
Y = numpy.arange(8).reshape(4, 2) / 4.0 - 1.0
CUBE = numpy.arange(24).reshape(2, 3, 4) / 12.0 - 1.0


def products(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", Y)
    return {"matmul": paddle.matmul(x, y), "left": paddle.matmul(x, x, transpose_x=True), "right":
            paddle.matmul(x, x, transpose_y=True), "mm": paddle.mm(x, y), "operator": x @ y}


def batches(paddle, net):
    x, y = net.parameter("x", CUBE), net.parameter("y", CUBE.transpose(0, 2, 1) * 0.5)
    return {"bmm": paddle.bmm(x, y), "matmul": paddle.matmul(x, y),
            "shared": paddle.matmul(x, net.parameter("m", Y)),
            "turned": paddle.matmul(x, x, transpose_y=True), "first": paddle.matmul(net.parameter("n", X), y)}


def broadcast(paddle, net):
    x, y = net.parameter("x", CUBE.reshape(2, 1, 3, 4)), net.parameter("y",
                                                                       CUBE.reshape(1, 2, 4, 3)[:, :, :, :2])
    return {"matmul": paddle.matmul(x, y)}


def vectors(paddle, net):
    x, v, w = net.parameter("x", X), net.parameter("v", [1.0, -0.5, 2.0,
                                                         0.25]), net.parameter("w", [0.5, 1.5, -1.0])
    return {"column": paddle.matmul(x, v), "row": paddle.matmul(w, x), "dot": paddle.matmul(v, v), "rows":
            paddle.dot(x, x * 2.0), "outer": paddle.outer(v, w)}


def linear(paddle, net):
    x, w, b = net.parameter("x", CUBE), net.parameter("w", Y), net.parameter("b", [0.5, -0.5])
    return {"linear": paddle.nn.functional.linear(x, w, b), "plain": paddle.nn.functional.linear(x, w)}


def einsum_of_two(paddle, net):
    x, y, z = net.parameter("x", X), net.parameter("y", Y), net.parameter("z", CUBE)
    return {"product": paddle.einsum("ij,jk->ik", x, y), "turned": paddle.einsum("ij,jk->ki", x, y),
            "batch": paddle.einsum("bij,bkj->bik", z, z * 0.5), "implicit": paddle.einsum("ij,jk", x, y)}


def einsum_that_keeps_letters(paddle, net):
    """Of inputs that are fed: Paddle 2.6.2 fails on some of these gradients."""
    x, y, z = net.data("x", X), net.data("y", Y), net.data("z", CUBE)
    return {"outer": paddle.einsum("ij,kl->ikjl", x, y), "values": paddle.einsum("bij,ij->bij", z, x),
            "summed": paddle.einsum("bij,ij->b", z, x), "dots": paddle.einsum("...ij,jk->...ik", z, y)}


def einsum_of_one(paddle, net):
    z = net.parameter("z", CUBE)
    return {"transpose": paddle.einsum("abc->cab", z), "sum": paddle.einsum("abc->b", z)}


def einsum_to_one_number(paddle, net):
    x, y = net.parameter("x", [[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]), net.parameter("y", [1.0, -2.0, 0.5])
    return {"all": paddle.einsum("ij->", x), "both": paddle.einsum("ij,j->", x, y),
            "apart": paddle.einsum("i,j->", y, y),
            "dot": paddle.einsum("i,i->", y, y)}
