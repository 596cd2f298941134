"""QueueDataset over columnar files: the same training as over the text that they were made of."""

import subprocess
import sys

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

TRAIN = """
import sys
import fleetrun as paddle

paddle.enable_static()
paddle.seed(1)
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
x = paddle.static.data(name="x", shape=[None, 2], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
rows = paddle.static.nn.sparse_embedding(ids, [100, 4])
pooled = paddle.static.nn.sequence_pool(rows, "sum")
out = paddle.nn.Linear(6, 1)(paddle.concat([pooled, x], axis=1))
loss = paddle.mean((out - y) * (out - y))
paddle.optimizer.SGD(learning_rate=0.05).minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
dataset = paddle.distributed.QueueDataset()
dataset.init(batch_size=16, thread_num=1, use_var=[y, ids, x] if sys.argv[1] == "other" else [ids, x, y])
try:
    dataset.set_filelist(sys.argv[2:])
    for _ in range(3):
        exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], print_period=0)
        print("mean loss", exe.last_pass.examples, exe.last_pass.fetch_means[0].hex())
except paddle.Error as error:
    print("refused:", error)
"""


def run(directory, order, *files):
    return subprocess.run([sys.executable, "train.py", order, *files], cwd=directory, env=environment(),
                          capture_output=True,
                          text=True, timeout=LIMIT)


def losses(directory, order, *files):
    done = run(directory, order, *files)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith("mean loss 200 ")]
    assert len(set(found)) == 3, done.stdout
    return found


def test_training_is_the_same_and_slots_are_found_by_name(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    for part in range(2):
        (tmp_path / f"part-{part}").write_text("".join(
            f"{1 + row % 3} {' '.join(str((row * 7 + i * 13 + part) % 100) for i in range(1 + row % 3))} 2 "
            f"0.{row} 0.5 1 {row % 2}\n"
            for row in range(100)))
    subprocess.run([find_fleetrun(), "data", "convert", "part-0", "part-1",
                    "--slots=ids:int64,x:float32[2],y:float32[1]",
                    "--out=columns"], cwd=tmp_path, env=environment(), check=True, timeout=LIMIT)
    text = losses(tmp_path, "same", "part-0", "part-1")
    columns = ["columns/part-0.frc", "columns/part-1.frc"]
    assert losses(tmp_path, "same", *columns) == text
    assert losses(tmp_path, "other", *columns) == text

    mixed = run(tmp_path, "same", "part-0", *columns)
    assert "part-0 is not a columnar file, and others of the 3 files are" in mixed.stdout + mixed.stderr
    damaged = tmp_path / columns[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    cut = run(tmp_path, "same", *columns)
    assert "is half a columnar file" in cut.stdout + cut.stderr
