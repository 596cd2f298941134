"""Recurrent layers and cells."""

import numpy
from name_cases import values_of

X = numpy.sin(numpy.arange(3 * 5 * 4) * 1.3).reshape(3, 5, 4)
STATE = numpy.cos(numpy.arange(3 * 2)).reshape(3, 2)
LENGTHS = [5, 2, 4]


def _flat(net):
    """Real Paddle keeps a stacked layer's parameters in one that has them all:
    weights of every cell first, then biases."""
    parameters = [parameter for parameter in net.main.all_parameters() if parameter.trainable]
    for whole in parameters:
        if whole.name.split("_")[0] in ("gru", "lstm", "simple") and "cell" not in whole.name:
            parts = [part for part in parameters if "_cell_" in part.name]
            parts.sort(key=lambda part: ".b_" in part.name)
            net.given[whole.name] = numpy.concatenate([values_of(part.name, part.shape).ravel()
                                                       for part in parts])


def _named(returned):
    outputs, states = returned
    states = states if isinstance(states, (list, tuple)) else [states]
    return {"out": outputs, **{f"state {index}": state for index, state in enumerate(states)}}


def _of(paddle, net, layer, *more):
    returned = _named(layer(net.parameter("x", X), *more))
    _flat(net)
    return returned


def gru(paddle, net):
    return _of(paddle, net, paddle.nn.GRU(4, 2))


def gru_of_lengths(paddle, net):
    first = net.parameter("first", STATE[None])
    return _of(paddle, net, paddle.nn.GRU(4, 2), first, net.data("lengths", LENGTHS, "int64", shape=[3]))


def gru_both_ways(paddle, net):
    layer = paddle.nn.GRU(4, 2, num_layers=2, direction="bidirect")
    return _of(paddle, net, layer, None, net.data("lengths", LENGTHS, "int64", shape=[3]))


def lstm(paddle, net):
    return _of(paddle, net, paddle.nn.LSTM(4, 2, num_layers=2))


def lstm_of_lengths(paddle, net):
    first = [net.parameter(name, STATE[None] * factor) for name, factor in (("h", 1.0), ("c", -0.5))]
    return _of(paddle, net, paddle.nn.LSTM(4, 2), first, net.data("lengths", LENGTHS, "int64", shape=[3]))


def lstm_both_ways(paddle, net):
    return _of(paddle, net, paddle.nn.LSTM(4, 2, direction="bidirectional"))


def time_first(paddle, net):
    layer = paddle.nn.LSTM(4, 2, time_major=True)
    returned = _named(layer(net.parameter("x", X.transpose(1, 0, 2))))
    _flat(net)
    return returned


def simple(paddle, net):
    return _of(paddle, net, paddle.nn.SimpleRNN(4, 2, activation="relu"))


def cells(paddle, net):
    x, state = net.parameter("x", X[:, 0]), net.parameter("state", STATE)
    found = {}
    for cell in (paddle.nn.SimpleRNNCell(4, 2), paddle.nn.SimpleRNNCell(4, 2, activation="relu"),
                 paddle.nn.GRUCell(4, 2)):
        found[cell.full_name()], _ = cell(x, state)
    found["lstm"], (_, found["lstm cell"]) = paddle.nn.LSTMCell(4, 2)(x, (state, state))
    return found


def cells_from_nothing(paddle, net):
    x = net.data("x", X[:, 0], shape=[3, 4])
    return {"gru": paddle.nn.GRUCell(4, 2)(x)[0], "lstm": paddle.nn.LSTMCell(4, 2)(x)[0]}


def rnn_of_cells(paddle, net):
    x = net.data("x", X, shape=[3, 5, 4])
    state = net.parameter("state", STATE)
    gru, last = paddle.nn.RNN(paddle.nn.GRUCell(4, 2))(x, state)
    back, _ = paddle.nn.RNN(paddle.nn.SimpleRNNCell(4, 2), is_reverse=True)(x, state)
    lstm, (_, cell) = paddle.nn.RNN(paddle.nn.LSTMCell(4, 2))(x, (state, state))
    return {"gru": gru, "last": last, "back": back, "lstm": lstm, "cell": cell}
