"""The script of tests/campaigns/ps_rules.py: a click model whose tables have the rules of Paddle's parameter
server, with the choices of the file job.json. It is run by `fleetrun --compat=paddle`."""

import json
import os

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
import paddle.fluid as fluid
from fleetrun import _native
from fleetrun.distributed.fleet._fleet import the_fleet
from ps_training import begin

with open("job.json") as file:
    job = json.load(file)
paddle.enable_static()
paddle.seed(job["seed"])
fleet.init(is_collective=False)
slots = [
    paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64", lod_level=1)
    for i in range(len(job["slots"]))
]
show = paddle.static.data(name="show", shape=[None, 1], dtype="float32")
click = paddle.static.data(name="click", shape=[None, 1], dtype="float32")
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
inputs = [*slots, show, click, label]
counts = paddle.concat([show, click], axis=1)


def pooled(slot, table):
    """The sum of an example's rows; of tables that show them, logarithms of show and click before it."""
    entry = None
    if table["entry"] == "counts":
        entry = paddle.distributed.ShowClickEntry("show", "click")
    elif isinstance(table["entry"], float):
        entry = paddle.distributed.ProbabilityEntry(table["entry"])
    elif table["entry"]:
        entry = paddle.distributed.CountFilterEntry(table["entry"])
    attr = paddle.ParamAttr(name=table["name"], initializer=paddle.nn.initializer.Constant(table["begin"]))
    shown = 2 if table["kind"] == "ctr" else 0
    rows = paddle.static.nn.sparse_embedding(
        slot, [job["keys"], shown + table["width"]], entry=entry, param_attr=attr
    )
    out = paddle.static.nn.sequence_pool(rows, "sum")
    return fluid.layers.continuous_value_model(out, counts, job["use_cvm"]) if shown else out


def known(name):
    value = np.array(job["weights"][name], dtype="float32")
    return paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Assign(value))


x = paddle.concat([pooled(slot, job["tables"][i]) for slot, i in zip(slots, job["slots"])], axis=1)
hidden = paddle.static.nn.fc(
    x, job["hidden"], activation="tanh", weight_attr=known("w1"), bias_attr=known("b1")
)
predict = paddle.nn.functional.sigmoid(
    paddle.static.nn.fc(hidden, 1, weight_attr=known("w2"), bias_attr=False)
)
loss = paddle.mean(paddle.nn.functional.log_loss(predict, paddle.cast(label, "float32")))
_, _, stats = paddle.static.auc(paddle.concat([1 - predict, predict], axis=1), label)
test_program = paddle.static.default_main_program().clone(for_test=True)

strategy = fleet.DistributedStrategy()
strategy.a_sync = False
for name, config in job["configs"].items():
    setattr(strategy, name, config)
rate = job["rate"]
if job["schedule"]:
    rate = paddle.optimizer.lr.ExponentialDecay(rate, job["schedule"])
optimizer = getattr(paddle.optimizer, job["optimizer"][0])(rate, **job["optimizer"][1])
fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
exe, rank = begin(job)


def new_dataset(kind, files, batch, threads):
    dataset = getattr(paddle.distributed, kind)()
    dataset.init(batch_size=batch, thread_num=threads, use_var=inputs, pipe_command=job["pipe"])
    dataset.set_filelist(files)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    return dataset


def look():
    """Every table as the servers have it: {name: {key: [unseen days, delta score, show, click, values]}}."""
    out, client = {}, the_fleet.training.client
    keys = np.arange(job["keys"], dtype=np.uint64)
    for entry in the_fleet.training.plan.entries():
        if not entry.table.sparse:
            continue
        found, values, statistics = _native.ps_get(client, entry.table.id, keys)
        values, numbers = np.asarray(values), [list(each[1:]) for each in statistics] or [[]] * len(keys)
        out[entry.table.name] = {
            int(key): [*numbers[key], *map(float, values[key])] for key in np.flatnonzero(np.asarray(found))
        }
    scope = paddle.static.global_scope()
    exe.run(test_program, feed=empty_feed(), fetch_list=[loss])
    clear_counters()
    return out | {name: np.array(scope.find_var(name).get_tensor()).tolist() for name in job["weights"]}


def empty_feed():
    """One example, so that dense values are pulled; its keys are in no file."""
    one = {
        slot.name: fluid.create_lod_tensor(np.array([[job["keys"]]]), [[1]], fluid.CPUPlace())
        for slot in slots
    }
    zeros = {"show": np.zeros([1, 1], "float32"), "click": np.zeros([1, 1], "float32")}
    return one | zeros | {"label": np.zeros([1, 1], "int64")}


def clear_counters():
    for each in stats:
        tensor = paddle.static.global_scope().find_var(each.name).get_tensor()
        tensor.set(np.zeros_like(np.array(tensor)), paddle.CPUPlace())


def auc_now():
    """Of all trainers since the counters were last cleared."""
    value = fleet.metrics.auc(*stats[2:])
    clear_counters()
    return value


say = {"looks": [], "aucs": []}
files = job["files"][rank]
dataset = new_dataset(job["dataset"], files, job["batch"], job["threads"]) if job["once"] else None
for day in range(job["days"]):
    now = dataset or new_dataset(job["dataset"], files, job["batch"], job["threads"])
    print("pass begins", day, flush=True)
    exe.train_from_dataset(
        paddle.static.default_main_program(), now, fetch_list=[loss], fetch_info=["loss"], print_period=1
    )
    if job["schedule"]:
        optimizer._learning_rate.step()
    say["aucs"].append(auc_now())
    for what in job["ends_of_days"][day]:
        fleet.barrier_worker()
        if what == "look":
            say["looks"].append(look())
        elif what == "evaluate":
            test = new_dataset("QueueDataset", job["test_files"], job["test_batch"], 2)
            exe.infer_from_dataset(test_program, test)
            say["aucs"].append(auc_now())
        elif fleet.is_first_worker():
            fleet.shrink() if what == "shrink" else fleet.save_persistables(
                exe, f"day-{day}-{what}", mode=what
            )
        fleet.barrier_worker()
fleet.barrier_worker()
say["looks"].append(look())
if job["served"] is not None and fleet.is_first_worker():
    names = [each.name for each in [*slots, show, click]]
    fleet.save_inference_model(exe, "served", names, [predict], mode=job["served"])
with open(f"said-{rank}.new", "w") as file:
    json.dump(say, file)
os.replace(f"said-{rank}.new", f"said-{rank}")
fleet.barrier_worker()
fleet.stop_worker()
