"""Parameter-server scripts as people write them for Paddle, unchanged:
fleetrun --compat=paddle, one server, two trainers.

DeepFM: first order and factors from two sparse embeddings with entries, FM by (sum)^2 - sum of squares.
CTR-DNN: slots of any number of keys, a ctr accessor with shows and clicks, pooling, continuous_value_model.
Each optimizer learns the same task.
"""

import random
import re
import sys

import pytest

from flow import LIMIT

DEEPFM = """
import sys
import paddle
import paddle.distributed.fleet as fleet
import paddle.nn.functional as F
from paddle.distributed import CountFilterEntry, ProbabilityEntry, ShowClickEntry

paddle.enable_static()
paddle.seed(3)
fleet.init(is_collective=False)
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
slots = [paddle.static.data(name="C%d" % i, shape=[None, 1], dtype="int64") for i in range(3)]
dense = paddle.static.data(name="dense", shape=[None, 2], dtype="float32")
ENTRY = lambda: ENTRY_CODE

def lookup(ids, name, width):
    return paddle.static.nn.sparse_embedding(
        input=ids, size=[1000, width], entry=ENTRY(), table_class="TABLE_CLASS",
        param_attr=paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Uniform(-0.05, 0.05)))

first = paddle.add_n([lookup(ids, "first", 1) for ids in slots]) + paddle.nn.Linear(2, 1)(dense)
factors = [lookup(ids, "factors", 4) for ids in slots]
second = 0.5 * paddle.sum(paddle.square(paddle.add_n(factors)) - paddle.add_n([paddle.square(f) for f in factors]),
                          axis=1, keepdim=True)
deep = paddle.concat(factors + [dense], axis=1)
for width in (16, 8):
    deep = F.relu(paddle.static.nn.fc(x=deep, size=width))
predict = F.sigmoid(first + second + paddle.static.nn.fc(x=deep, size=1))
loss = paddle.mean(F.log_loss(input=predict, label=paddle.cast(label, "float32")))
auc, _, stats = paddle.static.auc(input=paddle.concat([1 - predict, predict], axis=1), label=label, num_thresholds=2**12)
inputs = [label] + slots + [dense]
"""

CTR_DNN = """
import sys
import paddle
import paddle.distributed.fleet as fleet
import paddle.nn.functional as F
from paddle.distributed import ShowClickEntry

paddle.enable_static()
paddle.seed(3)
fleet.init(is_collective=False)
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
slots = [paddle.static.data(name="C%d" % i, shape=[None, 1], dtype="int64", lod_level=1) for i in range(3)]
dense = paddle.static.data(name="dense", shape=[None, 2], dtype="float32")
show = paddle.static.data(name="show", shape=[None, 1], dtype="int64")
click = paddle.static.data(name="click", shape=[None, 1], dtype="int64")
cvm = paddle.concat([paddle.cast(show, "float32"), paddle.cast(click, "float32")], axis=1)
pooled = []
for i, ids in enumerate(slots):
    rows = paddle.static.nn.sparse_embedding(input=ids, size=[1000, 2 + 5], param_attr=paddle.ParamAttr(name="embedding"),
                                             entry=ShowClickEntry("show", "click"))
    pooled.append(paddle.static.nn.continuous_value_model(paddle.static.nn.sequence_pool(rows, "sum"), cvm, True))
deep = paddle.concat(pooled + [dense], axis=1)
deep = F.relu(paddle.static.nn.fc(x=deep, size=16))
predict = F.sigmoid(paddle.static.nn.fc(x=deep, size=1))
loss = paddle.mean(F.log_loss(input=predict, label=paddle.cast(label, "float32")))
auc, _, stats = paddle.static.auc(input=paddle.concat([1 - predict, predict], axis=1), label=label, num_thresholds=2**12)
inputs = [label] + slots + [dense, show, click]
"""

