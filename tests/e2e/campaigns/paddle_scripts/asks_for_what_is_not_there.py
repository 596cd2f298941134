import paddle

paddle.enable_static()
x = paddle.static.data("x", [None, 2])


def net(x):
    return paddle.static.nn.no_such_layer(x)


loss = net(x)
optimizer = paddle.optimizer.SGD(0.1)
optimizer.minimize(loss)
