"""Losses and metrics."""

import numpy

P = [[0.25], [0.75], [0.9], [0.1]]
LABEL = [[0.0], [1.0], [1.0], [0.0]]
LOGITS = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5], [1.0, 2.5, 0.25], [-1.0, 4.0, 2.25]]
CLASSES = [[2], [0], [1], [2]]


def probabilities(paddle, net):
    functional, p, label = paddle.nn.functional, net.parameter("p", P), net.data("label", LABEL)
    return {"log_loss": functional.log_loss(p, label), "epsilon": functional.log_loss(p, label, epsilon=1e-7),
            "mean": functional.binary_cross_entropy(p, label),
            "sum": functional.binary_cross_entropy(p, label, reduction="sum"),
            "weighted": functional.binary_cross_entropy(p, label,
                                                        weight=net.data("w", [[1.0], [2.0], [0.5], [3.0]]),
                                                        reduction="none")}


def logits(paddle, net):
    functional, x, label = paddle.nn.functional, net.parameter("x", P), net.data("label", LABEL)
    return {"mean": functional.binary_cross_entropy_with_logits(x, label), "none":
            functional.binary_cross_entropy_with_logits(x, label, reduction="none")}


def weighted_logits(paddle, net):
    """Of inputs that are fed: the slope that Paddle 2.6.2 gives with pos_weight is not that of its values."""
    functional, x, label = paddle.nn.functional, net.data("x", P), net.data("label", LABEL)
    return {"positive": functional.binary_cross_entropy_with_logits(
        x, label, pos_weight=net.data("w", [2.0], shape=[1]))}


def classes(paddle, net):
    functional, x, label = paddle.nn.functional, net.parameter("x",
                                                               LOGITS), net.data("label", CLASSES, "int64")
    return {"mean": functional.cross_entropy(x, label),
            "none": functional.cross_entropy(x, label, reduction="none"),
            "ignored": functional.cross_entropy(x, label, ignore_index=2), "probabilities":
            functional.cross_entropy(functional.softmax(x), label, use_softmax=False),
            "flat": functional.cross_entropy(x, paddle.flatten(label), reduction="none")}


