"""Optimizers in two halves: backward(), what a script does with the gradients, and apply_gradients()."""

import numpy

STEPS = 4
# One row twice in each step: Paddle adds those up first, and reads behind the rows where there are none.
IDS = [[0, 4, 0], [2, 3, 2], [1, 2, 1], [3, 3, 1]]


def _trained(paddle, net, optimizer, between=None, sparse=False, backward=None, **chosen):
    """Two parameters and the losses: the rows of an embedding, and what they are multiplied with."""
    ids, rows = net.data("ids", [IDS[0]], "int64"), net.parameter("rows", [[0.5, -0.25]] * 5)
    w = net.parameter("w", [[0.3], [-0.2]])
    looked_up = paddle.nn.functional.embedding(ids, rows, sparse=sparse)
    loss = paddle.mean(paddle.square(paddle.matmul(looked_up, w) - 1.0))
    if chosen:
        optimizer.minimize(loss, **{name: value(rows, w) for name, value in chosen.items()})
    else:
        pairs = (backward or optimizer.backward)(loss)
        optimizer.apply_gradients(between(pairs) if between else pairs)
    net.start()
    losses = [net.run([loss], ids=numpy.array([IDS[step]]))[0] for step in range(STEPS)]
    losses = numpy.array(losses, "float32").reshape(-1)
    return {"rows": net.value("rows"), "w": net.value("w"), "losses": losses}


def gradients_as_they_are(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05))


def gradients_of_rows(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05), sparse=True)


def gradients_of_lazy_rows(paddle, net):
    optimizer = paddle.optimizer.Adam(learning_rate=0.05, lazy_mode=True)
    return _trained(paddle, net, optimizer, sparse=True)


def rows_with_an_epsilon_that_tells(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05, epsilon=1e-4), sparse=True)


def lazy_rows_with_an_epsilon_that_tells(paddle, net):
    optimizer = paddle.optimizer.Adam(learning_rate=0.05, epsilon=1e-4, lazy_mode=True)
    return _trained(paddle, net, optimizer, sparse=True)


def all_rows_with_an_epsilon_that_tells(paddle, net):
    return _trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.05, epsilon=1e-4))


def clipped_rows_with_an_epsilon_that_tells(paddle, net):
    clip = paddle.nn.ClipGradByGlobalNorm(0.2)
    optimizer = paddle.optimizer.Adam(learning_rate=0.05, epsilon=1e-4, grad_clip=clip)
    return _trained(paddle, net, optimizer, sparse=True)


def decayed_rows_with_an_epsilon_that_tells(paddle, net):
    optimizer = paddle.optimizer.Adam(learning_rate=0.05, epsilon=1e-4, weight_decay=0.1)
    return _trained(paddle, net, optimizer, sparse=True)


def rows_with_the_norm_of_all_of_them(paddle, net):
    optimizer = paddle.optimizer.Lamb(learning_rate=0.05, epsilon=1e-4, lamb_weight_decay=0.1)
    return _trained(paddle, net, optimizer, sparse=True)


def rows_by_their_root_mean_square(paddle, net):
    optimizer = paddle.optimizer.RMSProp(0.05, epsilon=1e-4, momentum=0.8, centered=True)
    return _trained(paddle, net, optimizer, sparse=True)


def gradients_changed_by_hand(paddle, net):
    def between(pairs):
        return [(parameter, paddle.clip(gradient, -0.05, 0.1) * 2.0) for parameter, gradient in pairs]

    return _trained(paddle, net, paddle.optimizer.SGD(learning_rate=0.1), between)


def gradients_clipped_by_a_call(paddle, net):
    clip = paddle.nn.ClipGradByGlobalNorm(0.2)
    return _trained(paddle, net, paddle.optimizer.Momentum(learning_rate=0.1), clip)


def rows_clipped_by_a_call(paddle, net):
    clip = paddle.nn.ClipGradByNorm(0.2)
    return _trained(paddle, net, paddle.optimizer.Adagrad(learning_rate=0.1), clip, sparse=True)


def gradients_decayed_and_clipped_by_the_optimizer(paddle, net):
    clip = paddle.nn.ClipGradByValue(0.05)
    optimizer = paddle.optimizer.Momentum(learning_rate=0.1, weight_decay=0.1, grad_clip=clip)
    return _trained(paddle, net, optimizer)


def gradients_of_append_backward(paddle, net):
    optimizer = paddle.optimizer.SGD(learning_rate=0.1)
    return _trained(paddle, net, optimizer, sparse=True, backward=paddle.static.append_backward)


def only_some_parameters(paddle, net):
    return _trained(paddle, net, paddle.optimizer.SGD(learning_rate=0.1), parameters=lambda rows, w: [w])


def all_but_some_parameters(paddle, net):
    optimizer = paddle.optimizer.SGD(learning_rate=0.1)
    return _trained(paddle, net, optimizer, no_grad_set=lambda rows, w: {w.name})
