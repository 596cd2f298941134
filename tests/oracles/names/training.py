"""Optimizers, regularizers, clipping, schedules and initializers, by what they do to parameters."""

import numpy
from name_cases import within

X = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-1.0, 1.0, 0.75], [0.25, 0.5, -1.25]]
Y = [[1.0], [-0.5], [2.0], [0.0]]
STEPS = 4


def _trained(paddle, net, optimizer):
    """The parameters and losses of a small regression."""
    x, y = net.data("x", X), net.data("y", Y)
    w, b = net.parameter("w", [[0.3], [-0.2], [0.1]]), net.parameter("b", [0.05])
    loss = paddle.mean(paddle.square(paddle.matmul(x, w) + b - y))
    optimizer.minimize(loss)
    net.start()
    losses = [net.run([loss])[0] for _ in range(STEPS)]
    return {"w": net.value("w"), "b": net.value("b"), "losses": numpy.array(losses, "float32").reshape(-1)}


def sgd(paddle, net):
    return _trained(paddle, net, paddle.optimizer.SGD(learning_rate=0.1))


def adam(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05, beta1=0.8, beta2=0.95))


def lazy_adam(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05, lazy_mode=True))


def _rows_trained(paddle, net, optimizer):
    """The rows of an embedding and the losses: each step looks up some rows, one of them twice."""
    ids, rows = net.data("ids", [[0, 2], [2, 3]], "int64"), net.parameter("rows", [[0.5, -0.25]] * 5)
    loss = paddle.mean(paddle.square(paddle.nn.functional.embedding(ids, rows, sparse=True) - 1.0))
    optimizer.minimize(loss)
    net.start()
    losses = [net.run([loss], ids=numpy.array([[step % 5, 2], [2, 3]]))[0] for step in range(STEPS)]
    return {"rows": net.value("rows"), "losses": numpy.array(losses, "float32").reshape(-1)}


def adam_over_rows(paddle, net):
    return _rows_trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05))


def lazy_adam_over_rows(paddle, net):
    return _rows_trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05, lazy_mode=True))


def adagrad(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adagrad(learning_rate=0.1, initial_accumulator_value=0.1))


def momentum(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Momentum(learning_rate=0.05, momentum=0.8))


def rmsprop(paddle, net):
    return _trained(paddle, net, paddle.optimizer.RMSProp(learning_rate=0.05))


def centered_rmsprop(paddle, net):
    return _trained(paddle, net, paddle.optimizer.RMSProp(0.05, rho=0.9, epsilon=1e-4, momentum=0.8,
                                                          centered=True))


def rmsprop_over_rows(paddle, net):
    return _rows_trained(paddle, net, paddle.optimizer.RMSProp(learning_rate=0.05, momentum=0.5))


def clip_by_value(paddle, net):
    return _trained(paddle, net,
                    paddle.optimizer.SGD(0.1, grad_clip=paddle.nn.ClipGradByValue(max=0.5, min=-0.25)))


def clip_by_norm(paddle, net):
    return _trained(paddle, net, paddle.optimizer.SGD(0.1, grad_clip=paddle.nn.ClipGradByNorm(0.75)))


def clip_by_global_norm(paddle, net):
    decay = paddle.regularizer.L2Decay(0.1)
    return _trained(paddle, net, paddle.optimizer.Adam(0.05, weight_decay=decay,
                                                       grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)))


def clip_of_rows(paddle, net):
    """Rows that are looked up twice count once, with the sum of their gradients."""
    return _rows_trained(paddle, net,
                         paddle.optimizer.SGD(0.5, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1)))


def clip_of_rows_by_norm(paddle, net):
    return _rows_trained(paddle, net, paddle.optimizer.Adagrad(0.1, grad_clip=paddle.nn.ClipGradByNorm(0.1)))


