"""Jobs whose trainers wait for nobody: one is killed and started again alone, and every example counts once.

The model counts: rows begin at 0, each occurrence of an id has the gradient 1 whatever the values are, and
the learning rate is 1, so that a row ends at minus the number of times its id was trained. A dense parameter
is added to each element of the rows, so it ends at minus the number of these.
"""

import json
import os

import pytest

from killed_trainers import LIFE, run

TRAIN = """
import json, os, signal, sys
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

MODE, DATASET, DAYS, PLAN = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
paddle.enable_static()
fleet.init(is_collective=False)
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64")
attr = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(0.0))
rows = paddle.static.nn.sparse_embedding(ids, [300, 4], param_attr=attr)
weight = paddle.static.create_parameter(
    [1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
loss = paddle.sum(rows if MODE == "geo" else rows + weight)
if MODE == "auc":
    share = paddle.nn.functional.sigmoid(paddle.sum(rows, axis=1, keepdim=True))
    paddle.static.auc(paddle.concat([1 - share, share], axis=1), ids - ids)
test = paddle.static.default_main_program().clone(for_test=True)
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
if MODE == "merged":
    strategy.a_sync_configs = {"max_merge_var_num": 4}
if MODE == "geo":
    strategy.a_sync_configs = {"k_steps": 3}
rate = 1.0
if MODE == "decays":
    from fleetrun.fluid import layers
    rate = layers.exponential_decay(1.0, decay_steps=10, decay_rate=0.5)
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=rate), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
""" + LIFE + """for now, files in enumerate(DAYS, 1):
    if MODE == "resumes" and os.path.exists(f"done-{rank}-{now}"):
        continue
    if MODE == "other data" and lives > 0:
        files = files[:-1]
    if MODE == "loop":
        for batch in range(1, 5):
            exe.run(feed={"ids": numpy.arange(8).reshape(-1, 1)}, fetch_list=[loss])
            print(f"batch: [{batch}]")
        continue
    dataset = getattr(paddle.distributed, DATASET)()
    dataset.init(batch_size=4, thread_num=2, use_var=[ids], pipe_command="cat")
    if MODE == "shared":
        if rank == 0:
            open(f"took-{now}").read()
        for file in fleet.util.get_dynamic_files(files):
            if rank == 1 and not os.path.exists(f"told-{now}"):
                open(f"told-{now}", "w").close()
                open(f"took-{now}", "w").close()
            dataset.set_filelist([file])
            exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss],
                                   fetch_info=["loss"], print_period=1)
        fleet.barrier_worker()
        continue
    dataset.set_filelist(fleet.util.get_file_shard(files))
    if DATASET == "InMemoryDataset":
        dataset.load_into_memory()
        dataset.local_shuffle()
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], fetch_info=["loss"],
                           print_period=1)
    open(f"done-{rank}-{now}", "w").close()
    fleet.barrier_worker()
if rank == 0:
    fetched = [rows] if MODE == "geo" else [rows, weight]
    counts, *dense = exe.run(test, feed={"ids": numpy.arange(300).reshape(-1, 1)}, fetch_list=fetched)
    with open("counts", "w") as file:
        json.dump((-counts.reshape(300, 4)[:, 0]).tolist(), file)
    if MODE in ("async", "merged", "shared", "resumes"):
        assert dense[0] == 4 * counts.reshape(300, 4)[:, 0].sum(), (dense, counts)
fleet.barrier_worker()
fleet.stop_worker()
"""


def write_data(directory, each_once):
    """Six files with different numbers of examples; returns how often each id is there."""
    counts, written = [0.0] * 300, 0
    for part in range(6):
        with open(directory / f"part-{part}", "w") as file:
            for i in range(29 + 7 * part):
                key = written if each_once else (7 * i + 11 * part) % 50
                counts[key] += 1
                written += 1
                file.write(f"1 {key}\n")
    return counts


def train(directory, mode, dataset, days, plan):
    counts = write_data(directory, each_once=mode == "geo")
    text = run(directory, TRAIN, 2, plan, [mode, dataset, json.dumps(days), json.dumps(plan)])
    return counts, json.loads((directory / "counts").read_text()), text


ALL = [f"part-{i}" for i in range(6)]


@pytest.mark.parametrize(("mode", "dataset"), [("async", "QueueDataset"), ("merged", "InMemoryDataset")])
def test_every_example_counts_once_though_its_trainer_is_killed(tmp_path, mode, dataset):
    wanted, counts, said = train(tmp_path, mode, dataset, [ALL, ALL], [[1, 3], [2, 2]])
    assert counts == [2 * count for count in wanted], said
    assert "batches that were done before" in said
    # The pass that was done as a whole; where there is one trainer it would end the job.
    assert "gave no example" not in said


def test_so_it_does_where_trainers_exchange_differences(tmp_path):
    wanted, counts, said = train(tmp_path, "geo", "QueueDataset", [ALL], [[1, 8], [1, 14]])
    # Each of the two trainers sends half of what it changes.
    assert counts == [count / 2 for count in wanted], said
    assert "batches that were done before" in said


def test_so_it_does_where_trainers_share_files(tmp_path):
    for number in (1, 2):
        os.mkfifo(tmp_path / f"took-{number}")
    wanted, counts, said = train(tmp_path, "shared", "QueueDataset", [ALL, ALL], [[1, 3], [2, 3]])
    assert counts == [2 * count for count in wanted], said
    assert "batches that were done before" in said


FORGOTTEN = "the servers do not know how far the process before it was"
BEHIND = "the schedule of its learning rate counts steps: it has not counted those that were done before"
LEFT = "this trainer was started again in the middle of an epoch, and goes on with other data"
UNCOUNTED = "fleet.metrics.auc over all trainers, leave out its batches that were done before"


def test_what_is_not_as_without_a_restart_is_said_once(tmp_path):
    for mode, wanted in (("loop", FORGOTTEN), ("other data", LEFT), ("decays", BEHIND), ("auc", UNCOUNTED)):
        (tmp_path / mode).mkdir()
        _, _, said = train(tmp_path / mode, mode, "QueueDataset", [ALL], [[1, 2]])
        log = (tmp_path / mode / "logs" / "workerlog.1").read_text()
        warnings = (FORGOTTEN, LEFT, BEHIND, UNCOUNTED)
        assert [log.count(what) for what in warnings] == [int(what == wanted) for what in warnings], said


def test_a_script_that_begins_with_the_day_that_was_cut_goes_on_there(tmp_path):
    days = [ALL[:2], ALL[2:4], ALL[4:]]
    wanted, counts, said = train(tmp_path, "resumes", "QueueDataset", days, [[2, 3], [3, 2]])
    assert counts == wanted, said
    assert "batches that were done before" in said
