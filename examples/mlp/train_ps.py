"""The same model on parameter servers: fleetrun --server_num=1 --trainer_num=2 train_ps.py

Next to train_local.py: the role, the strategy, and who does what.
"""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
import fleetrun.distributed.fleet.base.role_maker as role_maker
from nets import mlp
from utils import gen_data

paddle.enable_static()
fleet.init(role_maker.PaddleCloudRoleMaker())

input_x = paddle.static.data(name="x", shape=[None, 32], dtype="float32")
input_y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
cost = mlp(input_x, input_y)
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.05), strategy)
optimizer.minimize(cost)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    for i in range(1001):
        (cost_val,) = exe.run(paddle.static.default_main_program(), feed=gen_data(), fetch_list=[cost])
        if i % 100 == 0:
            print("worker_index: %d, step%d cost=%f" % (fleet.worker_index(), i, cost_val.item()), flush=True)
    fleet.stop_worker()
