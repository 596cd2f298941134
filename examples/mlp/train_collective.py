"""Collective training, as a script asks for it: fleetrun --nproc_per_node=1 train_collective.py

This version has no collectives: one trainer trains as train_local.py does, more than one is an error that says so.
"""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
import fleetrun.distributed.fleet.base.role_maker as role_maker
from nets import mlp
from utils import gen_data

paddle.enable_static()
role = role_maker.PaddleCloudRoleMaker(is_collective=True)
fleet.init(role)

input_x = paddle.static.data(name="x", shape=[None, 32], dtype="float32")
input_y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
cost = mlp(input_x, input_y)
optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.05))
optimizer.minimize(cost)

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
for i in range(1001):
    (cost_val,) = exe.run(paddle.static.default_main_program(), feed=gen_data(), fetch_list=[cost])
    if i % 100 == 0:
        print("worker_index: %d, step%d cost=%f" % (fleet.worker_index(), i, cost_val.item()), flush=True)
