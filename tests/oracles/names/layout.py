"""Shapes, parts, and the order of values."""

import numpy

CUBE = numpy.arange(24).reshape(2, 3, 4) / 8.0 - 1.0


def reshaping(paddle, net):
    x = net.parameter("x", CUBE)
    return {"reshape": paddle.reshape(x, [4, -1]), "zero": paddle.reshape(x, [0, 12]),
            "flatten": paddle.flatten(x, 1),
            "flat": paddle.flatten(x), "middle": paddle.flatten(x, 0, 1)}


def axes_of_one(paddle, net):
    x = net.parameter("x", CUBE[:1])
    return {"squeeze": paddle.squeeze(x, 0), "all": paddle.squeeze(x),
            "unsqueeze": paddle.unsqueeze(x, [0, 2]),
            "last": paddle.unsqueeze(x, -1)}


def sizes_of_the_run(paddle, net):
    x = net.data("x", CUBE)
    batch = paddle.shape(x)[0]
    return {"shape": paddle.shape(x), "reshape": paddle.reshape(x, [batch * 3, 4]),
            "two": paddle.reshape(x, [batch, -1, 2]),
            "whole": paddle.reshape(paddle.flatten(x), paddle.shape(x)), "full": paddle.full([batch, 2], 1.5),
            "tile": paddle.tile(net.parameter("row", [[1.0, 2.0]]), [batch, 1]),
            "arange": paddle.arange(batch),
            "numel": paddle.numel(x), "rank": paddle.rank(x)}


def transposing(paddle, net):
    x = net.parameter("x", CUBE)
    return {"transpose": paddle.transpose(x, [2, 0, 1]), "t": paddle.t(net.parameter("m", CUBE[0]))}


def cutting(paddle, net):
    x = net.parameter("x", CUBE)
    return {"slice": paddle.slice(x, [1, 2], [1, -3], [3, 100]), "number": x[1], "range": x[:, 1:],
            "last": x[:, -1, 1:3],
            "step": x[:, ::2, 1::2], "dots": x[..., 0], "new": x[:, None, 0], "strided": paddle.strided_slice(
                x, [2], [0], [4], [3])}


def splitting(paddle, net):
    x = net.parameter("x", CUBE)
    a, b = paddle.split(x, 2, axis=2)
    c, d, e = paddle.split(x, [1, -1, 1], axis=-1)
    f, g = paddle.unbind(x)
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g, "chunk": paddle.chunk(x, 3, axis=1)[1]}


def joining(paddle, net):
    x, y = net.parameter("x", CUBE), net.parameter("y", CUBE[:, :1])
    z = net.parameter("z", CUBE * 2.0)
    return {"concat": paddle.concat([x, y], axis=1), "first": paddle.concat([x, z]),
            "stack": paddle.stack([x, z]),
            "stack_last": paddle.stack([x, z], axis=-1), "add_n": paddle.add_n([x, z])}


def joining_integers(paddle, net):
    x = net.data("x", [[1, 2], [3, 4]], "int64")
    return {"concat": paddle.concat([x, x], axis=-1), "stack": paddle.stack([x, x], axis=1)}


def repeating(paddle, net):
    x, row = net.parameter("x", CUBE[0]), net.parameter("row", [[1.0, 2.0, 3.0, 4.0]])
    return {"tile": paddle.tile(x, [2, 3]), "deep": paddle.tile(row, [2, 3, 1]),
            "expand": paddle.expand(row, [3, -1]),
            "new": paddle.expand(row, [2, 3, 4]), "broadcast_to": paddle.broadcast_to(row, [2, 4]),
            "expand_as": paddle.expand_as(row, x)}


def triangles(paddle, net):
    x = net.parameter("x", CUBE)
    return {"tril": paddle.tril(x), "tril_1": paddle.tril(x, 1), "triu": paddle.triu(x),
            "triu_1": paddle.triu(x, -1)}


def turning(paddle, net):
    x = net.parameter("x", CUBE)
    return {"flip": paddle.flip(x, [1]), "roll": paddle.roll(x, 1, 2)}
