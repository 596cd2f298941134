"""Attention and the transformer's encoder."""

import numpy

X = numpy.sin(numpy.arange(2 * 3 * 4) * 1.3).reshape(2, 3, 4)
OTHER = numpy.cos(numpy.arange(2 * 5 * 6)).reshape(2, 5, 6)
TARGET = numpy.cos(numpy.arange(2 * 5 * 4)).reshape(2, 5, 4)
MASK = [[[[True, False, False], [True, True, False], [True, True, True]]]]


def attention(paddle, net):
    x, other = net.parameter("x", X), net.parameter("other", OTHER)
    layer = paddle.nn.MultiHeadAttention(4, 2, kdim=6, vdim=6, need_weights=True)
    out, weights = layer(x, other, other)
    return {"out": out, "weights": weights, "self": paddle.nn.MultiHeadAttention(4, 1)(x)}


def encoder_layer(paddle, net):
    x = net.parameter("x", X)
    layer = paddle.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    before = paddle.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, normalize_before=True)
    mask = net.data("mask", MASK, "bool", shape=[1, 1, 3, 3])
    numbers = net.data("numbers", numpy.asarray(MASK, "int64"), "int64", shape=[1, 1, 3, 3])
    return {"plain": layer(x), "before": before(x, mask), "numbers": layer(x, numbers)}


def encoder(paddle, net):
    layer = paddle.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    stacked = paddle.nn.TransformerEncoder(layer, 2, norm=paddle.nn.LayerNorm(4))
    return {"out": stacked(net.parameter("x", X))}


def encoder_for_test(paddle, net):
    out = paddle.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3)(net.data("x", X))
    test = net.main.clone(for_test=True)
    net.start()
    return {"out": net.run([out], program=test)[0]}


def decoder(paddle, net):
    x, memory = net.parameter("x", X), net.parameter("memory", TARGET)
    layer = paddle.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)
    before = paddle.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, normalize_before=True)
    mask = net.data("mask", MASK, "bool", shape=[1, 1, 3, 3])
    return {"plain": layer(x, memory), "before": before(x, memory, mask),
            "stacked": paddle.nn.TransformerDecoder(layer, 2, paddle.nn.LayerNorm(4))(x, memory)}


def transformer(paddle, net):
    x, target = net.parameter("x", X), net.parameter("target", TARGET)
    whole = paddle.nn.Transformer(4, 2, 1, 2, 8, dropout=0.0)
    mask = whole.generate_square_subsequent_mask(5)
    return {"out": whole(x, target, tgt_mask=mask), "mask": mask}
