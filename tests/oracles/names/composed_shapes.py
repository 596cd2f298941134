"""Functions that are composed of several operators here: shapes, indices and places."""

X = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5]]
CUBE = [[[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]], [[4.0, 2.5, -2.0], [0.25, 1.5, 6.0]]]


def triangles(paddle, net):
    return {
        "tril": paddle.tril_indices(3, 4, 1),
        "triu": paddle.triu_indices(3, 4, -1),
        "square": paddle.triu_indices(3),
    }


def spaced(paddle, net):
    return {"logspace": paddle.logspace(0.0, 2.0, 5), "base": paddle.logspace(-1.0, 1.0, 3, base=2.0)}


def products(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", [[1.0, 2.0], [0.5, -1.0]])
    cube = net.parameter("cube", CUBE)
    return {
        "kron": paddle.kron(x, y),
        "tensordot": paddle.tensordot(cube, x, axes=[[0, 2], [0, 1]]),
        "tensordot_1": paddle.tensordot(y, x, axes=1),
    }


def more_axes(paddle, net):
    number, row = net.parameter("n", [3.0]), net.parameter("x", X)
    return {
        "one": paddle.atleast_1d(number),
        "two": paddle.atleast_2d(number),
        "three": paddle.atleast_3d(row),
        "three_of_one": paddle.atleast_3d(number),
        "moved": paddle.moveaxis(net.parameter("cube", CUBE), 0, 2),
        "moved_two": paddle.moveaxis(net.parameter("c", CUBE), [0, 1], [2, 0]),
    }


def turned(paddle, net):
    x = net.parameter("x", X)
    return {
        "reverse": paddle.reverse(x, [1]),
        "one": paddle.rot90(x),
        "two": paddle.rot90(x, 2),
        "back": paddle.rot90(x, -1),
        "axes": paddle.rot90(net.parameter("cube", CUBE), 1, [1, 2]),
    }


def cut(paddle, net):
    x = net.parameter("x", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    first, second = paddle.vsplit(x, 2)
    return {
        "first": first,
        "second": second,
        "unflatten": paddle.unflatten(x, 0, [2, 2]),
        "crop": paddle.crop(x, shape=[2, 1], offsets=[1, 1]),
    }


def diagonals(paddle, net):
    x, cube = net.parameter("x", X), net.parameter("cube", CUBE)
    fed = net.data("fed", X, shape=[2, 3])  # diagflat and diag_embed have no gradient in Paddle's programs
    return {
        "flat": paddle.diagflat(net.data("v", [1.0, 2.0], shape=[2])),
        "flat_offset": paddle.diagflat(fed, -1),
        "embed": paddle.diag_embed(fed),
        "embed_offset": paddle.diag_embed(fed, 1, 0, 2),
        "diagonal": paddle.diagonal(x),
        "of_cube": paddle.diagonal(cube, 1, 1, 2),
        "trace": paddle.trace(x),
        "trace_offset": paddle.trace(cube, -1, 1, 2),
    }


def differences(paddle, net):
    x = net.parameter("x", [[1.0, 4.0, 9.0, 16.0], [0.0, -1.0, 2.0, 5.0]])
    return {"diff": paddle.diff(x), "twice": paddle.diff(paddle.diff(x)), "axis": paddle.diff(x, axis=0)}


def areas(paddle, net):
    """Fed, since the slope that Paddle 2.6.2 gives for several rows is the first row's in all."""
    x = net.data("x", [[1.0, 4.0, 9.0, 16.0], [0.0, -1.0, 2.0, 5.0]], shape=[2, 4])
    return {"rows": paddle.trapezoid(x), "columns": paddle.trapezoid(x, dx=0.5, axis=0)}


def repeated(paddle, net):
    x = net.parameter("x", X)
    return {
        "axis": paddle.repeat_interleave(x, 2, 1),
        "rows": paddle.repeat_interleave(x, 3, 0),
        "flat": paddle.repeat_interleave(x, 2),
    }


def taken(paddle, net):
    x = net.parameter("x", X)
    index = net.data("i", [[0, 5], [2, 1]], "int64", shape=[2, 2])
    return {
        "take": paddle.take(x, index),
        "sample": paddle.index_sample(x, net.data("s", [[0, 2], [1, 1]], "int64")),
    }


def scattered(paddle, net):
    x = net.parameter("x", X)
    places = net.data("p", [[0, 1], [1, 2], [0, 1]], "int64", shape=[3, 2])
    updates = net.parameter("u", [1.0, 2.0, 3.0])
    return {
        "nd_add": paddle.scatter_nd_add(x, places, updates),
        "nd": paddle.scatter_nd(places, updates, [2, 3]),
        "index_add": paddle.index_add(
            x,
            net.data("r", [1, 0, 1], "int64", shape=[3]),
            0,
            net.parameter("v", [[1.0] * 3, [2.0] * 3, [3.0] * 3]),
        ),
    }


def picked(paddle, net):
    one, two = net.parameter("one", X), net.parameter("two", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = net.data("m", [[True, False, True], [False, False, True]], "bool")
    return {
        "multiplex": paddle.multiplex([one, two], net.data("i", [[1], [0]], "int32")),
        "masked": paddle.masked_fill(one, mask, 9.0),
    }


def shards(paddle, net):
    labels = net.data("labels", [[1], [6], [12], [19]], "int64")
    return {"first": paddle.shard_index(labels, 20, 2, 0), "second": paddle.shard_index(labels, 20, 2, 1, -2)}


def ordered(paddle, net):
    x = net.parameter("x", [[1.0, 7.0, 3.0, 5.0], [8.0, 2.0, 6.0, 4.0]])
    value, index = paddle.kthvalue(x, 2)
    return {
        "value": value,
        "index": index,
        "median": paddle.median(x),
        "median_axis": paddle.median(x, axis=1),
        "median_kept": paddle.median(x, axis=0, keepdim=True),
    }


def searched(paddle, net):
    edges = net.data("edges", [1.0, 3.0, 5.0, 7.0], shape=[4])
    x = net.data("x", [[0.0, 3.0, 8.0], [5.0, 4.0, 7.0]])
    return {
        "left": paddle.searchsorted(edges, x),
        "right": paddle.searchsorted(edges, x, right=True),
        "bucketize": paddle.bucketize(x, edges),
        "int32": paddle.bucketize(x, edges, out_int32=True),
    }


def powers_of_a_vector(paddle, net):
    x = net.parameter("x", [1.0, 2.0, 3.0])
    return {"vander": paddle.vander(x), "increasing": paddle.vander(x, 2, increasing=True)}
