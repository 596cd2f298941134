"""The slope where a function has none: at its kinks, and among equal values."""

ZERO = [[-2.0, 0.0, 0.0, 1.5]]


def _each(paddle, net, values, functions):
    """Each function of a parameter of its own, so that each has its own gradient."""
    return {name: function(net.parameter("x_" + name, values)) for name, function in functions.items()}


def activations_at_0(paddle, net):
    functional = paddle.nn.functional
    weight = net.parameter("weight", [0.25])
    return _each(
        paddle,
        net,
        ZERO,
        {
            "relu": functional.relu,
            "celu": lambda x: functional.celu(x, 0.5),
            "turned": lambda x: functional.celu(x, -0.5),
            "elu": lambda x: functional.elu(x, 0.5),
            "selu": functional.selu,
            "leaky_relu": lambda x: functional.leaky_relu(x, 0.3),
            "prelu": lambda x: functional.prelu(x, weight),
            "softsign": functional.softsign,
            "abs": paddle.abs,
            "relu6": functional.relu6,
        },
    )


def activations_at_their_ends(paddle, net):
    functional = paddle.nn.functional
    ends = [[-3.0, -1.0, -0.5, 0.5, 1.0, 3.0, 6.0]]
    return _each(
        paddle,
        net,
        ends,
        {
            "relu6": functional.relu6,
            "hardshrink": functional.hardshrink,
            "softshrink": functional.softshrink,
            "hardtanh": functional.hardtanh,
            "hardswish": functional.hardswish,
            "hardsigmoid": lambda x: functional.hardsigmoid(x, 0.5, 0.5),
            "thresholded": functional.thresholded_relu,
            "clip": lambda x: paddle.clip(x, -1.0, 3.0),
            "floor": lambda x: paddle.floor(x) + x,
            "round": lambda x: paddle.round(x) + x,
            "sign": lambda x: paddle.sign(x) + x,
            "softplus": lambda x: functional.softplus(x, 1.0, 3.0),
        },
    )


def equal_pairs(paddle, net):
    functions = ("maximum", "minimum", "fmax", "fmin", "dist")
    pairs = {}
    for name in functions:
        x, y = net.parameter("x_" + name, [[1.0, 2.0, 3.0]]), net.parameter("y_" + name, [[1.0, 2.5, 2.0]])
        pairs[name] = paddle.dist(x, y, 1.0) if name == "dist" else getattr(paddle, name)(x, y)
    return pairs


def equal_in_a_row(paddle, net):
    functional = paddle.nn.functional
    return _each(
        paddle,
        net,
        [[2.0, 3.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0]],
        {
            "max": lambda x: paddle.max(x, 1),
            "min": lambda x: paddle.min(x, 1),
            "amax": lambda x: paddle.amax(x, 1),
            "amin": lambda x: paddle.amin(x, 1),
            "sort": lambda x: paddle.sort(x, 1) * paddle.to_tensor([1.0, 2.0, 3.0, 4.0]),
            "topk": lambda x: paddle.topk(x, 2)[0] * paddle.to_tensor([1.0, 2.0]),
            "kthvalue": lambda x: paddle.kthvalue(x, 3)[0],
            "median": lambda x: paddle.median(x, 1),
            "most": lambda x: paddle.norm(x, float("inf"), axis=1),
            "least": lambda x: paddle.norm(x, float("-inf"), axis=1),
            "one": lambda x: paddle.norm(x - 1.0, 1, axis=1),
            "softmax": functional.softmax,
        },
    )


def equal_under_windows(paddle, net):
    functional = paddle.nn.functional
    values = [[[[1.0, 1.0, 0.5, 2.0], [1.0, 1.0, 2.0, 2.0], [0.0, 3.0, 3.0, 3.0], [0.0, 3.0, 3.0, 0.0]]]]
    return _each(
        paddle,
        net,
        values,
        {
            "max_pool2d": lambda x: functional.max_pool2d(x, 2),
            "overlapping": lambda x: functional.max_pool2d(x, 3, 1),
            "adaptive": lambda x: functional.adaptive_max_pool2d(x, 2),
            "uneven": lambda x: functional.adaptive_max_pool2d(x, [3, None]),
            "one": lambda x: functional.adaptive_max_pool1d(paddle.squeeze(x, 1), 3),
            "pool1d": lambda x: functional.max_pool1d(paddle.squeeze(x, 1), 2),
            "maxout": lambda x: functional.maxout(paddle.transpose(x, [0, 2, 1, 3]), 2, 1),
        },
    )


def adaptive_masks(paddle, net):
    functional = paddle.nn.functional
    x = net.parameter("x", [[[[1.0, 5.0, 2.0], [4.0, 0.0, 5.0], [3.0, 3.0, 1.0]]]])
    largest, where = functional.adaptive_max_pool2d(x, 2, return_mask=True)
    one, place = functional.adaptive_max_pool1d(paddle.squeeze(x, 1), 2, return_mask=True)
    layer, at = paddle.nn.AdaptiveMaxPool2D(2, return_mask=True)(x)
    return {"largest": largest, "where": where, "one": one, "place": place, "layer": layer, "at": at}


def equal_chances(paddle, net):
    """Which of equal ones are chosen, in short rows and in long ones."""
    rows = net.data("rows", [[0.25] * 4, [0.1, 0.4, 0.4, 0.1], [0.5, 0.0, 0.0, 0.5]], shape=[3, 4])
    label = net.data("label", [[0], [2], [3]], "int64", shape=[3, 1])
    longer = net.data("longer", [[float(i % 3) for i in range(200)]], shape=[1, 200])
    made = {
        "accuracy": paddle.static.accuracy(rows, label),
        "of two": paddle.static.accuracy(rows, label, 2),
        "argsort": paddle.argsort(longer),
        "down": paddle.argsort(longer, descending=True),
        "argmax": paddle.argmax(longer, 1),
    }
    for k in (1, 3, 20, 150):
        for largest in (True, False):
            made[f"places {k} {largest}"] = paddle.topk(longer, k, largest=largest)[1]
    made["kthvalue"] = paddle.kthvalue(longer, 70)[1]
    return made


def losses_at_their_kinks(paddle, net):
    functional = paddle.nn.functional
    label = net.data("label", [[1.0, -1.0, 1.0, 2.0]])
    sign = net.data("sign", [[1.0, -1.0, 1.0, -1.0]])
    return _each(
        paddle,
        net,
        [[1.0, 1.0, 0.0, 2.0]],
        {
            "l1_loss": lambda x: functional.l1_loss(x, label, "none"),
            "smooth": lambda x: functional.smooth_l1_loss(x, label, "none"),
            "margin": lambda x: functional.margin_ranking_loss(x, label, sign, 0.0, "none"),
            "huber": lambda x: functional.smooth_l1_loss(x, label, "none", 2.0),
            "hinge": lambda x: functional.hinge_embedding_loss(x, sign, 1.0, "none"),
            "one": lambda x: functional.hinge_embedding_loss(x, sign, 2.0, "none"),
        },
    )


def roots_of_0(paddle, net):
    return _each(
        paddle,
        net,
        [[0.0, 0.0], [3.0, 4.0]],
        {
            "norm": lambda x: paddle.norm(x, 2, axis=1),
            "three": lambda x: paddle.norm(x, 3, axis=1),
            "normalize": lambda x: paddle.nn.functional.normalize(x, axis=1),
            "cosine": lambda x: paddle.nn.functional.cosine_similarity(x, x * 2.0, axis=1),
        },
    )