def classes_as_shares(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", LOGITS)
    share = net.data("share", [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
    return {"soft": functional.cross_entropy(x, share, soft_label=True), "with_softmax":
            functional.softmax_with_cross_entropy(x, share, soft_label=True),
            "smooth": functional.label_smooth(share), "smoothed":
            functional.cross_entropy(x, share, soft_label=True, label_smoothing=0.1)}


def weighted_classes(paddle, net):
    functional, x, label = paddle.nn.functional, net.parameter("x",
                                                               LOGITS), net.data("label", CLASSES, "int64")
    weight = net.data("weight", [0.5, 2.0, 3.0], shape=[3])
    share = net.data("share", [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
    return {"mean": functional.cross_entropy(x, label, weight=weight),
            "sum": functional.cross_entropy(x, label, weight, reduction="sum"),
            "none": functional.cross_entropy(x, label, weight, reduction="none"),
            "flat": functional.cross_entropy(x, paddle.flatten(label), weight, reduction="none"),
            "ignored": functional.cross_entropy(x, label, weight, ignore_index=2),
            "soft": functional.cross_entropy(x, share, weight, soft_label=True)}


def classes_along_an_axis(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", [[[0.5, -1.25], [2.0, 3.0], [0.75, -0.5]],
                                                              [[1.0, 2.5], [0.25, -1.0], [4.0, 2.25]]])
    label = net.data("label", [[[2, 0]], [[1, 2]]], "int64")
    return {"none": functional.cross_entropy(x, label, axis=1, reduction="none"),
            "mean": functional.cross_entropy(x, label, axis=1),
            "flat": functional.cross_entropy(x, paddle.squeeze(label, 1), axis=1, reduction="none"),
            "softmax": functional.softmax_with_cross_entropy(x, label, axis=1)}


def ignored_classes(paddle, net):
    """A negative label that is ignored counts in the mean, as in no other of Paddle's modes."""
    x, label = net.parameter("x", LOGITS), net.data("label", [[2], [-1], [1], [-1]], "int64")
    return {"mean": paddle.nn.functional.cross_entropy(x, label, ignore_index=-1)}


def classes_and_softmax(paddle, net):
    loss, softmax = paddle.nn.functional.softmax_with_cross_entropy(
        net.parameter("x", LOGITS), net.data("label", CLASSES, "int64"), return_softmax=True)
    return {"loss": loss, "softmax": softmax}


def distances(paddle, net):
    functional, x, y = paddle.nn.functional, net.parameter("x",
                                                           P), net.data("y", [[0.0], [2.5], [1.0], [-3.0]])
    return {"square": functional.square_error_cost(x, y), "mse": functional.mse_loss(x, y),
            "l1": functional.l1_loss(x, y),
            "smooth": functional.smooth_l1_loss(x, y),
            "delta": functional.smooth_l1_loss(x, y, reduction="sum", delta=0.5)}


def divergences(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", LOGITS)
    share = net.data("share", [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
    logarithm = functional.log_softmax(x)
    return {"kl": functional.kl_div(logarithm, share),
            "batch": functional.kl_div(logarithm, share, reduction="batchmean"),
            "nll": functional.nll_loss(logarithm, net.data("label", [2, 0, 1, 2], "int64"))}


def negative_likelihoods(paddle, net):
    """Some labels left out, by the default too, weighted, and of pictures."""
    functional, x = paddle.nn.functional, net.parameter("x", LOGITS)
    label = net.data("label", [2, -100, 1, 2], "int64")
    weight = net.data("weight", [0.5, 2.0, 3.0], shape=[3])
    picture = net.parameter("picture", numpy.sin(numpy.arange(2 * 3 * 2 * 2)).reshape(2, 3, 2, 2))
    places = net.data("places", [[[2, 0], [1, 1]], [[0, 2], [2, 2]]], "int64", shape=[2, 2, 2])
    return {"default": functional.nll_loss(x, label),
            "sum": functional.nll_loss(x, label, weight, reduction="sum"),
            "weighted": functional.nll_loss(x, net.data("all", [2, 0, 1, 2], "int64"), weight),
            "none": functional.nll_loss(x, label, weight, reduction="none"),
            "ignored": functional.nll_loss(picture, places, weight, ignore_index=1),
            "places": functional.nll_loss(picture, places, reduction="none"),
            "layer": paddle.nn.NLLLoss(weight, ignore_index=1)(x, net.data("more", [2, 0, 1, 2], "int64"))}


def ranking(paddle, net):
    x, y = net.parameter("x", [[0.5], [1.0], [2.0]]), net.parameter("y", [[1.0], [0.25], [2.5]])
    return {"margin": paddle.nn.functional.margin_ranking_loss(x, y, net.data("l", [[1.0], [1.0], [-1.0]]),
                                                               margin=0.1)}


def accuracy(paddle, net):
    x, label = net.data("x", LOGITS), net.data("label", CLASSES, "int64")
    return {"top": paddle.metric.accuracy(x, label), "two": paddle.metric.accuracy(x, label, k=2),
            "static": paddle.static.accuracy(x, label)}


def auc(paddle, net):
    p, label = net.data("p", [[0.3, 0.7], [0.8, 0.2], [0.4, 0.6],
                              [0.9, 0.1]]), net.data("label", [[1], [0], [0], [1]], "int64")
    total, batch, _ = paddle.static.auc(p, label)
    net.start()
    net.run()
    values = net.run([total, batch], p=numpy.array([[0.1, 0.9], [0.7, 0.3]], "float32"),
                     label=numpy.array([[1], [0]]))
    return {"total": values[0].reshape([1]), "batch": values[1].reshape([1])}


def whole_numbers(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", LOGITS)
    label, ids = net.data("label", CLASSES, "int32"), net.data("ids", [[0], [3], [3]], "int32")
    return {"entropy": functional.cross_entropy(x, label), "rows": functional.embedding(ids, x)}
