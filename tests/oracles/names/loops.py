"""Loops whose number of steps only a run knows, with the gradients of what they compute."""

import numpy

FEEDS = (1, 3, 5)
INPUT = numpy.arange(6, dtype="float32").reshape(2, 3) / 5


def _trained(net, made, loss, feeds):
    """What a step of training with each feed gives: {key: values}."""
    net.paddle.optimizer.SGD(0.1).minimize(loss)
    found = {}
    for i, feed in enumerate(feeds):
        net.start()
        for j, value in enumerate(net.run(made, **feed)):
            found[f"{i}.{j}"] = value
        for name in ("w", "b"):
            found[f"{i}.{name}"] = net.value(name)
    return found


def _parameters(net):
    return net.parameter("w", numpy.arange(9).reshape(3, 3) / 10 - 0.3), net.parameter("b", [0.1, -0.2, 0.3])


def _begun(one):
    one.stop_gradient = False
    return one


def a_fed_number_of_steps(paddle, net):
    x, n = net.data("x", INPUT), net.data("n", [1], "int64", shape=[1])
    w, b = _parameters(net)
    steps, h = paddle.static.nn.while_loop(
        lambda i, h: i < n,
        lambda i, h: [i + 1, paddle.tanh(paddle.matmul(h, w) + b + x)],
        [paddle.zeros([1], "int64"), _begun(x * 1.0)])
    feeds = [{"x": INPUT * count, "n": numpy.array([count], "int64")} for count in FEEDS]
    return _trained(net, [steps, h], paddle.sum(h * h), feeds)


def until_a_value_is_large(paddle, net):
    x = _begun(net.data("x", [1.0, 1.0, 1.0], shape=[3]))
    w, b = _parameters(net)
    row = w[0] + 1.0
    count, v, total = paddle.static.nn.while_loop(
        lambda count, v, total: paddle.sum(v) < 10.0,
        lambda count, v, total: [count + 1, v * 1.5 + paddle.exp(b), total + v * row],
        [paddle.zeros([1], "int64"), x * row, _begun(paddle.zeros([3]))])
    feeds = [{"x": numpy.array(one, "float32")} for one in ([1, 1, 1], [0.1, 0.2, 0.3])]
    return _trained(net, [count, v, total], paddle.sum(total) + paddle.sum(v * v), feeds)

