import paddle

paddle.enable_static()
with open("no_such_file") as file:
    size = int(file.read())
loss = paddle.static.nn.fc(paddle.static.data("x", [None, size]), 1)
optimizer = paddle.optimizer.SGD(0.1)
optimizer.minimize(loss)
