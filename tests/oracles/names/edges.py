"""Where functions stop being smooth or numbers: NaN, float64, steps down, diagonals, operators without a
slope."""

from name_cases import within

NAN = float("nan")
X = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5]]


def float64_between(paddle, net):
    x = net.parameter("x", X)
    wide = paddle.cast(x, "float64")
    half = paddle.cast(paddle.concat([wide * wide, wide], 1)[:, 1:5], "float32")
    sums = paddle.cast(paddle.sum(paddle.transpose(wide, [1, 0]) * 0.5, axis=0), "float32")
    return {"half": half, "sums": sums, "max": paddle.cast(paddle.max(wide, axis=1), "float32")}


def float64_picked(paddle, net):
    x, places = net.parameter("x", X), net.data("places", [1, 0, 1], "int64")
    wide = paddle.cast(x, "float64")
    rows = paddle.gather(wide, places) + paddle.tile(wide[:1], [3, 1])
    chosen = paddle.where(wide > 0.0, wide, wide * 2.0)
    return {
        "rows": paddle.cast(rows, "float32"),
        "chosen": paddle.cast(paddle.stack([chosen, -wide]), "float32"),
        "sorted": paddle.cast(paddle.cumsum(paddle.sort(wide, axis=1), axis=1), "float32"),
        "abs": paddle.cast(paddle.abs(wide), "float32"),
    }


def float64_at_the_end(paddle, net):
    x = net.parameter("x", X)
    return {"mean": paddle.mean(x), "wide": paddle.cast(x, "float64") * 3.0}


def types_of_operators(paddle, net):
    """An operator computes in the type of its first value, and divides whole numbers as float32."""
    whole, other = net.data("whole", [[7, -7, 3]], "int64"), net.data("other", [[2, 2, -2]], "int64")
    short, number = paddle.cast(other, "int32"), net.data("number", [[1.5, 2.5, -3.5]])
    wide, flags = paddle.cast(number, "float64"), paddle.cast(whole > 0, "bool")
    return {
        "quotient": whole / other,
        "of_numbers": whole / number,
        "short": short / whole,
        "sum": number + whole,
        "cut": whole + number,
        "narrow": short * whole,
        "wide": number + wide,
        "kept": number / wide,
        "flagged": number * flags,
        "below": number < whole,
        "same": whole == number,
        "rest": number % whole,
        "squares": whole**2,
        "roots": paddle.abs(whole) ** 0.5,
        "powers": 2.5**whole,
        "cubes": wide**3,
        "of_wide": number - 2 * wide,
    }


def nan_of_two(paddle, net):
    x, y = net.data("x", [[NAN, 1.0, NAN, 2.0]]), net.data("y", [[1.0, NAN, NAN, 3.0]])
    return {name: getattr(paddle, name)(x, y) for name in ("minimum", "maximum", "fmin", "fmax")}


def nan_of_one(paddle, net):
    x = net.data("x", [[NAN, 1.5, -0.5, 7.0]])
    layers = {
        name: getattr(paddle.nn.functional, name)(x)
        for name in (
            "relu6",
            "hardshrink",
            "softshrink",
            "hardswish",
            "hardsigmoid",
            "hardtanh",
            "thresholded_relu",
        )
    }
    return {**layers, "sign": paddle.sign(x), "clip": paddle.clip(x, -1.0, 1.0)}


def nan_in_order(paddle, net):
    x = net.data("x", [[1.0, NAN, -2.0], [NAN, 0.5, 3.0]])
    values, places = paddle.topk(x, 2)
    least, where = paddle.topk(x, 2, largest=False)
    return {
        "argmax": paddle.argmax(x, axis=1),
        "argmin": paddle.argmin(x, axis=1),
        "sort": paddle.sort(x),
        "argsort": paddle.argsort(x),
        "down": paddle.sort(x, descending=True),
        "topk": values,
        "places": places,
        "least": least,
        "where": where,
    }


def steps_down(paddle, net):
    x, places = net.parameter("x", [1.0, 2.0, 3.0, 4.0, 5.0]), net.parameter("y", X)
    return {
        "slice": paddle.strided_slice(x, [0], [3], [0], [-1]),
        "two": paddle.strided_slice(x, [0], [4], [-6], [-2]),
        "end": paddle.strided_slice(x, [0], [-1], [-100], [-1]),
        "all": x[::-1],
        "some": x[4:1:-2],
        "from": x[-2::-1],
        "columns": places[:, ::-1],
        "both": places[::-1, ::-2],
    }


def absolute_integers(paddle, net):
    return {
        "int64": paddle.abs(net.data("x", [1, -2, 3], "int64")),
        "int32": paddle.abs(net.data("y", [1, -2, 3], "int32")),
    }


@within(relative=2e-5, absolute=1e-5)
def norms(paddle, net):
    x = net.parameter("x", X)
    least, count = paddle.norm(x, float("-inf"), axis=1), paddle.norm(x, 0, axis=1)
    equal = net.parameter("equal", [[[[1.0]], [[1.0]], [[0.5]], [[2.0]]]])
    return {
        "first": paddle.nn.functional.maxout(equal, 2),
        "least": least,
        "most": paddle.norm(x, float("inf"), axis=1),
        "count": count,
    }


def certain_chances(paddle, net):
    x = net.parameter("x", [[0.0, 1.0, 0.5, 1.0, 0.0, 0.25]])
    label = net.data("label", [[1.0, 0.0, 1.0, 1.0, 0.0, 0.5]])
    weight = net.data("weight", [[1.0, 0.5, 2.0, 1.0, 1.0, 3.0]])
    bce = paddle.nn.functional.binary_cross_entropy
    return {"mean": bce(x, label) * 1e-6, "weighted": bce(x, label, weight, reduction="none") * 1e-6}


