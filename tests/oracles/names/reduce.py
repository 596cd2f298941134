"""One value of many."""

import numpy

CUBE = numpy.arange(24).reshape(2, 3, 4) / 8.0 - 1.0


def sums(paddle, net):
    x = net.parameter("x", CUBE)
    return {"all": paddle.sum(x), "axis": paddle.sum(x, axis=1), "kept": paddle.sum(x, axis=-1, keepdim=True),
            "axes": paddle.sum(x, axis=[0, 2]), "mean": paddle.mean(x),
            "mean_axis": paddle.mean(x, axis=[1, 2], keepdim=True)}


def extremes(paddle, net):
    x = net.parameter("x", [[1.0, 3.0, 3.0], [-1.0, 0.5, -1.0]])
    return {"max": paddle.max(x, axis=1), "max_all": paddle.max(x),
            "min": paddle.min(x, axis=1, keepdim=True),
            "min_axis": paddle.min(x, axis=0)}


def products(paddle, net):
    x = net.parameter("x", [[1.5, 2.0, -0.5], [0.25, -1.0, 4.0]])
    return {"all": paddle.prod(x), "axis": paddle.prod(x, axis=0),
            "kept": paddle.prod(x, axis=-1, keepdim=True)}


def integers(paddle, net):
    x = net.data("x", [[1, 2, 3], [4, 5, -6]], "int64")
    return {"sum": paddle.sum(x), "axis": paddle.sum(x, axis=1), "max": paddle.max(x, axis=0),
            "min": paddle.min(x),
            "prod": paddle.prod(x, axis=1), "float": paddle.sum(x, axis=1, dtype="float32")}


def counts(paddle, net):
    x = net.data("x", [[2147483647, 2, 3], [2147483647, 5, -6]], "int32")
    hit = paddle.less_than(net.data("y", [[1.0], [2.0], [-1.0]], "float32"),
                           net.data("z", [[2.0], [1.0], [0.0]], "float32"))
    hits = paddle.sum(paddle.cast(hit, "float64"))
    return {"sum": paddle.sum(x), "axis": paddle.sum(x, axis=0),
            "typed": paddle.sum(x, axis=1, dtype="float32"),
            "hits": hits, "share": paddle.divide(hits, paddle.tensor.fill_constant([1], "float64", 3.0)),
            "by_axis": paddle.sum(paddle.cast(hit, "float64"), axis=1, keepdim=True)}


def booleans(paddle, net):
    x = net.data("x", [[True, True], [True, False]], "bool")
    return {"all": paddle.all(x), "any": paddle.any(x, axis=0),
            "all_axis": paddle.all(x, axis=1, keepdim=True),
            "count": paddle.sum(x)}


def spread(paddle, net):
    x = net.parameter("x", CUBE)
    return {"var": paddle.var(x, axis=1), "std": paddle.std(x, axis=[1, 2]),
            "biased": paddle.var(x, axis=2, unbiased=False),
            "logsumexp": paddle.logsumexp(x, axis=1), "logsumexp_all": paddle.logsumexp(x)}


def norms(paddle, net):
    x = net.parameter("x", CUBE[:, :, 1:])
    return {"all": paddle.norm(x), "axis": paddle.norm(x, p=2, axis=-1), "one": paddle.norm(x, p=1, axis=1),
            "most": paddle.norm(x, p=float("inf"), axis=1),
            "three": paddle.norm(x, p=3, axis=1, keepdim=True)}


def normalized(paddle, net):
    x = net.parameter("x", [[3.0, 4.0], [0.6, -0.8], [0.0, 0.0]])
    return {"normalize": paddle.nn.functional.normalize(x[:2]),
            "columns": paddle.nn.functional.normalize(x, axis=0),
            "one": paddle.nn.functional.normalize(x[:2], p=1)}


def cosine(paddle, net):
    x, y = net.parameter("x", [[1.0, 2.0, 3.0],
                               [-1.0, 0.5, 0.25]]), net.parameter("y", [[0.5, 1.0, -1.0], [2.0, 2.0, 0.5]])
    return {"rows": paddle.nn.functional.cosine_similarity(x, y), "columns":
            paddle.nn.functional.cosine_similarity(x, y, axis=0)}


def running_sums(paddle, net):
    x = net.parameter("x", CUBE)
    return {"axis": paddle.cumsum(x, axis=1), "last": paddle.cumsum(x, axis=-1), "flat": paddle.cumsum(x),
            "integers": paddle.cumsum(net.data("n", [[1, 2, 3]], "int64"), axis=1)}


def all_of_a_vector(paddle, net):
    """Nothing is left of the axes."""
    x = net.parameter("x", [0.5, -1.0, 2.0])
    return {"sum": paddle.sum(x, axis=0), "max": paddle.max(x, axis=-1), "mean": paddle.mean(x),
            "dot": paddle.dot(x, x),
            "product": paddle.matmul(x, x), "place": paddle.argmax(x, axis=0),
            "place_of_all": paddle.argmax(x), "one": x[1],
            "logsumexp": paddle.logsumexp(x), "norm": paddle.norm(x), "size": paddle.numel(x)}
