"""Several replicas of the program in one process: CPU_NUM=2 fleetrun --compat=paddle --nproc_per_node=1
train_parallel.py

Each batch is split among the CPU_NUM replicas; with ReduceStrategy.Reduce each parameter is updated
by one of them.
"""
import os
import random

import numpy as np
import paddle.fluid as fluid
from make_data import SLOTS, example
from net import ctr

BATCH = 128


def batch(generator):
    """What is fed in one step."""
    rows = [example(generator) for _ in range(BATCH)]
    feed = {f"C{i}": np.array([[ids[i]] for ids, _ in rows], dtype="int64") for i in range(SLOTS)}
    return {**feed, "label": np.array([[click] for _, click in rows], dtype="int64")}


_, avg_cost = ctr()
fluid.optimizer.Adagrad(learning_rate=0.1).minimize(avg_cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())

exec_strategy = fluid.ExecutionStrategy()
exec_strategy.num_threads = int(os.getenv("CPU_NUM"))
build_strategy = fluid.BuildStrategy()
if int(os.getenv("CPU_NUM")) > 1:
    build_strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce

pe = fluid.ParallelExecutor(
    use_cuda=False,
    loss_name=avg_cost.name,
    main_program=fluid.default_main_program(),
    build_strategy=build_strategy,
    exec_strategy=exec_strategy)

generator = random.Random(7)
for step in range(301):
    # The loss of each replica.
    (losses,) = pe.run(fetch_list=[avg_cost.name], feed=batch(generator))
    if step % 100 == 0:
        print("step %d, %d replicas, cost %f" % (step, len(losses), np.mean(losses)), flush=True)
