"""Collective training: fleetrun --nproc_per_node=2 train_collective.py

Each trainer makes batches of its own; the gradients of all are averaged in every step, and all have the same
parameters. With one trainer it is train_local.py. See log/workerlog.0 and log/workerlog.1.
"""
import hashlib

import numpy as np

import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
import fleetrun.distributed.fleet.base.role_maker as role_maker
from nets import mlp
from utils import gen_data

paddle.enable_static()
paddle.seed(1)
role = role_maker.PaddleCloudRoleMaker(is_collective=True)
fleet.init(role)

input_x = paddle.static.data(name="x", shape=[None, 32], dtype="float32")
input_y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
cost = mlp(input_x, input_y)
optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.05))
optimizer.minimize(cost)

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
numbers = np.random.default_rng(fleet.worker_index())  # the same batches in every run
for i in range(1001):
    (cost_val,) = exe.run(paddle.static.default_main_program(), feed=gen_data(numbers), fetch_list=[cost])
    if i % 100 == 0:
        print("worker_index: %d, step%d cost = %f" % (fleet.worker_index(), i, cost_val.item()), flush=True)

digest = hashlib.sha256()
for parameter in paddle.static.default_main_program().all_parameters():
    digest.update(np.asarray(paddle.static.global_scope().find_var(parameter.name).get_tensor()).tobytes())
print("worker_index: %d, parameters %s" % (fleet.worker_index(), digest.hexdigest()[:16]), flush=True)