def no_clip_of_one(paddle, net):
    """need_clip=False leaves a parameter alone, and out of the norm of all."""
    x = net.data("x", X)
    one = paddle.nn.initializer.Constant(0.5)
    w = paddle.create_parameter([3, 1], "float32", attr=paddle.ParamAttr(name="w", initializer=one))
    v = paddle.create_parameter([3, 1], "float32",
                                attr=paddle.ParamAttr(name="v", initializer=one, need_clip=False))
    loss = paddle.mean(paddle.square(paddle.matmul(x, w) + paddle.matmul(x, v) - 2.0))
    paddle.optimizer.SGD(0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)).minimize(loss)
    net.keep_initial_values()
    net.start()
    net.run()
    return {"w": net.value("w"), "v": net.value("v")}


def decay_of_squares(paddle, net):
    decay = paddle.regularizer.L2Decay(0.1)
    return _trained(paddle, net, paddle.optimizer.SGD(learning_rate=0.1, weight_decay=decay))


def decay_of_sizes(paddle, net):
    return _trained(paddle, net, paddle.optimizer.SGD(learning_rate=0.1,
                                                      weight_decay=paddle.regularizer.L1Decay(0.1)))


def schedule(paddle, net):
    rate = paddle.optimizer.lr.PiecewiseDecay(boundaries=[1, 3], values=[0.1, 0.05, 0.01])
    rates = []
    for _ in range(5):
        rates.append(rate())
        rate.step()
    return {"rates": numpy.array(rates, "float32")}


def own_decay_and_rate(paddle, net):
    x = net.data("x", X)
    attr = paddle.ParamAttr(name="w", learning_rate=0.5, regularizer=paddle.regularizer.L2Decay(0.2),
                            initializer=paddle.nn.initializer.Constant(0.25))
    same = paddle.framework.ParamAttr(name="v", initializer=paddle.nn.initializer.Constant(0.5),
                                      trainable=False)
    w, v = paddle.create_parameter([3, 1], "float32",
                                   attr=attr), paddle.create_parameter([3, 1], "float32", attr=same)
    loss = paddle.mean(paddle.square(paddle.matmul(x, w) + paddle.matmul(x, v)))
    paddle.optimizer.SGD(learning_rate=0.1).minimize(loss)
    net.keep_initial_values()
    net.start()
    net.run()
    return {"w": net.value("w"), "v": net.value("v")}


def given_initial_values(paddle, net):
    initializer = paddle.nn.initializer
    attrs = {"constant": initializer.Constant(0.75),
             "assign": initializer.Assign(numpy.arange(6, dtype="float32").reshape(2, 3))}
    for name, each in attrs.items():
        paddle.create_parameter([2, 3], "float32", attr=paddle.ParamAttr(name=name, initializer=each))
    paddle.create_parameter([4], "float32", is_bias=True, attr=paddle.ParamAttr(name="bias"))
    net.keep_initial_values()
    net.start()
    return {name: net.value(name) for name in [*attrs, "bias"]}


@within(relative=0, absolute=0.03)
def random_initial_values(paddle, net):
    """Mean and deviation of 30,000 values, and the largest where there is a bound:
    within five standard errors."""
    initializer = paddle.nn.initializer
    attrs = {"normal": initializer.Normal(0.3, 0.7), "truncated": initializer.TruncatedNormal(0.3, 0.7),
             "uniform": initializer.Uniform(-0.6, 0.9), "xavier_uniform": initializer.XavierUniform(),
             "xavier_normal": initializer.XavierNormal(),
             "xavier_fans": initializer.XavierUniform(fan_in=3, fan_out=3),
             "kaiming_uniform": initializer.KaimingUniform(), "kaiming_normal": initializer.KaimingNormal()}
    for name, each in attrs.items():
        paddle.create_parameter([100, 300], "float32", attr=paddle.ParamAttr(name=name, initializer=each))
    net.keep_initial_values()
    net.start()
    values = {name: net.value(name) for name in attrs}
    moments = {name: numpy.array([v.mean(), v.std()], "float32") for name, v in values.items()}
    bounded = [name for name in attrs if "normal" not in name]
    return moments | {name + "_most": numpy.array([abs(values[name]).max()], "float32") for name in bounded}
