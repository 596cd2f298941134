"""The script of tests/campaigns/ps_counts.py: a model whose tables count the examples that were trained, with
the choices of the file job.json. It is run by `fleetrun --compat=paddle`."""

import json
import os

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import (
    DistributedStrategyFactory,
)
from ps_training import begin

with open("job.json") as file:
    job = json.load(file)
paddle.enable_static()
fleet.init(is_collective=False)
keys = paddle.static.data(name="keys", shape=[None, 1], dtype="int64", lod_level=1)
show = paddle.static.data(name="show", shape=[None, 1], dtype="float32")
click = paddle.static.data(name="click", shape=[None, 1], dtype="float32")
inputs = [keys, show, click]
has_shows = job["table"] == "ctr"
entry = {
    "plain": None,
    "ctr": paddle.distributed.ShowClickEntry("show", "click"),
    "filter": paddle.distributed.CountFilterEntry(job["entry"]),
}[job["table"]]
attr = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(0.0))
rows = paddle.static.nn.sparse_embedding(
    keys, [job["keys"], 3 if has_shows else 1], entry=entry, param_attr=attr
)
values = rows
if has_shows:
    values = fluid.layers.continuous_value_model(rows, paddle.concat([show, click], axis=1), False)
# Whatever the values are, each key of an example has the gradient 1.
loss = paddle.sum(paddle.static.nn.sequence_pool(values, "sum"))
test_program = paddle.static.default_main_program().clone(for_test=True)

if job["mode"] == "half_async":
    strategy = DistributedStrategyFactory.create_half_async_strategy()
else:
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = job["mode"] != "sync"
    strategy.a_sync_configs = job["a_sync_configs"]
if has_shows and job["mode"] != "half_async":
    strategy.sparse_table_configs = {
        "rows": {f"table_parameters.rows.{name}": value for name, value in job["accessor"].items()}
    }
fleet.distributed_optimizer(paddle.optimizer.SGD(1.0), strategy).minimize(loss)
exe, rank = begin(job)
fleet.barrier_worker()
dataset = getattr(paddle.distributed, job["dataset"])()
dataset.init(batch_size=job["batch"], thread_num=job["threads"], use_var=inputs, pipe_command=job["pipe"])
dataset.set_filelist(job["files"][rank])
in_memory = job["dataset"] == "InMemoryDataset"


def load():
    if job["preload"]:
        dataset.preload_into_memory(2)
        dataset.wait_preload_done()
    else:
        dataset.load_into_memory()


def look():
    """The table, by key: shows and clicks before the values, where it has them."""
    asked = np.arange(job["keys"], dtype="int64").reshape(-1, 1)
    feed = {
        "keys": fluid.create_lod_tensor(asked, [[1] * len(asked)], fluid.CPUPlace()),
        "show": np.zeros([len(asked), 1], "float32"),
        "click": np.zeros([len(asked), 1], "float32"),
    }
    return exe.run(test_program, feed=feed, fetch_list=[rows])[0].tolist()


say = {"looks": [], "sizes": []}
if in_memory and job["load_once"]:
    load()
for day in range(job["days"]):
    if in_memory:
        if not job["load_once"]:
            load()
        say["sizes"].append(dataset.get_memory_data_size(fleet))
        if job["shuffle"] == "local":
            dataset.local_shuffle()
        elif job["shuffle"] == "global":
            dataset.global_shuffle(fleet, thread_num=2)
            say["sizes"].append(dataset.get_shuffle_data_size(fleet))
    exe.train_from_dataset(
        paddle.static.default_main_program(),
        dataset,
        fetch_list=[loss],
        fetch_info=["loss"],
        print_period=1,
    )
    if in_memory and not job["load_once"]:
        dataset.release_memory()
    fleet.barrier_worker()
    if job["evaluates"]:
        test = paddle.distributed.QueueDataset()
        test.init(batch_size=4, thread_num=2, use_var=inputs, pipe_command="cat")
        test.set_filelist(job["test_files"])
        exe.infer_from_dataset(test_program, test)
        fleet.barrier_worker()
    for what in job["ends_of_days"][day]:
        if what == "look":
            say["looks"].append(look())
        elif what == "shrink":
            if fleet.is_first_worker():
                fleet.shrink()
        else:
            if fleet.is_first_worker():
                fleet.save_persistables(exe, f"day-{day}-{what}", mode=what)
        fleet.barrier_worker()
say["looks"].append(look())
fleet.barrier_worker()
with open(f"said-{rank}.new", "w") as file:
    json.dump(say, file)
os.replace(f"said-{rank}.new", f"said-{rank}")
fleet.barrier_worker()
fleet.stop_worker()
