import numpy
import paddle

paddle.enable_static()
x, y = paddle.static.data("x", [None, 2]), paddle.static.data("y", [None, 1])
loss = paddle.mean(paddle.square(paddle.static.nn.fc(x, 1) - y))
paddle.optimizer.SGD(0.1).minimize(loss)
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
exe.run(feed={"x": numpy.ones((4, 2), "float32"), "y": numpy.ones((4, 1), "float32")}, fetch_list=[loss])
