"""Processes that you start yourself: the script says who is what, instead of a launcher's environment.

    python train_roles.py server 0 & python train_roles.py trainer 0 & python train_roles.py trainer 1
    python train_roles.py rank 0 & python train_roles.py rank 1          # collective: no servers

Next to train_ps.py and train_collective.py: UserDefinedRoleMaker. Whoever starts processes on several hosts
gives all of them the same lists; fleetrun does all of this by itself.
"""
import argparse

import numpy as np

import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed.fleet import Role, UserDefinedRoleMaker
from nets import mlp
from utils import gen_data

parser = argparse.ArgumentParser()
parser.add_argument("part", choices=["server", "trainer", "rank"])
parser.add_argument("number", type=int)
parser.add_argument("--servers", default="127.0.0.1:36011", help="HOST:PORT,…")
parser.add_argument("--trainers", default="127.0.0.1:36021,127.0.0.1:36022", help="HOST:PORT,…")
arguments = parser.parse_args()
servers, trainers = arguments.servers.split(","), arguments.trainers.split(",")

paddle.enable_static()
paddle.seed(1)
if arguments.part == "rank":
    role = UserDefinedRoleMaker(is_collective=True, current_id=arguments.number, worker_endpoints=trainers)
else:
    role = UserDefinedRoleMaker(current_id=arguments.number,
                                role=Role.SERVER if arguments.part == "server" else Role.WORKER,
                                worker_num=len(trainers), server_endpoints=servers)
fleet.init(role)

input_x = paddle.static.data(name="x", shape=[None, 32], dtype="float32")
input_y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
cost = mlp(input_x, input_y)
optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.05))
optimizer.minimize(cost)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    numbers = np.random.default_rng(fleet.worker_index())  # the same batches in every run
    for i in range(1001):
        (cost_val,) = exe.run(feed=gen_data(numbers), fetch_list=[cost])
        if i % 100 == 0:
            print("trainer %d of %d, step%d cost=%f" % (fleet.worker_index(), fleet.worker_num(), i,
                                                        cost_val), flush=True)
    fleet.stop_worker()
