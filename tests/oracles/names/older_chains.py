"""Labels of sequences: fluid.layers here, and in the real Paddle the operators, which are left."""

import numpy
from name_cases import values_of

LENGTHS = [3, 1, 0, 4]
CLASSES = 3


def _operator(kind, inputs, outputs, attributes=None):
    """An operator of the real Paddle and its outputs, {name: variable}."""
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper(kind)
    made = {name: helper.create_variable_for_type_inference(dtype) for name, dtype in outputs.items()}
    given = {name: value for name, value in inputs.items() if value is not None}
    helper.append_op(type=kind, inputs=given, outputs=made, attrs=attributes or {})
    return made


def _chain(paddle, x, label, weight, length=None):
    if hasattr(paddle, "fluid"):
        attr = paddle.ParamAttr(name=weight.name)
        return paddle.fluid.layers.linear_chain_crf(x, label, attr, length)
    inputs = {"Emission": x, "Transition": weight, "Label": label, "Length": length}
    outputs = dict.fromkeys(("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"), "float32")
    return _operator("linear_chain_crf", inputs, outputs)["LogLikelihood"]


def _decoded(paddle, x, weight, label=None, length=None):
    if hasattr(paddle, "fluid"):
        attr = paddle.ParamAttr(name=weight.name)
        return paddle.fluid.layers.crf_decoding(x, attr, label, length)
    inputs = {"Emission": x, "Transition": weight, "Label": label, "Length": length}
    return _operator("crf_decoding", inputs, {"ViterbiPath": "int64"})["ViterbiPath"]


def _counted(paddle, found, label, scheme, types, excluded=(), length=None):
    if hasattr(paddle, "fluid"):
        made = paddle.fluid.layers.chunk_eval(found, label, scheme, types, list(excluded), length)
        return dict(zip(("Precision", "Recall", "F1", "Found", "Right", "Both"), made))
    shares = dict.fromkeys(("Precision", "Recall", "F1-Score"), "float32")
    counts = dict.fromkeys(("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"), "int64")
    inputs = {"Inference": found, "Label": label, "SeqLength": length}
    attributes = {"num_chunk_types": types, "chunk_scheme": scheme, "excluded_chunk_types": list(excluded)}
    made = _operator("chunk_eval", inputs, {**shares, **counts}, attributes)
    return dict(zip(("Precision", "Recall", "F1", "Found", "Right", "Both"), made.values()))


def _weight(net):
    return net.parameter("weight", values_of("weight", [CLASSES + 2, CLASSES]) * 2)


def _labels(count, below=CLASSES):
    return (numpy.arange(count) * 7 % 5 % below).reshape(-1, 1)


def _whole(paddle, rows):
    """Numbers of sequences as an array: the real Paddle fetches no sequences as one."""
    zero = paddle.assign(numpy.zeros(1, "float32"))
    return paddle.static.nn.sequence_lod.sequence_pad(paddle.cast(rows, "float32"), zero)[0]


def chain_of_sequences(paddle, net):
    total = sum(LENGTHS)
    rows = net.data("rows", values_of("rows", [total, 4]) * 3, shape=[None, 4], lengths=LENGTHS)
    x = paddle.static.nn.fc(rows, CLASSES, weight_attr="fc_w", bias_attr=False)
    label = net.data("label", _labels(total), "int64", lengths=LENGTHS)
    weight = _weight(net)
    return {
        "loss": _chain(paddle, x, label, weight),
        "best": _whole(paddle, _decoded(paddle, x, weight)),
        "right": _whole(paddle, _decoded(paddle, x, weight, label)),
    }


def chain_of_padded_rows(paddle, net):
    x = net.parameter("x", values_of("x", [4, 5, CLASSES]) * 4)
    label = net.data("label", _labels(20).reshape(4, 5), "int64")
    length = net.data("length", [5, 2, 0, 3], "int64")
    weight = _weight(net)
    return {
        "loss": _chain(paddle, x, label, weight, length),
        "best": _decoded(paddle, x, weight, length=length),
        "right": _decoded(paddle, x, weight, label, length),
    }


def pieces_of_sequences(paddle, net):
    made = {}
    for scheme, places in (("IOB", 2), ("IOE", 2), ("IOBES", 4), ("plain", 1)):
        below = 2 * places + 1
        count = 40
        squares, lengths = numpy.arange(count) ** 2 % 11, [17, 0, 23]
        mixed = numpy.where(numpy.arange(count) % 3, squares, numpy.arange(count))
        found = net.data(scheme + "_found", squares % below, "int64", shape=[None], lengths=lengths)
        right = net.data(scheme + "_right", mixed % below, "int64", shape=[None], lengths=lengths)
        for excluded in ((), (1,)):
            counted = _counted(paddle, found, right, scheme, 2, excluded)
            made |= {f"{scheme}_{len(excluded)}_{name}": value for name, value in counted.items()}
    return made


def pieces_of_padded_rows(paddle, net):
    found = net.data("found", numpy.arange(24).reshape(4, 6) ** 2 % 7 % 5, "int64")
    right = net.data("right", numpy.arange(24).reshape(4, 6) ** 2 % 11 % 5, "int64")
    length = net.data("length", [6, 0, 3, 5], "int64")
    return _counted(paddle, found, right, "IOB", 2, (), length)
