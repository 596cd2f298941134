"""Recurrent layers of Paddle 1.x: fluid.layers here, and in the real Paddle the operators, which are left."""

import numpy
from name_cases import values_of

LENGTHS = [3, 1, 4]


def _rows(net, name, width, lengths=LENGTHS):
    """Sequences whose values are trained, by a product."""
    rows = net.data(name, values_of(name, [sum(lengths), 3]) * 3, shape=[None, 3], lengths=lengths)
    return net.paddle.static.nn.fc(rows, width, weight_attr=name + "_w", bias_attr=False)


def _older(paddle):
    return hasattr(paddle, "fluid")


def _operator(paddle, kind, inputs, outputs, attributes):
    """An operator of the real Paddle and its first outputs."""
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper(kind)
    made = {name: helper.create_variable_for_type_inference("float32") for name in outputs}
    given = {name: value for name, value in inputs.items() if value is not None}
    helper.append_op(type=kind, inputs=given, outputs=made, attrs=attributes)
    return made


def _gru(paddle, net, name, first=None, bias=True, **more):
    x, width = _rows(net, name, 6), 2
    weight = net.parameter(name + "_weight", values_of(name + "_weight", [width, 3 * width]) * 2)
    offset = net.parameter(name + "_bias", values_of(name + "_bias", [1, 3 * width]))
    if _older(paddle):
        attrs = paddle.ParamAttr(name=weight.name), paddle.ParamAttr(name=offset.name)
        return paddle.fluid.layers.dynamic_gru(x, width, attrs[0], attrs[1], h_0=first, **more)
    attributes = {"is_reverse": more.get("is_reverse", False), "origin_mode": more.get("origin_mode", False)}
    attributes["gate_activation"] = more.get("gate_activation", "sigmoid")
    attributes["activation"] = more.get("candidate_activation", "tanh")
    inputs = {"Input": x, "Weight": weight, "Bias": offset, "H0": first}
    outputs = ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")
    return _operator(paddle, "gru", inputs, outputs, attributes)["Hidden"]


def _lstm(paddle, net, name, first=(None, None), use_peepholes=True, **more):
    x, width = _rows(net, name, 8), 2
    biases = (7 if use_peepholes else 4) * width
    weight = net.parameter(name + "_weight", values_of(name + "_weight", [width, 4 * width]) * 2)
    offset = net.parameter(name + "_bias", values_of(name + "_bias", [1, biases]))
    if _older(paddle):
        attrs = paddle.ParamAttr(name=weight.name), paddle.ParamAttr(name=offset.name)
        return paddle.fluid.layers.dynamic_lstm(x, 4 * width, *first, *attrs, use_peepholes, **more)
    usual = {"is_reverse": False, "gate_activation": "sigmoid", "cell_activation": "tanh"}
    attributes = {**usual, "candidate_activation": "tanh", **more, "use_peepholes": use_peepholes}
    inputs = {"Input": x, "Weight": weight, "Bias": offset, "H0": first[0], "C0": first[1]}
    made = _operator(paddle, "lstm", inputs, ("Hidden", "Cell", "BatchGate", "BatchCellPreAct"), attributes)
    return made["Hidden"], made["Cell"]


def _padded(paddle, rows):
    """Sequences of one length: the real Paddle fetches no others as an array."""
    return paddle.static.nn.sequence_lod.sequence_pad(rows, paddle.assign(numpy.zeros(1, "float32")))[0]


def dynamic_gru(paddle, net):
    first = net.parameter("first", values_of("first", [3, 2]))
    made = {
        "plain": _gru(paddle, net, "plain"),
        "first": _gru(paddle, net, "from", first),
        "back": _gru(paddle, net, "back", is_reverse=True, origin_mode=True),
        "relu": _gru(paddle, net, "relu", candidate_activation="relu", gate_activation="identity"),
    }
    return {name: _padded(paddle, rows) for name, rows in made.items()}


def dynamic_lstm(paddle, net):
    first = [net.parameter(name, values_of(name, [3, 2])) for name in ("h", "c")]
    made = {
        "plain": _lstm(paddle, net, "plain"),
        "first": _lstm(paddle, net, "from", first),
        "back": _lstm(paddle, net, "back", use_peepholes=False, is_reverse=True),
        "relu": _lstm(paddle, net, "relu", candidate_activation="relu", cell_activation="identity"),
    }
    return {f"{name} {i}": _padded(paddle, one) for name, both in made.items() for i, one in enumerate(both)}


def steps(paddle, net):
    x, h = net.parameter("x", values_of("x", [3, 6])), net.parameter("h", values_of("h", [3, 2]) * 2)
    c = net.parameter("c", values_of("c", [3, 2]))
    narrow = net.parameter("narrow", values_of("narrow", [3, 4]))
    weight, bias = (
        net.parameter(name, values_of(name, shape) * 2) for name, shape in (("w", [2, 6]), ("b", [1, 6]))
    )
    fc_w = net.parameter("fc_w", values_of("fc_w", [6, 8]))
    fc_b = net.parameter("fc_b", values_of("fc_b", [8]))
    made = {}
    for origin in (False, True):
        if _older(paddle):
            attrs = paddle.ParamAttr(name="w"), paddle.ParamAttr(name="b")
            three = paddle.fluid.layers.gru_unit(x, h, 6, *attrs, origin_mode=origin)
        else:
            inputs = {"Input": x, "HiddenPrev": h, "Weight": weight, "Bias": bias}
            attributes = {"activation": 2, "gate_activation": 1, "origin_mode": origin}
            names = ("Hidden", "ResetHiddenPrev", "Gate")
            found = _operator(paddle, "gru_unit", inputs, names, attributes)
            three = [found[name] for name in names]
        made |= {f"gru {origin} {i}": one for i, one in enumerate(three)}
    if _older(paddle):
        attrs = {"param_attr": paddle.ParamAttr(name="fc_w"), "bias_attr": paddle.ParamAttr(name="fc_b")}
        state, cell = paddle.fluid.layers.lstm_unit(narrow, h, c, 0.5, **attrs)
    else:
        gates = paddle.matmul(paddle.concat([narrow, h], 1), fc_w) + fc_b
        # 2.6.2 has this operator no more: its formula, of Paddle 1.8.
        enters, stays, leaves, candidate = paddle.split(gates, 4, 1)
        sigmoid = paddle.nn.functional.sigmoid
        cell = sigmoid(stays + 0.5) * c + sigmoid(enters) * paddle.tanh(candidate)
        state = sigmoid(leaves) * paddle.tanh(cell)
    return {**made, "lstm": state, "cell": cell}
