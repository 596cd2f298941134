"""Branches and loops: both sides of a cond, its gradients, and loops of a known number of steps."""

import numpy

FEEDS = ([1.0, 2.0, 3.0], [-1.0, -2.0, 1.0], [6.0, 0.0, 0.0])


def _with_each(net, build):
    """build(x, w) -> variables and a loss that is trained by one step, for each feed: {key: values}."""
    x, w = net.data("x", FEEDS[0], shape=[3]), net.parameter("w", [1.0, 2.0, -1.0])
    paddle = net.paddle
    made = build(x, w)
    loss = sum((paddle.sum(one * one) for one in made[1:]), paddle.sum(made[0] * made[0]))
    paddle.optimizer.SGD(0.01).minimize(loss)
    found = {}
    for i, feed in enumerate(FEEDS):
        net.start()
        for j, value in enumerate(net.run(made, x=numpy.array(feed, "float32"))):
            found[f"{i}.{j}"] = value
        found[f"{i}.w"] = net.value("w")
    return found


def branches(paddle, net):
    cond = paddle.static.nn.cond

    def build(x, w):
        positive = paddle.sum(x) > 0
        one, (two,) = cond(positive, lambda: (w * x, [paddle.sum(w)]), lambda: (w - x, [paddle.mean(w) * 2]))
        inner = cond(positive, lambda: cond(x[0] > 5, lambda: w * 7, lambda: w * w), lambda: w + 1)
        return [one, two, inner]

    return _with_each(net, build)


def cases(paddle, net):
    def build(x, w):
        first = paddle.static.nn.case([(x[0] > 1, lambda: w * 2), (x[1] > 1, lambda: w * 3)], lambda: w * 5)
        last = paddle.static.nn.case([(x[0] > 1, lambda: w * 2), (x[1] > 1, lambda: w * 3)])
        number = paddle.cast(x[2], "int64")
        switched = paddle.static.nn.switch_case(number, {1: lambda: w * 11, 3: lambda: w * 13},
                                                lambda: w * 17)
        listed = paddle.static.nn.switch_case(number, [lambda: w, lambda: w * w])
        return [first, last, switched, listed]

    return _with_each(net, build)


def what_a_branch_writes(paddle, net):
    def build(x, w):
        kept = paddle.full([3], 4.0, "float32")

        def write():
            paddle.assign(x * 2.0, kept)
            paddle.assign(kept + 1.0, kept)

        paddle.static.nn.cond(paddle.sum(x) > 0, write, lambda: None)
        return [w * kept]

    return _with_each(net, build)


def loops(paddle, net):
    def build(x, w):
        first, count = paddle.full([1], 0, "int64"), paddle.full([1], 4, "int64")
        steps, total = paddle.static.nn.while_loop(
            lambda i, total: i < count,
            lambda i, total: [i + 1, total * w + paddle.cast(i, "float32")], [first, w * 1.0])
        return [total, paddle.cast(steps, "float32")]

    return _with_each(net, build)
