"""Activations, losses and shapes of pictures that are composed of several operators here."""

X = [[0.5, -1.25, 2.0, 0.25], [3.0, 0.75, -0.5, -2.0]]
Y = [[1.5, 0.5, -2.0, 1.0], [-1.0, 0.25, 4.0, 0.5]]
Z = [[0.25, -0.5, 1.0, 2.0], [1.0, -1.5, 0.5, 0.75]]
SIGNS = [[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, 1.0, -1.0]]


def activations(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", X)
    return {
        "celu": functional.celu(x, 0.5),
        "softshrink": functional.softshrink(x),
        "glu": functional.glu(x),
        "thresholded_relu": functional.thresholded_relu(x, 0.3),
        "glu_axis": functional.glu(x, 0),
    }


def pictures(paddle, net):
    functional = paddle.nn.functional
    values = [[[[float(c * 4 + i * 2 + j) - 5.5 for j in range(2)] for i in range(2)] for c in range(4)]]
    x = net.parameter("x", values)
    return {
        "maxout": functional.maxout(x, 2),
        "zeropad": functional.zeropad2d(x, [1, 0, 2, 1]),
        "pixel_shuffle": functional.pixel_shuffle(x, 2),
        "channel_shuffle": functional.channel_shuffle(x, 2),
        "pad": functional.pad(x, [1, 1, 0, 1], value=2.0),
    }


def distances(paddle, net):
    functional, x, y = paddle.nn.functional, net.parameter("x", X), net.parameter("y", Y)
    return {
        "pairwise": functional.pairwise_distance(x, y),
        "one": functional.pairwise_distance(x, y, p=1.0),
        "kept": functional.pairwise_distance(x, y, keepdim=True),
    }


def bilinear(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", [[1.0, -1.0], [0.5, 2.0]])
    weight = net.parameter("w", [[[0.1 * (i - j + o) for j in range(2)] for i in range(4)] for o in range(3)])
    return {
        "plain": paddle.nn.functional.bilinear(x, y, weight),
        "biased": paddle.nn.functional.bilinear(x, y, weight, net.parameter("b", [[0.5, -0.5, 1.0]])),
    }


def of_pairs(paddle, net):
    functional, x, y = paddle.nn.functional, net.parameter("x", X), net.parameter("y", Y)
    label = net.data("label", [1, -1], "int64", shape=[2])
    return {
        "cosine": functional.cosine_embedding_loss(x, y, label, margin=0.1),
        "cosine_none": functional.cosine_embedding_loss(x, y, label, reduction="none"),
        "triplet": functional.triplet_margin_loss(x, y, net.parameter("z", Z)),
        "triplet_swap": functional.triplet_margin_loss(
            x, y, net.parameter("z2", Z), margin=2.0, swap=True, reduction="sum"
        ),
        "triplet_distance": functional.triplet_margin_with_distance_loss(x, y, net.parameter("z3", Z)),
    }


def of_signs(paddle, net):
    functional, x, signs = paddle.nn.functional, net.parameter("x", X), net.data("s", SIGNS, shape=[2, 4])
    return {
        "hinge": functional.hinge_embedding_loss(x, signs),
        "soft": functional.soft_margin_loss(x, signs),
        "hinge_sum": functional.hinge_embedding_loss(x, signs, margin=0.5, reduction="sum"),
    }


def of_labels(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", X)
    zeros_and_ones = net.data("label", [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]], shape=[2, 4])
    return {
        "multi_label": functional.multi_label_soft_margin_loss(x, zeros_and_ones),
        "focal": functional.sigmoid_focal_loss(x, zeros_and_ones),
        "focal_mean": functional.sigmoid_focal_loss(
            x, zeros_and_ones, net.data("n", [2.0], shape=[1]), alpha=0.5, gamma=1.0, reduction="mean"
        ),
        "poisson": functional.poisson_nll_loss(x, zeros_and_ones),
        "poisson_full": functional.poisson_nll_loss(
            net.parameter("rate", [[1.5, 2.0, 3.0, 0.5]] * 2),
            net.data("count", [[2.0, 3.0, 1.0, 4.0]] * 2, shape=[2, 4]),
            log_input=False,
            full=True,
            reduction="none",
        ),
    }


def of_classes(paddle, net):
    functional = paddle.nn.functional
    p = functional.softmax(net.parameter("x", X))
    return {
        "dice": functional.dice_loss(p, net.data("label", [[2], [0]], "int64", shape=[2, 1])),
        "npair": functional.npair_loss(
            net.parameter("a", X), net.parameter("b", Y), net.data("l", [0.0, 1.0], shape=[2])
        ),
    }
