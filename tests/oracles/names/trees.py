"""Losses over trees of classes and samples of them, trees of items."""

import numpy
from name_cases import values_of

LABELS = numpy.array([[0], [3], [5], [6]], "int64")


def complete_trees(paddle, net):
    functional = paddle.nn.functional
    made = {}
    for classes in (7, 8, 2, 13):
        x = net.parameter(f"x{classes}", values_of(f"x{classes}", [4, 3]) * 4)
        weight = net.parameter(f"w{classes}", values_of(f"w{classes}", [classes - 1, 3]) * 3)
        bias = net.parameter(f"b{classes}", values_of(f"b{classes}", [classes - 1, 1]))
        label = net.data(f"label{classes}", LABELS % classes, "int64", shape=[4, 1])
        made[f"{classes}"] = functional.hsigmoid_loss(x, label, classes, weight, bias)
        made[f"{classes} plain"] = functional.hsigmoid_loss(x, label, classes, weight)
    return made


def given_trees(paddle, net):
    x = net.parameter("x", values_of("x", [4, 3]) * 4)
    weight = net.parameter("w", values_of("w", [6, 3]) * 3)
    bias = net.parameter("b", values_of("b", [6, 1]))
    label = net.data("label", LABELS, "int64", shape=[4, 1])
    table = net.data("table", [[0, 2, -1], [0, 1, 4], [0, 1, -1], [0, 2, 5]], "int64", shape=[4, 3])
    code = net.data("code", [[1, 0, -1], [0, 1, 1], [0, 0, -1], [1, 1, 0]], "int64", shape=[4, 3])
    return {"out": paddle.nn.functional.hsigmoid_loss(x, label, 7, weight, bias, table, code)}


def drawn_classes(paddle, net):
    """One class alone is drawn."""
    net.keep_initial_values()
    label = net.data("label", [[0, 2], [1, 2], [2, 0], [0, 1]], "int64", shape=[None, 2])
    rows = net.data("rows", [[1.0], [0.5], [2.0], [0.0]], shape=[None, 1])

    def given(name, shape):
        values = paddle.nn.initializer.Assign(values_of(name, shape) * 3)
        return paddle.ParamAttr(name=name, initializer=values)

    x = paddle.create_parameter([4, 3], "float32", attr=given("x", [4, 3]))
    made = {}
    for name, weights in (("plain", None), ("weighted", rows)):
        attrs = {"param_attr": given(name + "_w", [4, 3]), "bias_attr": given(name + "_b", [4, 1])}
        made[name] = paddle.static.nn.nce(x, label, 4, weights, num_neg_samples=3, sampler="custom_dist",
                                          custom_dist=[0.0, 0.0, 1.0, 0.0], **attrs)
    return made


def children(paddle, net):
    net.keep_initial_values()
    info = [[0, 0, 0, 1, 2], [0, 1, 0, 3, 4], [0, 1, 0, 5, 6], [0, 2, 1, 0, 0], [1, 2, 1, 0, 0],
            [2, 2, 2, 0, 0], [3, 2, 2, 0, 0]]
    x = net.data("x", [[0], [2], [1], [3]], "int64", shape=[None, 1])
    two = net.data("two", [[1, 2], [5, 0]], "int64", shape=[None, 2])
    given = paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(numpy.array(info, "int32")))
    child = paddle.incubate.layers.tdm_child
    made = [*child(x, 7, 2, given), *child(two, 7, 2, given)]
    return {str(i): one for i, one in enumerate(made)}


def samples(paddle, net):
    """As many of a layer as there are others."""
    net.keep_initial_values()
    x = net.data("x", [[1], [0], [3]], "int64", shape=[None, 1])
    travel = numpy.array([[1, 3], [1, 4], [2, 5], [2, 0]], "int32")
    layers = numpy.array([[1], [2], [3], [4], [5], [6]], "int32")
    attrs = [paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(one)) for one in (travel, layers)]
    sampler = paddle.incubate.layers.tdm_sampler
    three = sampler(x, [1, 0], [2, 4], 4, *attrs, output_positive=True, output_list=True)
    flat = sampler(x, [1, 3], [2, 4], 4, *attrs, output_positive=False, output_list=False)
    made = {f"{i}.{j}": one for i, part in enumerate(three) for j, one in enumerate(part)}
    order = paddle.sort(flat[0], 1)
    return {**made, "order": order, "labels": flat[1], "mask": flat[2]}
