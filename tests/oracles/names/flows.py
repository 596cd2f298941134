"""Fleet in one process: what an optimizer that it was given does."""

import numpy


def distributed_optimizer(paddle, net):
    fleet = paddle.distributed.fleet
    fleet.init(is_collective=True)
    x, y = net.data("x", [[1.0, 2.0], [-1.0, 0.5]]), net.data("y", [[1.0], [0.0]])
    w = net.parameter("w", [[0.5], [-0.25]])
    loss = paddle.mean(paddle.square(paddle.matmul(x, w) - y))
    optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy=fleet.DistributedStrategy())
    optimizer.minimize(loss, net.startup)
    net.start()
    net.run()
    return {"w": net.value("w"), "worker": numpy.array([fleet.worker_index(), fleet.worker_num()]),
            "first": numpy.array([fleet.is_first_worker()])}
