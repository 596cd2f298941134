"""Sequences of labels without places: the functions of paddle.nn.functional, and of fluid.layers, which are
operators in the real Paddle."""

import numpy
from name_cases import values_of, within
from name_operators import operator

FRAMES, MOST, CLASSES = [5, 3, 4, 1], 5, 4
LABELS = [[1, 2, 1], [3, 3, 1], [1, 1, 3], [3, 2, 1]]
COUNTS = [2, 1, 2, 0]


def _padded(paddle, net):
    logits = net.parameter("logits", values_of("logits", [MOST, 4, CLASSES]) * 5)
    labels = net.data("labels", LABELS, "int32", shape=[4, 3])
    frames = net.data("frames", FRAMES, "int64", shape=[4])
    return logits, labels, frames, net.data("counts", COUNTS, "int64", shape=[4])


@within(relative=1e-4, absolute=1e-3)
def losses(paddle, net):
    logits, labels, frames, counts = _padded(paddle, net)
    ctc = paddle.nn.functional.ctc_loss
    return {"none": ctc(logits, labels, frames, counts, 0, "none"),
            "blank is last": ctc(logits, labels - 1, frames, counts, CLASSES - 1, "none"),
            "sum": ctc(logits, labels, frames, counts, 0, "sum")}


@within(relative=1e-4, absolute=1e-3)
def mean_losses(paddle, net):
    logits = net.parameter("logits", values_of("logits", [MOST, 4, CLASSES]) * 5)
    labels = net.data("labels", LABELS, "int32", shape=[4, 3])
    frames = net.data("frames", [5, 4, 4, 3], "int64", shape=[4])
    counts = net.data("counts", [2, 1, 2, 3], "int64", shape=[4])
    made = {"mean": paddle.nn.functional.ctc_loss(logits, labels, frames, counts)}
    made["layer"] = paddle.nn.CTCLoss(0, "sum")(logits, labels, frames, counts)
    return made


def _rows(net, name, lengths, width):
    rows = net.data(name, values_of(name, [sum(lengths), 3]) * 3, shape=[None, 3], lengths=lengths)
    return net.paddle.static.nn.fc(rows, width, weight_attr=name + "_w", bias_attr=False)


def losses_of_sequences(paddle, net):
    labels = net.data("labels", [[1], [2], [3], [1], [1]], "int32", shape=[None, 1], lengths=[2, 1, 2])
    logits = _rows(net, "x", [4, 2, 3], CLASSES)
    attributes = {"blank": 0, "norm_by_times": True}
    outputs = {"Loss": "float32", "WarpCTCGrad": "float32"}
    made = operator(paddle, "warpctc", {"Logits": logits, "Label": labels}, outputs, attributes,
                    older=lambda layers: {"Loss": layers.warpctc(logits, labels, 0, True)})
    return {"loss": made["Loss"]}


def _shown(paddle, rows):
    """Sequences in one length, and their lengths."""
    if not hasattr(paddle, "fluid"):
        rows.desc.set_lod_level(1)
    values, lengths = paddle.static.nn.sequence_pad(rows, paddle.full([1], 9, rows.dtype))
    return {"values": values, "lengths": lengths}


def decoded(paddle, net):
    found = [[1], [1], [0], [1], [2], [2], [0], [0], [3]]
    x = net.data("x", found, "int32", shape=[None, 1], lengths=[4, 2, 3])
    hot = net.data("hot", numpy.eye(4)[numpy.array(found).ravel()], shape=[None, 4], lengths=[4, 2, 3])
    attributes = {"blank": 0, "merge_repeated": True}
    made = operator(paddle, "ctc_align", {"Input": x}, {"Output": "int32"}, attributes,
                    older=lambda layers: {"Output": layers.cast(layers.ctc_greedy_decoder(hot, 0), "int32")})
    return _shown(paddle, made["Output"])


def decoded_of_one_length(paddle, net):
    rows = [[1, 1, 0, 1], [2, 2, 0, 0], [0, 0, 0, 0]]
    x = net.data("x", rows, "int64", shape=[3, 4])
    hot = net.data("hot", numpy.eye(4)[numpy.array(rows)], shape=[3, 4, 4])
    lengths = net.data("lengths", [[4], [3], [2]], "int64", shape=[3, 1])
    attributes = {"blank": 0, "merge_repeated": True, "padding_value": 9}

    def older(layers):
        labels, counts = layers.ctc_greedy_decoder(hot, 0, lengths, 9)
        return {"Output": labels, "OutputLength": counts}

    made = operator(paddle, "ctc_align", {"Input": x, "InputLength": lengths},
                    {"Output": "int64", "OutputLength": "int64"}, attributes, older=older)
    return {"labels": made["Output"], "counts": made["OutputLength"]}


def _apart(paddle, inputs, attributes, older):
    made = operator(paddle, "edit_distance", inputs, {"Out": "float32", "SequenceNum": "int64"}, attributes,
                    older=older)
    return {"distance": made["Out"], "sequences": made["SequenceNum"]}


def distances(paddle, net):
    found = net.data("found", [[12], [3], [5], [8], [2]], "int64", shape=[None, 1], lengths=[1, 4])
    right = net.data("right", [[12], [4], [7], [8], [2], [1]], "int64", shape=[None, 1], lengths=[3, 3])

    def of(normalized):
        def older(layers):
            return dict(zip(("Out", "SequenceNum"), layers.edit_distance(found, right, normalized)))

        return _apart(paddle, {"Hyps": found, "Refs": right}, {"normalized": normalized}, older)

    return {**of(True), **{"plain " + name: value for name, value in of(False).items()}}


def distances_of_one_length(paddle, net):
    found = net.data("found", [[1, 2, 3, 0], [4, 4, 1, 2]], "int64", shape=[2, 4])
    right = net.data("right", [[1, 3, 0], [4, 1, 1]], "int64", shape=[2, 3])
    lengths, counts = (net.data(name, values, "int64", shape=[2])
                       for name, values in (("lengths", [3, 4]), ("counts", [2, 3])))

    def older(layers):
        return dict(zip(("Out", "SequenceNum"),
                        layers.edit_distance(found, right, True, None, lengths, counts)))

    inputs = {"Hyps": found, "Refs": right, "HypsLength": lengths, "RefsLength": counts}
    return _apart(paddle, inputs, {"normalized": True}, older)
