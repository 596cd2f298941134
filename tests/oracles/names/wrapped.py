"""Optimizers around others: gradients of several steps merged, and mixed precision, float32 on CPUs."""

import numpy

STEPS = 8


def _trained(paddle, net, optimizer, feeds, more=None):
    """The losses, what `more` gives besides in each step, and the parameter in the end."""
    x, w = net.data("x", [[0.0, 0.0], [0.0, 0.0]]), net.parameter("w", [[0.5, 0.5], [0.5, 0.5]])
    loss = paddle.mean(paddle.matmul(x, w) * w)
    optimizer.minimize(loss)
    net.start()
    fetched = [loss, *(more() if more else ())]
    steps = [net.run(fetched, x=numpy.array(fed, "float32")) for fed in feeds]
    made = {f"fetched{i}": numpy.array([numpy.ravel(step[i])[0] for step in steps], "float32")
            for i in range(len(fetched))}
    return {**made, "w": net.value("w")}


def _merged(paddle, net, optimizer, **chosen):
    feeds = [numpy.arange(4).reshape(2, 2) * 0.3 + step * 0.1 for step in range(STEPS)]
    return _trained(paddle, net, paddle.incubate.optimizer.GradientMergeOptimizer(optimizer, **chosen), feeds)


def merged_means(paddle, net):
    return _merged(paddle, net, paddle.optimizer.SGD(0.1), k_steps=3)


def merged_sums(paddle, net):
    return _merged(paddle, net, paddle.optimizer.SGD(0.1), k_steps=2, avg=False)


def merged_momentum(paddle, net):
    return _merged(paddle, net, paddle.optimizer.Momentum(0.1, 0.9), k_steps=3)


def merged_clipped_and_decayed(paddle, net):
    clip = paddle.nn.ClipGradByGlobalNorm(0.2)
    adam = paddle.optimizer.Adam(0.1, grad_clip=clip, weight_decay=0.01, epsilon=1e-4)
    return _merged(paddle, net, adam, k_steps=2)


def _mixed(paddle, net, feeds, **chosen):
    optimizer = paddle.static.amp.decorate(paddle.optimizer.Momentum(0.1), init_loss_scaling=8.0, **chosen)
    return _trained(paddle, net, optimizer, feeds,
                    lambda: (optimizer.get_loss_scaling(), optimizer.get_scaled_loss()))


def mixed_precision(paddle, net):
    """A step with an infinite gradient moves as a gradient of 0 does, and lessens the scale."""
    feeds = [numpy.ones((2, 2)) for _ in range(STEPS)]
    feeds[3] = [[numpy.inf, 1.0], [1.0, 1.0]]
    return _mixed(paddle, net, feeds, incr_every_n_steps=2, decr_every_n_nan_or_inf=1)


def mixed_precision_of_before(paddle, net):
    feeds = [numpy.ones((2, 2)) for _ in range(STEPS)]
    feeds[2] = feeds[3] = feeds[5] = [[numpy.nan, 1.0], [1.0, 1.0]]
    return _mixed(paddle, net, feeds, use_pure_fp16=False, incr_every_n_steps=3)


def mixed_precision_of_one_scale(paddle, net):
    return _mixed(paddle, net, [numpy.ones((2, 2))] * 3, level="O2", use_dynamic_loss_scaling=False)
