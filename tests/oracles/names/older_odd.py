"""Layers of Paddle 1.x that few scripts have: fluid.layers here, and in the real Paddle the operators."""

import numpy
from name_cases import values_of
from name_operators import operator


def teachers(paddle, net):
    x = net.parameter("x", [[0.5], [-1.0], [2.0], [-0.25], [20.0], [-16.0], [0.0]])
    label = net.data("label", [[-2.0], [-1.0], [0.3], [1.7], [0.5], [-2.0], [1.0]], shape=[7, 1])
    attributes = {"soft_max_up_bound": 15.0, "soft_max_lower_bound": -15.0}
    inputs, outputs = {"X": x, "Label": label}, {"Y": "float32"}
    made = operator(paddle, "teacher_student_sigmoid_loss", inputs, outputs, attributes,
                    older=lambda layers: {"Y": layers.teacher_student_sigmoid_loss(x, label)})
    return {"loss": made["Y"]}


def responses(paddle, net):
    x = net.parameter("x", values_of("x", [2, 6, 2, 3]))
    attributes = {"n": 5, "k": 1.0, "alpha": 0.5, "beta": 0.75, "data_format": "NCHW"}
    made = operator(paddle, "lrn", {"X": x}, {"Out": "float32", "MidOut": "float32"}, attributes,
                    older=lambda layers: {"Out": layers.lrn(x, alpha=0.5)})
    return {"out": made["Out"]}


def positions(paddle, net):
    x = net.parameter("x", values_of("x", [2, 3, 4]))
    attributes = {"alpha": 0.5, "beta": 2.0}
    made = operator(paddle, "add_position_encoding", {"X": x}, {"Out": "float32"}, attributes,
                    older=lambda layers: {"Out": layers.add_position_encoding(x, 0.5, 2.0)})
    return {"out": made["Out"]}


def firsts(paddle, net):
    x = net.data("x", [2, 3, 3, 1, 5, 3], "int32", shape=[6])
    names = ("Out", "Index", "Count")
    made = operator(paddle, "unique_with_counts", {"X": x}, dict.fromkeys(names, "int32"), {"dtype": 2},
                    older=lambda layers: dict(zip(names, layers.unique_with_counts(x))))
    return {"values": made["Out"], "index": made["Index"], "counts": made["Count"]}


def channels(paddle, net):
    x = net.parameter("x", values_of("x", [2, 3, 2, 3]))
    y = net.parameter("y", values_of("y", [2, 4, 2, 3]))
    scale, bias = net.parameter("scale", [1.0, -2.0, 0.5]), net.parameter("bias", [0.5, 1.0, 2.0])
    affine = operator(paddle, "affine_channel", {"X": x, "Scale": scale, "Bias": bias}, {"Out": "float32"},
                      {"data_layout": "NCHW"},
                      older=lambda layers: {"Out": layers.affine_channel(x, scale, bias)})
    fsp = operator(paddle, "fsp", {"X": x, "Y": y}, {"Out": "float32"}, {},
                   older=lambda layers: {"Out": layers.fsp_matrix(x, y)})
    return {"affine": affine["Out"], "fsp": fsp["Out"]}


def called(paddle, net):
    """A function of the script, and its gradient."""
    x, y = net.parameter("x", values_of("x", [3, 2])), net.parameter("y", values_of("y", [3, 2]))
    out = net.main.current_block().create_var(name="made", dtype="float32", shape=[3, 2])
    both = paddle.static.py_func(
        lambda a, b: numpy.array(a) ** 2 * numpy.array(b), [x, y], out,
        lambda a, b, g: (2 * numpy.array(a) * numpy.array(b) * numpy.array(g),
                         numpy.array(a) ** 2 * numpy.array(g)),
        skip_vars_in_backward_input=out)
    return {"out": both * 1.0}
