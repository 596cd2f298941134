"""InMemoryDataset.global_shuffle in jobs: every example is on exactly one trainer,
the seed decides on which."""

import json
import random
import sys

import pytest

from flow import LIMIT

SCRIPT = """
import json
import sys
import numpy
import paddle
import paddle.distributed.fleet as fleet
import paddle.nn.functional as F
from fleetrun import _native

paddle.enable_static()
fleet.init(is_collective=False)
label = paddle.static.data("label", [None, 1], "int64")
number = paddle.static.data("number", [None, 1], "int64")
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
dense = paddle.static.data("dense", [None, 2], "float32")
pooled = paddle.static.nn.sequence_pool(paddle.static.nn.sparse_embedding(ids, [100, 4]), "sum")
predict = F.sigmoid(paddle.static.nn.fc(paddle.concat([pooled, dense], axis=1), size=1))
loss = paddle.mean(F.log_loss(predict, paddle.cast(label, "float32")))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.Adam(0.05), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
dataset = paddle.distributed.InMemoryDataset()
dataset.init(batch_size=20, thread_num=1, use_var=[label, number, ids, dense], shuffle_seed=int(sys.argv[1]))
if sys.argv[2] == "merge":
    dataset.set_merge_by_lineid(0)
elif sys.argv[2] == "ids":
    dataset.set_parse_ins_id(True)
dataset.set_filelist(fleet.util.get_file_shard([f"part{i}" for i in range(4)]))

def mine():
    source = dataset.native()
    _native.start_reading(source, True)
    found = []
    while (batch := _native.read_batch(source, 0)) is not None:
        found += numpy.asarray(batch[1][0]).tolist()
    return found

dataset.load_into_memory()
orders = [mine()]
sizes = [dataset.get_memory_data_size(fleet)]
for epoch in range(3):
    dataset.global_shuffle(fleet, thread_num=2)
    orders.append(mine())
    sizes.append(dataset.get_shuffle_data_size(fleet))
    exe.train_from_dataset(dataset=dataset, fetch_list=[loss], print_period=0)
with open(f"found{fleet.worker_index()}.json", "w") as file:
    json.dump([orders, sizes, exe.last_pass.fetch_means[0]], file)
fleet.stop_worker()
"""


def write(folder, prefix):
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    numbers = random.Random(5)
    for part in range(4):
        lines = []
        for i in range(part * 500, part * 500 + 500):
            keys = ([numbers.randrange(40) for _ in range(numbers.randint(1, 3))] if i < 700
                    or not prefix else [0])
            x, y = numbers.gauss(0, 1), numbers.gauss(0, 1)
            target = int(x - y + sum(0.8 if key % 2 else -0.8 for key in keys) > 0)
            lines.append(f"{prefix.format(i % 700)}1 {target} 1 {i} {len(keys)} {' '.join(map(str, keys))} 2 "
                         f"{x:.3f} {y:.3f}")
        (folder / f"part{part}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def found_in(folder):
    """What both trainers have written: their orders, the sizes that all agreed on, the last loss."""
    return [json.loads((folder / f"found{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture
def shuffled(tmp_path, start):
    """shuffled(seed, by): what each of two trainers, started by fleetrun,
    has found, in the order of their ranks."""
    from fleetrun_job import find_fleetrun

    def run(seed, by="random"):
        write(tmp_path, "" if by == "random" else "1 user{} ")
        job = start([find_fleetrun(), "--compat=paddle", "--server_num=1", "--trainer_num=2", "--python",
                     sys.executable,
                     "train.py", seed, by])
        output, _ = job.communicate(timeout=LIMIT)
        assert job.returncode == 0, output
        return found_in(tmp_path)

    return run


def test_every_example_is_on_one_trainer_and_the_seed_says_on_which(shuffled):
    found = shuffled(7)
    for epoch in range(4):
        together = found[0][0][epoch] + found[1][0][epoch]
        assert sorted(together) == list(range(2000))
    for orders, sizes, loss in found:
        assert sizes == [2000] * 4
        assert loss < 0.5
        assert all(800 < len(order) < 1200 for order in orders)
        assert len({tuple(order) for order in orders}) == 4
        assert 300 < sum(number < 1000 for number in orders[1]) < 700
    again = shuffled(7)
    assert [one[0] for one in again] == [one[0] for one in found]
    other = shuffled(8)
    assert [one[0][0] for one in other] == [one[0][0] for one in found]
    assert [one[0][1] for one in other] != [one[0][1] for one in found]


def test_examples_of_one_id_meet_and_are_merged(shuffled):
    found = shuffled(7, "merge")
    for orders, sizes, _ in found:
        assert sizes == [2000, 700, 700, 700]
        assert len({number % 700 for number in orders[1]}) == len(orders[1])
        assert sorted(orders[1]) == sorted(orders[3])
    assert sorted(number % 700 for one in found for number in one[0][1]) == list(range(700))


def test_trainers_started_by_hand_find_each_other(tmp_path, start, ports):
    write(tmp_path, "1 user{} ")
    port = ports(1)[0]
    common = {"PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{port}", "PADDLE_TRAINERS_NUM": 2}
    package = "import fleetrun; print(fleetrun.__path__[0] + '/_compat')"
    import subprocess

    from conftest import environment
    common["PYTHONPATH"] = subprocess.run([sys.executable, "-c", package], env=environment(), text=True,
                                          check=True,
                                          capture_output=True, timeout=LIMIT).stdout.strip()
    argv = [sys.executable, "train.py", "7", "ids"]
    server = start(argv, **common, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT=port)
    workers = [start(argv, **common, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=rank) for rank in range(2)]
    for worker in workers:
        output, _ = worker.communicate(timeout=LIMIT)
        assert worker.returncode == 0, output
    server.communicate(timeout=LIMIT)
    assert sorted(found_in(tmp_path)[0][0][1] + found_in(tmp_path)[1][0][1]) == list(range(2000))
