"""Values by place, by order, and by mask."""

X = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5], [1.0, 2.5, 0.25], [-1.0, 4.0, 2.25]]


def gathering(paddle, net):
    x, rows = net.parameter("x", X), net.data("rows", [2, 0, 2], "int64")
    pairs = net.data("pairs", [[0, 1], [3, 2]], "int64")
    return {"gather": paddle.gather(x, rows), "index_select":
            paddle.index_select(x, rows, axis=1), "gather_nd": paddle.gather_nd(x, pairs),
            "along": paddle.take_along_axis(x, net.data("places", [[0, 2], [1, 1], [2, 0], [0, 0]], "int64"),
                                            1)}


def gathering_along_an_axis(paddle, net):
    """Of inputs that are fed: Paddle 2.6.2 adds this gradient to other places."""
    return {"axis": paddle.gather(net.data("x", X), net.data("rows", [2, 0, 2], "int64"), axis=1)}


def by_variables(paddle, net):
    x, rows = net.parameter("x", X), net.data("rows", [3, 1], "int32")
    return {"gather": paddle.gather(x, rows), "rows": x[net.data("places", [1, 2], "int64")]}


def scattering(paddle, net):
    x, updates = net.parameter("x", X), net.parameter("updates", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    rows = net.data("rows", [3, 1], "int64", shape=[2])
    return {"replaced": paddle.scatter(x, rows, updates),
            "added": paddle.scatter(x, rows, updates, overwrite=False)}


def adding_twice(paddle, net):
    x = net.data("x", X, shape=[4, 3])
    updates = net.data("updates", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], shape=[2, 3])
    return {"added": paddle.scatter(x, net.data("rows", [1, 1], "int64", shape=[2]), updates,
                                    overwrite=False)}


def masked(paddle, net):
    x = net.parameter("x", X)
    return {"select": paddle.masked_select(x, x > 0.5)}


def largest(paddle, net):
    x = net.parameter("x", X)
    values, places = paddle.topk(x, 2)
    low, at = paddle.topk(x, k=3, axis=0, largest=False)
    return {"values": values, "places": places, "low": low, "at": at}


def largest_of_a_number_that_is_fed(paddle, net):
    values, places = paddle.topk(net.parameter("x", X), net.data("k", [2], "int64", shape=[1]))
    return {"values": values, "places": places}


def sorting(paddle, net):
    x = net.parameter("x", X)
    return {"argsort": paddle.argsort(x), "falling": paddle.argsort(x, axis=0, descending=True),
            "sort": paddle.sort(x),
            "sort_falling": paddle.sort(x, axis=0, descending=True)}


def best(paddle, net):
    x = net.data("x", X)
    return {"argmax": paddle.argmax(x, axis=1), "all": paddle.argmax(x), "argmin": paddle.argmin(x, axis=0),
            "kept": paddle.argmax(x, axis=-1, keepdim=True), "typed": paddle.argmax(x, axis=1, dtype="int32")}


def different(paddle, net):
    x = net.data("x", [3, 1, 2, 1, 3, 3], "int64", shape=[6])
    values, first, inverse, counts = paddle.unique(x, return_index=True, return_inverse=True,
                                                   return_counts=True)
    return {"values": values, "first": first, "inverse": inverse, "counts": counts, "floats": paddle.unique(
        net.data("y", [0.5, -1.0, 0.5], shape=[3]))}


def hot(paddle, net):
    x = net.data("x", [2, 0, 1], "int64")
    return {"one_hot": paddle.nn.functional.one_hot(x, 4), "mask": paddle.nn.functional.sequence_mask(x, 3),
            "floats": paddle.nn.functional.sequence_mask(x, maxlen=4, dtype="float32")}


def rows_by_id(paddle, net):
    weight = net.parameter("weight", X)
    ids = net.data("ids", [[0, 3], [1, 0]], "int64")
    return {"embedding": paddle.nn.functional.embedding(ids, weight),
            "padded": paddle.nn.functional.embedding(ids, weight, padding_idx=0)}
