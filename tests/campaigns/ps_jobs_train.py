"""The script of tests/campaigns/ps_jobs.py: a small model on parameter servers, as users of Paddle write
them, with the choices of the file job.json. It is run by `fleetrun --compat=paddle`."""

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

slots = [
    paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64", lod_level=int(job["many"]))
    for i in range(len(job["slots"]))
]
dense = (
    [paddle.static.data(name="dense", shape=[None, job["dense"]], dtype="float32")] if job["dense"] else []
)
label = paddle.static.data(name="label", shape=[None, 1], dtype="float32")
inputs = [*slots, *dense, label]


def decay_of(kind, factor):
    return None if kind is None else getattr(paddle.regularizer, kind)(factor)


def attribute(name, value):
    own = job["own"].get(name, {})
    decay = decay_of(*own["decay"]) if "decay" in own else None
    return paddle.ParamAttr(
        name=name,
        initializer=value,
        learning_rate=own.get("rate", 1.0),
        regularizer=decay,
        need_clip=own.get("clip", True),
    )


def rows_of(slot, table):
    attr = attribute(table["name"], paddle.nn.initializer.Constant(table["begin"]))
    size = [job["keys"], job["width"]]
    if job["lookup"] == "sparse_embedding":
        return paddle.static.nn.sparse_embedding(slot, size, param_attr=attr)
    if job["lookup"] == "fluid":
        return fluid.layers.embedding(slot, size=size, is_sparse=True, is_distributed=True, param_attr=attr)
    return fluid.layers.embedding(slot, size=size, is_sparse=job["lookup"] == "sparse", param_attr=attr)


def known(name):
    return attribute(name, paddle.nn.initializer.Assign(np.array(job["weights"][name], dtype="float32")))


pooled = []
for slot, table in zip(slots, job["slots"]):
    rows = rows_of(slot, job["tables"][table])
    pooled.append(
        paddle.static.nn.sequence_pool(rows, job["pool"])
        if job["many"]
        else paddle.reshape(rows, [-1, job["width"]])
    )
hidden = paddle.static.nn.fc(
    paddle.concat([*pooled, *dense], axis=1),
    job["hidden"],
    activation="tanh",
    weight_attr=known("w1"),
    bias_attr=known("b1"),
)
out = paddle.static.nn.fc(hidden, 1, weight_attr=known("w2"), bias_attr=False)
loss = paddle.mean(paddle.square(out - label))
test_program = paddle.static.default_main_program().clone(for_test=True)


def clip():
    kind, *numbers = job["clip"] or [None]
    return getattr(paddle.nn, kind)(*numbers) if kind else None


rate = job["rate"]
if job["schedule"]:
    rate = getattr(paddle.optimizer.lr, job["schedule"][0])(rate, **job["schedule"][1])
optimizer = getattr(paddle.optimizer, job["optimizer"][0])(
    learning_rate=rate,
    grad_clip=clip(),
    weight_decay=decay_of(*job["decay"]) if job["decay"] else None,
    **job["optimizer"][1],
)
if job["factory"] and job["mode"] != "geo":
    strategy = getattr(DistributedStrategyFactory, f"create_{job['mode']}_strategy")()
    strategy.get_program_config().min_block_size = job["block"]
elif job["factory"]:
    strategy = DistributedStrategyFactory.create_geo_strategy(job["k_steps"])
else:
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = job["mode"] != "sync"
    if job["mode"] == "geo":
        strategy.a_sync_configs = {"k_steps": job["k_steps"]}
fleet.distributed_optimizer(optimizer, strategy).minimize(loss)

exe, rank = begin(job)


def new_dataset(kind, files, batch, threads):
    dataset = getattr(paddle.distributed, kind)()
    dataset.init(batch_size=batch, thread_num=threads, use_var=inputs, pipe_command=job["pipe"])
    dataset.set_filelist(files)
    return dataset


def loaded(dataset):
    if job["dataset"] == "InMemoryDataset":
        if job["preload"]:
            dataset.preload_into_memory()
            dataset.wait_preload_done()
        else:
            dataset.load_into_memory()
    return dataset


def known_rows(table):
    """[keys, width] of a table: lookups of each key, by the program without training."""
    slot = job["slots"].index(table)
    keys = np.arange(job["keys"], dtype="int64").reshape(-1, 1)
    feed = {"label": np.zeros([len(keys), 1], "float32")}
    if job["dense"]:
        feed["dense"] = np.zeros([len(keys), job["dense"]], "float32")
    for each in slots:
        feed[each.name] = (
            fluid.create_lod_tensor(keys, [[1] * len(keys)], fluid.CPUPlace()) if job["many"] else keys
        )
    return exe.run(test_program, feed=feed, fetch_list=[pooled[slot]])[0].reshape(len(keys), -1)


def values():
    """All parameters as they are now; a run of the program gets them from the servers."""
    scope = paddle.static.global_scope()
    used = [(number, table) for number, table in enumerate(job["tables"]) if number in job["slots"]]
    out = {table["name"]: known_rows(number).tolist() for number, table in used}
    return out | {name: np.array(scope.find_var(name).get_tensor()).tolist() for name in job["weights"]}


say = {"values": [], "sums": []}
files = job["files"][rank]
dataset = loaded(new_dataset(job["dataset"], files, job["batch"], job["threads"])) if job["once"] else None
for epoch in range(job["epochs"]):
    now = dataset or loaded(new_dataset(job["dataset"], files, job["batch"], job["threads"]))
    print("pass begins", epoch, flush=True)
    exe.train_from_dataset(
        paddle.static.default_main_program(), now, fetch_list=[loss], fetch_info=["loss"], print_period=1
    )
    print("pass ends", epoch, flush=True)
    if job["schedule"]:
        optimizer._learning_rate.step()
    if job["release"] and job["dataset"] == "InMemoryDataset" and not job["once"]:
        now.release_memory()
    if epoch in job["look_after"]:
        fleet.barrier_worker()
        say["values"].append(values())
        test = new_dataset("QueueDataset", job["test_files"], job["test_batch"], 1)
        print("pass begins eval", epoch, flush=True)
        exe.infer_from_dataset(test_program, test, fetch_list=[loss], fetch_info=["loss"], print_period=1)
        print("pass ends", epoch, flush=True)
        say["sums"].append(fleet.util.all_reduce(np.array([rank + 1.0, epoch]), "sum").tolist())
        fleet.barrier_worker()
    if epoch in job["save_after"]:
        fleet.barrier_worker()
        if fleet.is_first_worker() or job["all_save"]:
            fleet.save_persistables(exe, f"saved-{epoch}", mode=0)
        fleet.barrier_worker()
fleet.barrier_worker()
say["values"].append(values())
fleet.barrier_worker()
if job["served"] and fleet.is_first_worker():
    fleet.save_inference_model(exe, "served", [each.name for each in inputs[:-1]], [out])
with open(f"said-{rank}.new", "w") as file:
    json.dump(say, file)
os.replace(f"said-{rank}.new", f"said-{rank}")
fleet.barrier_worker()
fleet.stop_worker()
