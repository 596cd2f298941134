"""Averages of parameters over the steps of training."""

from name_cases import within

X = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]


def _model(paddle, net):
    """What is trained: the loss, w [3, 1] and b [1]."""
    x, w = net.data("x", X, shape=[2, 3]), net.parameter("w", [[1.0], [0.5], [-2.0]])
    b = net.parameter("b", [0.25])
    left = paddle.create_parameter([1], "float32", attr=paddle.ParamAttr(name="left", do_model_average=False))
    return paddle.mean(paddle.square(x @ w + b + left))


def _values(net):
    return {name: net.value(name) for name in ("w", "b", "left")}


def _told(made, where, values):
    made.update({f"{where} {name}": value for name, value in values.items()})


def _train(net, averages, steps):
    """The values after some steps, while they are averages, and after that."""
    made = {}
    net.start()
    with net.paddle.static.scope_guard(net.scope):
        for step in range(steps):
            net.run()
            if step % 3 == 1:
                with averages.apply(net.executor):
                    _told(made, f"average {step}", _values(net))
                _told(made, f"back {step}", _values(net))
        with averages.apply(net.executor, need_restore=False):
            pass
        _told(made, "kept", _values(net))
        averages.restore(net.executor)
    _told(made, "last", _values(net))
    return made


@within(relative=2e-5, absolute=1e-5)
def moving_average(paddle, net):
    paddle.optimizer.Adam(0.1).minimize(_model(paddle, net))
    averages = paddle.static.ExponentialMovingAverage(0.9)
    averages.update()
    return _train(net, averages, 6)


def window_average(paddle, net):
    paddle.optimizer.SGD(0.1).minimize(_model(paddle, net))
    return _train(net, paddle.incubate.ModelAverage(0.5, None, 2, 4), 9)


def look_ahead(paddle, net):
    paddle.incubate.LookAhead(paddle.optimizer.SGD(0.1), 0.3, 3).minimize(_model(paddle, net))
    net.start()
    made = {}
    for step in range(8):
        net.run()
        _told(made, str(step), _values(net))
    return made
