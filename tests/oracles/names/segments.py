"""paddle.geometric, and what models of ranking have of paddle.incubate.layers."""

import numpy
from name_cases import values_of

ROWS = values_of("rows", [6, 3]) * 4
IDS = [0, 0, 1, 3, 3, 3]


def segments(paddle, net):
    ids = net.data("ids", IDS, "int64", shape=[None])
    return {
        name: getattr(paddle.geometric, "segment_" + name)(net.parameter("x_" + name, ROWS), ids)
        for name in ("sum", "mean", "max", "min")
    }


def segments_of_vectors(paddle, net):
    ids = net.data("ids", IDS, "int64", shape=[None])
    x = net.parameter("x", values_of("x", [6, 2, 2]))
    return {"sum": paddle.geometric.segment_sum(x, ids), "max": paddle.incubate.segment_max(x * 2.0, ids)}


def messages(paddle, net):
    src, dst = (net.data(name, at, "int64", shape=[5]) for name, at in (
        ("src", [0, 1, 2, 0, 3]), ("dst", [1, 2, 1, 0, 1])))
    made = {}
    for reduce in ("sum", "mean", "max", "min"):
        x = net.parameter("x_" + reduce, values_of("x_" + reduce, [4, 3]) * 3)
        made[reduce] = paddle.geometric.send_u_recv(x, src, dst, reduce)
        y = net.parameter("y_" + reduce, values_of("y_" + reduce, [5, 3]) + 2)
        made[reduce + " of edges"] = paddle.geometric.send_ue_recv(x, y, src, dst, "mul", reduce)
    made["sized"] = paddle.geometric.send_u_recv(x, src, dst, "sum", 6)
    made["ends"] = paddle.geometric.send_uv(x, net.parameter("z", values_of("z", [4, 3])), src, dst, "sub")
    return made


def equal_in_a_segment(paddle, net):
    ids = net.data("ids", IDS, "int64", shape=[None])
    values = [[1.0], [1.0], [2.0], [0.0], [3.0], [3.0]]
    return {name: getattr(paddle.geometric, "segment_" + name)(net.parameter("x_" + name, values), ids)
            for name in ("max", "min")}


def equal_messages(paddle, net):
    src, dst = (net.data(name, at, "int64", shape=[4])
                for name, at in (("src", [0, 1, 2, 0]), ("dst", [1, 1, 0, 2])))
    x = {name: net.parameter("x_" + name, [[1.0], [1.0], [2.0]]) for name in ("max", "min")}
    return {name: paddle.geometric.send_u_recv(one, src, dst, name) for name, one in x.items()}


def layers_of_ranking(paddle, net):
    layers = paddle.incubate.layers
    parts = [net.parameter(name, values_of(name, [3, 5]) * 2) for name in ("one", "two")]
    ids = net.data("ids", [[1], [4], [0], [4], [2]], "int64", shape=[None, 1], lengths=[2, 3])
    return {
        "concat": layers.partial_concat(parts, 1, 2),
        "ends": layers.partial_concat(parts, -2, -1),
        "sum": layers.partial_sum(parts, 2, 3),
        "pooled": layers.fused_embedding_seq_pool(ids, [5, 3], param_attr=paddle.ParamAttr(name="rows")),
    }


def shuffled(paddle, net):
    """Each row once, in whatever order."""
    x = net.parameter("x", numpy.ones([6, 2]))
    rows = paddle.incubate.layers.shuffle_batch(net.data("rows", numpy.arange(12.0).reshape(6, 2)), seed=3)
    return {"sum": paddle.sum(rows, 0), "sorted": paddle.sort(rows[:, 0]),
            "x": paddle.incubate.layers.shuffle_batch(x)}