TRAIN = """
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
STRATEGY_CODE
optimizer = fleet.distributed_optimizer(OPTIMIZER_CODE, strategy)
optimizer.minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
dataset = paddle.distributed.QueueDataset()
dataset.init(use_var=inputs, pipe_command="cat", batch_size=20, thread_num=1)
dataset.set_filelist(fleet.util.get_file_shard(["part%d" % i for i in range(4)]))
for epoch in range(EPOCHS):
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss, auc], fetch_info=["loss", "auc"],
                           print_period=20)
print("auc of all:", fleet.metrics.auc(stats[2], stats[3]), flush=True)
if fleet.is_first_worker():
    AFTER
fleet.barrier_worker()
fleet.stop_worker()
"""


def write(directory, script, many, optimizer="paddle.optimizer.Adagrad(0.1)", strategy="", epochs=6,
          after="pass"):
    """train.py and part0 … part3: the label is the sign of two dense features and of the parity of keys."""
    text = script + TRAIN.replace("EPOCHS", str(epochs)).replace("OPTIMIZER_CODE",
                                                                 optimizer).replace("AFTER", after)
    (directory / "train.py").write_text(text.replace("STRATEGY_CODE", strategy), encoding="utf-8")
    numbers = random.Random(5)
    for part in range(4):
        lines = []
        for _ in range(200):
            dense = [numbers.gauss(0, 1) for _ in range(2)]
            keys = [[numbers.randrange(40) for _ in range(numbers.randint(1, 3) if many else 1)]
                    for _ in range(3)]
            score = dense[0] - dense[1] + sum(0.8 if key[0] % 2 else -0.8 for key in keys)
            label = int(score > 0)
            words = [f"1 {label}", *(" ".join(map(str, [len(key), *key])) for key in keys),
                     f"2 {dense[0]:.3f} {dense[1]:.3f}"]
            lines.append(" ".join(words + ([f"1 1 1 {label}"] if many else [])))
        (directory / f"part{part}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def trained(start):
    """The job's last (loss, auc) of trainer 0, and its output."""
    from fleetrun_job import find_fleetrun

    job = start([find_fleetrun(), "--compat=paddle", "--server_num=1", "--trainer_num=2", "--python",
                 sys.executable, "train.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    everybodys = float(re.findall(r"auc of all: (.*)", output)[-1])
    loss, auc = re.findall(r"loss\[1\]:\[([^\]]*)\], auc\[1\]:\[([^\]]*)\]", output)[-1]
    assert everybodys > 0.7, output
    return float(loss), float(auc), output


OPTIMIZERS = {
    "sgd": "paddle.optimizer.SGD(0.2)",
    "momentum": "paddle.optimizer.Momentum(0.05, 0.8)",
    "nesterov":
    "paddle.optimizer.Momentum(0.05, 0.8, use_nesterov=True, weight_decay=paddle.regularizer.L2Decay(1e-5))",
    "adagrad": "paddle.optimizer.Adagrad(0.1, initial_accumulator_value=0.1)",
    "adam": "paddle.optimizer.Adam(0.02, lazy_mode=True)",
    "ftrl": "paddle.optimizer.Ftrl(0.2, l1=1e-4, l2=1e-4, initial_accumulator_value=0.1)",
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_deepfm_learns_with_each_optimizer(tmp_path, start, name):
    write(tmp_path, DEEPFM.replace("ENTRY_CODE",
                                   "CountFilterEntry(2)").replace("TABLE_CLASS", "MemorySparseTable"), False,
          OPTIMIZERS[name])
    loss, auc, output = trained(start)
    assert loss < 0.5 and auc > 0.75, output


@pytest.mark.parametrize("entry, table", [
    ("None", "MemorySparseTable"), ("CountFilterEntry(3)", "SSDSparseTable"),
    ("CountFilterEntry(3, bloom=True)", "MemorySparseTable"),
    ("ProbabilityEntry(0.9)", "MemorySparseTable"), ("ShowClickEntry('label', 'label')",
                                                     "MemorySparseTable")])
def test_deepfm_learns_with_each_entry(tmp_path, start, entry, table):
    write(tmp_path, DEEPFM.replace("ENTRY_CODE", entry).replace("TABLE_CLASS", table), False)
    loss, auc, output = trained(start)
    assert loss < 0.55 and auc > 0.75, output


ACCESSORS = {
    "parameters": """strategy.sparse_table_configs = {"embedding": {
        "table_parameters.embedding.accessor.accessor_class": "CtrCommonAccessor",
        "table_parameters.embedding.accessor.fea_dim": 7,
        "table_parameters.embedding.accessor.embedx_dim": 4,
        "table_parameters.embedding.accessor.embedx_threshold": 1.0}}""",
    "adagrad":
    """strategy.fleet_desc_configs = {"embedding": {"sparse_embedx_dim": 4, "sparse_embedx_threshold": 1}}""",
    "adam": """strategy.fleet_desc_configs = {"embedding": {
        "sparse_embedx_threshold": 0, "sparse_optimizer": "adam", "sparse_learning_rate": 0.02,
        "sparse_accessor_class": "DownpourCtrAccessor"}}""",
    "unit": """strategy.fleet_desc_configs = {"embedding": {
        "sparse_accessor_class": "DownpourUnitAccessor", "sparse_embedx_threshold": 0,
        "embed_sparse_optimizer": "naive", "embed_sparse_learning_rate": 0.002,
        "embedx_sparse_optimizer": "std_adagrad", "embedx_sparse_learning_rate": 0.02}}""",
}


@pytest.mark.parametrize("name", ACCESSORS)
def test_ctr_dnn_learns_with_each_accessor(tmp_path, start, name):
    write(tmp_path, CTR_DNN, True, strategy=ACCESSORS[name],
          after="print('rows', "
                "fleet.fleet.training.client.rows(fleet.fleet.training.plan.entries()[0].table.id), "
                "flush=True)")
    loss, auc, output = trained(start)
    assert loss < 0.55 and auc > 0.75, output
    assert "rows 40" in output


KEEP = """
    import os
    dataset.set_filelist(["part0"])
    def ask():
        exe.infer_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss])
        return exe.last_pass.fetch_means
    table = fleet.fleet.training.plan.entries()[0].table
    count = lambda: fleet.fleet.training.client.rows(table.id)
    said = ask()
    for mode in (0, 1, 2, 3):
        fleet.save_persistables(exe, os.path.abspath(f"model{mode}"), mode=mode)
    fleet.save_inference_model(exe, os.path.abspath("served"), [v.name for v in inputs], [predict])
    went = fleet.shrink()
    print("rows", count(), "went", went, flush=True)
    fleet.load_model(os.path.abspath("model0"), 0)
    assert ask() == said and count() == 40, (ask(), said, count())
    fleet.load_model(os.path.abspath("model2"), 2)
    print("base", count(), flush=True)
    fleet.load_inference_model(os.path.abspath("served"), 0)
    assert ask() == said, (ask(), said)
    fleet.save_dense_params(exe, "dense", paddle.static.global_scope(), paddle.static.default_main_program())
    print("kept", sorted(os.listdir("served")), os.listdir("dense"), flush=True)
"""


def test_a_job_keeps_its_model_in_every_mode(tmp_path, start):
    write(tmp_path, CTR_DNN, True, epochs=2, after=KEEP.strip(), strategy="""strategy.fleet_desc_configs = {"embedding": {
        "sparse_embedx_threshold": 0, "sparse_show_click_decay_rate": 0.01, "sparse_delete_threshold": 1.3,
        "sparse_base_threshold": 130.0}}""")
    _, _, output = trained(start)
    rows, went = map(int, re.search(r"rows (\d+) went (\d+)", output).groups())
    assert rows + went == 40 and went > 0, output
    assert 0 < int(re.search(r"base (\d+)", output)[1]) < 40, output
    served = ["dnn_plugin", "model.pdiparams", "model.pdmodel", "tables"]
    assert f"kept {served} ['dense.pdparams']" in output
