"""Layers over sequences: a sequence without values is among them where Paddle computes one."""

import numpy

LENGTHS, OTHERS, FULL = [2, 0, 4, 1], [1, 2, 1, 1], [2, 1, 4]
IDS = [[5], [0], [1], [4], [1], [2], [2]]


def _rows(paddle, net, name="x", lengths=LENGTHS, width=3):
    """Sequences that gradients reach: what is fed times a parameter."""
    values = numpy.sin(0.7 * numpy.arange(sum(lengths) * width) + len(name)).reshape(-1, width)
    fed = net.data(name, values, lengths=lengths)
    return fed * net.parameter(name + "_times", [[1.5, -0.5, 2.0][:width]])


def _shown(paddle, sequences, key="", pad=9.0):
    """The sequences in one length, and their lengths."""
    pad = paddle.full([1], pad, sequences.dtype)
    values, lengths = paddle.static.nn.sequence_pad(sequences, pad)
    return {key + "values": values, key + "lengths": lengths}


def pooled_with_a_value_for_none(paddle, net):
    x = _rows(paddle, net)
    return {kind: paddle.static.nn.sequence_pool(x, kind, pad_value=1.5)
            for kind in ("sum", "average", "sqrt", "max", "first", "last")}


def steps_at_the_ends(paddle, net):
    x = _rows(paddle, net, lengths=FULL)
    return {"first": paddle.static.nn.sequence_first_step(x), "last": paddle.static.nn.sequence_last_step(x)}


def parts_of_one(paddle, net):
    x = _rows(paddle, net, lengths=FULL, width=1)
    return _shown(paddle, paddle.static.nn.sequence_softmax(x))


def behind_each_other(paddle, net):
    x, y = _rows(paddle, net), _rows(paddle, net, "other", OTHERS)
    return _shown(paddle, paddle.static.nn.sequence_concat([x, y]))


def pieces(paddle, net):
    """After it Paddle knows of sequences only when the program runs, so sums are asked for."""
    offset = paddle.assign(numpy.array([[1], [0], [1], [0]]))
    length = paddle.assign(numpy.array([[1], [0], [3], [1]]))
    piece = paddle.static.nn.sequence_slice(_rows(paddle, net), offset, length)
    return {"sum": paddle.sum(piece), "squares": paddle.sum(piece * piece),
            "first": paddle.sum(paddle.slice(piece, [0], [0], [1]))}


def repeated(paddle, net):
    ids = net.data("ids", IDS, "int64", lengths=LENGTHS)
    row = net.parameter("row", numpy.cos(numpy.arange(12.0)).reshape(4, 3))
    return {"rows": paddle.static.nn.sequence_pool(paddle.static.nn.sequence_expand_as(row, ids), "sum"),
            **_shown(paddle, paddle.static.nn.sequence_expand(_rows(paddle, net, lengths=OTHERS), ids)),
            **_shown(paddle, paddle.static.nn.sequence_expand_as(row, ids), "as_")}


def in_one_length(paddle, net):
    x = _rows(paddle, net)
    longer, _ = paddle.static.nn.sequence_pad(x, paddle.full([1], 2.5, "float32"), 5)
    row, lengths = paddle.static.nn.sequence_pad(x, paddle.assign(numpy.array([1, 2, 3], "float32")), 4)
    ids, _ = paddle.static.nn.sequence_pad(net.data("ids", IDS, "int64", lengths=LENGTHS),
                                           paddle.full([1], 7, "int64"))
    return {"longer": longer, "row": row, "lengths": lengths, "ids": ids}


def out_of_one_length(paddle, net):
    x = net.parameter("x", numpy.cos(numpy.arange(24.0)).reshape(3, 4, 2))
    lengths = paddle.assign(numpy.array([2, 4, 1]))
    return _shown(paddle, paddle.static.nn.sequence_unpad(x, lengths))


def other_rows(paddle, net):
    x = _rows(paddle, net, lengths=[2, 4])
    return {**_shown(paddle, paddle.static.nn.sequence_reshape(x, 6)),
            **_shown(paddle, paddle.static.nn.sequence_reverse(_rows(paddle, net, "other")), "back_")}


def windows_of_ids(paddle, net):
    ids = net.data("ids", IDS, "int64", lengths=LENGTHS)
    return _shown(paddle, paddle.static.nn.sequence_enumerate(ids, 3, 11), pad=8)


def added_in_places(paddle, net):
    ids = net.data("ids", IDS, "int64", lengths=LENGTHS)
    updates = _rows(paddle, net, width=1)
    base = net.parameter("base", numpy.cos(numpy.arange(28.0)).reshape(4, 7))
    return {"sums": paddle.static.nn.sequence_scatter(base, ids, updates)}


def convolved(paddle, net):
    x = _rows(paddle, net)
    middle = paddle.static.nn.sequence_conv(x, 4, 3, act="tanh")
    ahead = paddle.static.nn.sequence_conv(x, 2, 2, padding_start=0, bias_attr=False)
    rows = paddle.static.nn.row_conv(_rows(paddle, net, "full", FULL), 2)
    return {**_shown(paddle, middle), **_shown(paddle, ahead, "ahead_"), **_shown(paddle, rows, "rows_")}