def overwritten(paddle, net):
    x, y = net.parameter("x", [2.0]), net.parameter("y", X)
    return {"counted": paddle.increment(x * 3.0, 2.5) * 1.0, "largest": paddle.amax(y, keepdim=True)}


def diagonals(paddle, net):
    x, y = net.data("x", X, shape=[2, 3]), net.data("y", [1.0, 2.0], shape=[2])
    ids = net.data("ids", [3, 4], "int64", shape=[2])
    return {
        "matrix": paddle.diag(x),
        "above": paddle.diag(x, 1),
        "below": paddle.diag(y, -1, padding_value=3.0),
        "ids": paddle.diag(ids, 1),
        "flat": paddle.diagflat(x, 1),
        "embedded": paddle.diag_embed(x),
    }


def no_slope(paddle, net):
    x, y = net.parameter("x", [[5.5, -5.5, 3.0]]), net.parameter("y", [[2.0, 2.0, -4.0]])
    diagonal = paddle.diag(net.parameter("z", [1.5, 2.5]))
    return {
        "mod": paddle.mod(x, y) + x,
        "floor": paddle.floor_divide(x, y) + y,
        "diagonal": diagonal @ diagonal,
    }


def numbering(paddle, net):
    """Of layers beside functions: which numbers the names of parameters have."""
    ids = net.data("ids", [[1], [3]], "int64", shape=[2, 1])
    y = net.data("y", [[1.0, 2.0, 3.0]], shape=[1, 3])
    for _ in range(2):
        paddle.static.nn.embedding(ids, [4, 2])
        paddle.static.nn.fc(y, 2)
        paddle.nn.functional.linear(y, paddle.create_parameter([3, 2], "float32"))
        paddle.nn.Linear(3, 2)(y)
        paddle.nn.Embedding(4, 2)(ids)
        paddle.static.nn.embedding(ids, [4, 2], is_sparse=True)
        paddle.static.nn.fc([y, y], 2, activation="relu")
    names = [parameter.name for parameter in net.main.all_parameters()]
    return {"numbers": [int(name.split(".")[0].rpartition("_")[2]) for name in names]}


def no_slope_of_labels(paddle, net):
    x, label = net.parameter("x", X), net.parameter("label", [[0.3, 0.2, 0.5], [0.1, 0.8, 0.1]])
    return {
        "kl_div": paddle.nn.functional.kl_div(x, label, "none"),
        "smooth": paddle.nn.functional.label_smooth(label, epsilon=0.2) * x,
    }


def fed_statistics(paddle, net):
    x, scale = net.parameter("x", X), net.parameter("scale", [0.5, 1.5, 2.0])
    mean, variance = (
        net.data("mean", [0.5, 0.1, -0.5], shape=[3]),
        net.data("variance", [1.0, 2.0, 0.5], shape=[3]),
    )
    mean.stop_gradient = variance.stop_gradient = True
    return {
        "out": paddle.nn.functional.batch_norm(
            x, mean, variance, scale, net.parameter("bias", [0.5, 0.0, 1.0]), training=False
        )
    }


@within(relative=1e-5, absolute=1e-5)
def frozen_later(paddle, net):
    x, w = net.data("x", X, shape=[2, 3]), net.parameter("w", [[1.0], [0.5], [2.0]])
    half = paddle.ParamAttr(name="frozen", initializer=paddle.nn.initializer.Constant(0.5))
    frozen = paddle.create_parameter([3, 1], "float32", attr=half)
    frozen.trainable = False
    paddle.optimizer.SGD(0.1).minimize(paddle.mean(paddle.square(x @ w + x @ frozen)))
    net.start()
    net.executor.run(net.main, feed=net.feed, scope=net.scope)
    return {"w": net.value("w"), "frozen": net.value("frozen"), "trainable": [w.trainable, frozen.trainable]}


def celu_at_zero(paddle, net):
    x = net.parameter("x", [[0.0, -0.0, 1.5], [-1.5, 0.0, 2.0]])
    celu = paddle.nn.functional.celu
    return {"out": celu(x), "softer": celu(paddle.nn.functional.relu(x), 0.5)}


def asinh_at_zero(paddle, net):
    x = net.parameter("x", [[0.0, -0.0, 1.5], [-1.5, 20.0, -2e-3]])
    return {"out": paddle.asinh(x)}


def one_alone(paddle, net):
    x = net.parameter("x", X)
    return {"concat": paddle.concat(x, 1), "sum": paddle.add_n(x)}


def itself_or_a_copy(paddle, net):
    """What is overwritten later: where a function gives its input back, that shows in its result."""
    functional = paddle.nn.functional
    x, place = net.data("x", X, shape=[2, 3]), net.data("place", [[[X[0]]]], shape=[1, 1, 1, 3])
    vector = net.data("vector", [1.0, 2.0], shape=[2])
    x, place, vector = (paddle.scale(one, 1.0) for one in (x, place, vector))
    found = {
        "all": x[:, :],
        "turned": paddle.rot90(x, 4),
        "dropout": functional.dropout(x, 0.0),
        "vector.T": vector.T,
        "dropout2d": functional.dropout2d(place, training=False),
        "sum": paddle.add_n([x]),
        "pad": functional.pad(x, [0, 0, 0, 0]),
        "circular": functional.pad(place, [0, 0, 0, 0], "circular"),
        "einsum": paddle.einsum("ij->ij", x),
    }
    for one in (x, place, vector):
        paddle.assign(one + 10.0, one)
    return found
