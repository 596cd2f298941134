"""Jobs in sync mode whose trainers are killed and started again alone: every example counts once."""

import json
from types import SimpleNamespace

import pytest

import fleetrun

from killed_trainers import LIFE, run

TRAIN = """
import json, os, signal, sys
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

PLAN, DATASET, SCRIPT, STEPS = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], 6
paddle.enable_static()
paddle.seed(1)
if SCRIPT == "leaves out":
    os.environ["FLEETRUN_PS_WAIT_WARNING"] = "1"
fleet.init(is_collective=False)
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
row = x if DATASET == "steps" else paddle.static.nn.sequence_pool(paddle.static.nn.sparse_embedding(ids, [50, 4]), "sum")
out = paddle.nn.Linear(8, 1)(paddle.concat([row, x], axis=1))
loss = paddle.mean((out - y) * (out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
""" + LIFE + """seen = []
if DATASET == "steps":
    for now in (1, 2):
        for step in range(1, STEPS + 1):
            random = numpy.random.RandomState(100 * now + 10 * rank + step)
            feed = {"x": random.rand(4, 4).astype("float32"), "y": random.rand(4, 1).astype("float32")}
            exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[loss])
            print(f"batch: [{step}]", flush=True)
        seen.append(fleet.util.all_gather(now * 10 + rank))
else:
    dataset = getattr(paddle.distributed, DATASET)()
    dataset.init(batch_size=4, thread_num=2, use_var=[ids, x, y], pipe_command=f"{sys.executable} reader.py")
    dataset.set_filelist(fleet.util.get_file_shard([f"part-{i}" for i in range(6)]))
    if DATASET == "InMemoryDataset":
        dataset.load_into_memory()
    for now in (1, 2):
        if SCRIPT == "leaves out" and (rank, lives, now) == (1, 1, 1):
            continue
        if SCRIPT == "resumes":
            dataset.set_filelist(fleet.util.get_file_shard([f"part-{i + 3 * (now - 1)}" for i in range(3)]))
            if os.path.exists(f"done-{rank}-{now}"):
                continue
        if DATASET == "InMemoryDataset":
            dataset.local_shuffle()
        exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], fetch_info=["loss"],
                               print_period=1)
        seen.append(fleet.util.all_gather(now * 10 + rank))
        open(f"done-{rank}-{now}", "w").close()
fleet.barrier_worker()
if fleet.is_first_worker():
    fleet.save_persistables(exe, os.path.abspath("model"))
fleet.barrier_worker()
with open(f"seen-{rank}", "w") as file:
    json.dump(seen, file)
fleet.stop_worker()
"""
READER = """
import sys
for line in sys.stdin:
    print(line.strip())
"""


def write_data(directory):
    """Six files with different numbers of examples, of which no number fills its batches."""
    for part in range(6):
        with open(directory / f"part-{part}", "w") as file:
            for i in range(9 + 5 * part):
                many = 1 + (i + part) % 3
                ids = " ".join(str((7 * i + 11 * part + j) % 50) for j in range(many))
                values = " ".join(f"{((i * 13 + part * 5 + j * 3) % 17) / 17:.6f}" for j in range(4))
                file.write(f"{many} {ids} 4 {values} 1 {(i % 5) / 5:.1f}\n")


def train(directory, dataset, plan, *flags, script="repeats", lives=None):
    """What the trainers saw, the files of the saved model, and what the job said. A script that "resumes" has
    files of its own for each pass, and leaves out those that it has behind it; one that "leaves out" does so
    with the first pass of two over the same files when it is started again alone."""
    directory.mkdir()
    write_data(directory)
    (directory / "reader.py").write_text(READER)
    arguments = [json.dumps(plan), dataset, script]
    text = run(directory, TRAIN, 1, plan, arguments, "--restart=trainer=process", *flags, lives=lives)
    seen = [json.loads((directory / f"seen-{rank}").read_text()) for rank in range(2)]
    model = {path.name: path.read_bytes() for path in sorted(directory.glob("model/**/*")) if path.is_file()}
    assert model
    return seen, model, text


@pytest.mark.parametrize("dataset", ["QueueDataset", "InMemoryDataset", "steps"])
def test_a_trainer_that_is_killed_in_the_first_and_in_the_second_pass_changes_nothing(tmp_path, dataset):
    calm_seen, calm, _ = train(tmp_path / "calm", dataset, [])
    for name, plan in (("once", [[1, 3], [2, 1]]), ("again", [[2, 5], [2, 6]])):
        seen, killed, said = train(tmp_path / name, dataset, plan)
        assert seen == calm_seen, said
        assert killed == calm, said
        if dataset != "steps":
            assert "this trainer was started again: the pass was done before" in said
            assert "batches that were done before" in said


def test_a_script_that_leaves_out_the_pass_that_it_has_behind_it_goes_on_in_the_next(tmp_path):
    calm_seen, calm, _ = train(tmp_path / "calm", "QueueDataset", [], script="resumes")
    seen, killed, said = train(tmp_path / "killed", "QueueDataset", [[2, 1], [2, 2]], script="resumes")
    assert seen[0] == calm_seen[0] and seen[1] == calm_seen[1][1:], said
    assert killed == calm, said
    assert "batches that were done before" in said


def test_a_script_that_leaves_out_a_pass_over_the_same_files_is_refused_and_all_begin_anew(tmp_path):
    calm_seen, calm, _ = train(tmp_path / "calm", "QueueDataset", [], script="leaves out")
    seen, killed, said = train(tmp_path / "killed", "QueueDataset", [[2, 1]], script="leaves out", lives=3)
    assert seen == calm_seen and killed == calm, said
    assert "it was started again alone, and cannot go on without the others" in said
    logs = "".join(path.read_text() for path in (tmp_path / "killed").rglob("workerlog.1*"))
    assert "trainer 1 cannot go on alone: it was started again, and now no trainer goes on" in logs


def test_a_global_shuffle_that_the_other_trainers_have_behind_them_is_refused():
    fleet = SimpleNamespace(worker_num=lambda: 2, worker_index=lambda: 1,
                            util=SimpleNamespace(is_catching_up=lambda: True))
    with pytest.raises(RuntimeError, match="trainer 1 cannot go on alone: the others have dealt"):
        fleetrun.distributed.InMemoryDataset().global_shuffle(fleet)
