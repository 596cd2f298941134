"""Parameter servers by the names of Paddle 1.7:

    python make_data.py
    fleetrun --compat=paddle --server_num=1 --trainer_num=2 train_ps.py [sync|half_async|async|geo]
"""
import glob
import sys

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from net import ctr
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory \
    import DistributedStrategyFactory

files = sorted(glob.glob("data/part-*"))
if not files:
    raise SystemExit("train_ps.py: error: no part-* in data\n  hint: python make_data.py writes them")

# step1: the strategy
mode = sys.argv[1] if len(sys.argv) > 1 else "async"
strategy = {
    "sync": lambda: DistributedStrategyFactory.create_sync_strategy(),
    "half_async": lambda: DistributedStrategyFactory.create_half_async_strategy(),
    "async": lambda: DistributedStrategyFactory.create_async_strategy(),
    "geo": lambda: DistributedStrategyFactory.create_geo_strategy(update_frequency=20),
}[mode]()
config = strategy.get_program_config()
config.min_block_size = 81920

# step2: the role of this process
role = role_maker.PaddleCloudRoleMaker()
fleet.init(role)

# step3: the program
use_var, avg_cost = ctr()
optimizer = fluid.optimizer.SGD(0.5)
optimizer = fleet.distributed_optimizer(optimizer, strategy)
optimizer.minimize(avg_cost)

# step4: servers serve, trainers train
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
elif fleet.is_worker():
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    dataset = fluid.DatasetFactory().create_dataset()
    dataset.set_use_var(use_var)
    dataset.set_batch_size(128)
    dataset.set_thread(1)
    dataset.set_pipe_command("cat")
    dataset.set_filelist(files[fleet.worker_index()::fleet.worker_num()])
    for epoch in range(4):
        exe.train_from_dataset(program=fleet.main_program, dataset=dataset, fetch_list=[avg_cost],
                               fetch_info=["cost"],
                               print_period=5)
    fleet.stop_worker()
