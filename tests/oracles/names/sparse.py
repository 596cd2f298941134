"""Sequences and sparse parameters."""

import numpy

ROWS = [[0.5, -1.0], [2.0, 0.25], [1.0, 1.5], [-0.5, 3.0], [0.0, 1.0], [4.0, -2.0]]
LENGTHS = [2, 1, 3]


def pooled_sequences(paddle, net):
    x = net.data("ids", [[3], [0], [5], [1], [2], [4]], "int64", shape=[None, 1], lengths=LENGTHS)
    rows = paddle.static.nn.embedding(x, [6, 2], param_attr=paddle.ParamAttr(name="rows"))
    net.given["rows"] = numpy.array(ROWS, "float32")
    return {pool: paddle.static.nn.sequence_pool(rows, pool) for pool in ("sum", "average", "sqrt", "max")}


def statistics_of_rows(paddle, net):
    x = net.data("x", [[3.0, 1.0, 0.5, 0.25], [7.0, 0.0, -1.0, 2.0]])
    cvm = net.data("cvm", [[1.0, 0.0], [1.0, 1.0]])
    return {"kept": paddle.static.nn.continuous_value_model(x, cvm, True),
            "left_out": paddle.static.nn.continuous_value_model(x, cvm, use_cvm=False)}


def rows_of_a_server(paddle, net):
    """What is built: the rows themselves need a server."""
    ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
    attr = paddle.ParamAttr(name="table", initializer=paddle.nn.initializer.Uniform(-0.1, 0.1))
    rows = paddle.static.nn.sparse_embedding(ids, [1000, 8], padding_idx=0, param_attr=attr,
                                             entry=paddle.distributed.ShowClickEntry("show", "click"))
    return {"shape": numpy.array(rows.shape), "is_float32": numpy.array([rows.dtype == paddle.float32]),
            "has_parameter": numpy.array([net.main.global_block().has_var("table")])}


def looked_up(paddle, net):
    ids = net.data("ids", [[3, 0], [5, 3]], "int64")
    attr = paddle.ParamAttr(name="rows")
    table = paddle.nn.Embedding(6, 2, padding_idx=0, weight_attr=attr)
    net.given["rows"] = numpy.array(ROWS, "float32")
    return {"rows": table(ids)}


def trained_rows(paddle, net):
    """Rows that are looked up twice in a batch, and rows that are not."""
    ids, x = net.data("ids", [[3], [5], [3]], "int64"), net.data("x", [[1.0, 2.0], [0.5, -1.0], [2.0, 1.0]])
    table = paddle.nn.Embedding(6, 2, sparse=True, weight_attr=paddle.ParamAttr(name="rows"))
    loss = paddle.mean(paddle.square(paddle.reshape(table(ids), [-1, 2]) * x))
    paddle.optimizer.SGD(0.1).minimize(loss)
    net.given["rows"] = numpy.array(ROWS, "float32")
    net.start()
    for _ in range(3):
        net.run()
    return {"rows": net.value("rows")}


def a_type_in_a_signature(paddle, net):
    def doubled(x: paddle.Tensor) -> paddle.Tensor:
        return paddle.tensor.scale(x, 2.0)

    return {"doubled": doubled(net.parameter("x", ROWS))}
