"""Training from files: python make_data.py; fleetrun --compat=paddle --nproc_per_node=1 train_dataset.py"""
import glob

import paddle.fluid as fluid
from net import ctr

use_var, avg_cost = ctr()
fluid.optimizer.Adagrad(learning_rate=0.05).minimize(avg_cost)

dataset = fluid.DatasetFactory().create_dataset()
dataset.set_use_var(use_var)
dataset.set_batch_size(128)
dataset.set_thread(2)
dataset.set_pipe_command("cat")
dataset.set_filelist(sorted(glob.glob("data/part-*")))

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for epoch in range(2):
    exe.train_from_dataset(program=fluid.default_main_program(), dataset=dataset, fetch_list=[avg_cost],
                           fetch_info=["cost"],
                           print_period=5)
