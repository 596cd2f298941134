"""One process, no servers: python train_local.py"""
import numpy as np

import fleetrun as paddle
from nets import mlp
from utils import gen_data

paddle.enable_static()
paddle.seed(1)
input_x = paddle.static.data(name="x", shape=[None, 32], dtype="float32")
input_y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
cost = mlp(input_x, input_y)
optimizer = paddle.optimizer.SGD(learning_rate=0.05)
optimizer.minimize(cost)

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
numbers = np.random.default_rng(0)  # the same batches in every run
for i in range(1001):
    (cost_val,) = exe.run(feed=gen_data(numbers), fetch_list=[cost])
    if i % 100 == 0:
        print("step%d cost=%f" % (i, cost_val.item()), flush=True)
