#!/usr/bin/env python3
"""Paddle 2.6.2 trains and saves in all four modes; what it saved, loaded and written again, must be the same
numbers, and Paddle must load what was written and save the same again.

  tests/oracles/paddle_checkpoint.py --paddle=VENV --rewrite=build/tests/integration/ps/ps_paddle_rewrite

VENV is a virtual environment with paddlepaddle 2.6.2.
Prints `equal` with the counts and exits 0; exits 77 without Paddle.
"""

import argparse
import glob
import gzip
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

WIDTH, DENSE = 8, 16 * 32 + 32 + 32 * 2 + 2
SCRIPT = f'''
import os, sys, tempfile
import numpy, paddle
import paddle.distributed.fleet as fleet

open(os.path.join(os.path.dirname(__file__), f"pid.{{os.getpid()}}"), "w").close()
paddle.enable_static()
fleet.init(is_collective=False)
ids = [paddle.static.data(name=f"C{{i}}", shape=[None, 1], dtype="int64") for i in range(2)]
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
rows = [paddle.reshape(paddle.static.nn.sparse_embedding(input=one, size=[200, {WIDTH}],
                                                         param_attr=paddle.ParamAttr(name="rows")), [-1, {WIDTH}])
        for one in ids]
hidden = paddle.static.nn.fc(x=paddle.concat(rows, axis=1), size=32, activation="relu")
loss = paddle.mean(paddle.nn.functional.cross_entropy(paddle.static.nn.fc(x=hidden, size=2), label))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
executor = paddle.static.Executor(paddle.CPUPlace())
executor.run(paddle.static.default_startup_program())
fleet.init_worker()
what, source, to = sys.argv[1:]
if what == "load":
    fleet.load_model(source, mode=0)
    fleet.save_persistables(executor, to, None, mode=0)
else:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "part")
        keys = numpy.random.RandomState(1).randint(0, 200, size=(2000, 2))
        with open(path, "w") as file:
            file.writelines(f"1 {{a}} 1 {{b}} 1 {{int(a < 100)}}\\n" for a, b in keys)
        dataset = paddle.distributed.QueueDataset()
        dataset.init(use_var=[*ids, label], pipe_command="cat", batch_size=100, thread_num=1)
        dataset.set_filelist([path])
        executor.train_from_dataset(paddle.static.default_main_program(), dataset)
    fleet.barrier_worker()
    for mode in (0, 1, 2, 3):
        fleet.save_persistables(executor, os.path.join(to, str(mode)), None, mode)
open(to + ".done", "w").close()
fleet.stop_worker()
'''


def numbers(text):
    """The numbers of a line as float32, which is what both sides keep."""
    return [struct.unpack("f", struct.pack("f", float(word)))[0] for word in text]


def lines_of(folder):
    for path in sorted(glob.glob(os.path.join(folder, "part-*"))):
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="ascii") as file:
            yield from (line.split() for line in file if line.strip())


def contents(directory):
    """{key: numbers} of the sparse table, and the dense values with their state."""
    rows = {int(line[0]): numbers(line[1:]) for line in lines_of(os.path.join(directory, "000"))}
    return rows, [numbers(line) for line in lines_of(os.path.join(directory, "001"))]


def run_paddle(venv, folder, *arguments, servers):
    """Runs the script until it has said that it is done: Paddle's job does not always end by itself."""
    script = pathlib.Path(folder) / "job.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = pathlib.Path(arguments[-1] + ".done")
    environment = {**os.environ, "PATH": f"{venv}/bin:{os.environ['PATH']}"}
    with subprocess.Popen([f"{venv}/bin/fleetrun", f"--server_num={servers}", "--trainer_num=1",
                           f"--log_dir={folder}/log", str(script), *arguments], env=environment, cwd=folder,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        deadline = time.monotonic() + 300
        while not done.exists() and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        job.kill()
    # Paddle's launcher leaves its processes behind: each has written its number.
    for number in pathlib.Path(folder).glob("pid.*"):
        try:
            os.kill(int(number.suffix[1:]), signal.SIGKILL)
        except ProcessLookupError:
            pass
        number.unlink()
    if not done.exists():
        raise SystemExit(f"Paddle's job did not {arguments[0]}")


def close(a, b):
    """Paddle writes six digits."""
    return len(a) == len(b) and all(abs(x - y) <= 1e-5 * max(abs(x), abs(y), 1e-30) for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paddle", required=True, help="virtual environment with Paddle 2.6.2")
    parser.add_argument("--rewrite", required=True, help="ps_paddle_rewrite of the build folder")
    arguments = parser.parse_args()
    if not os.access(f"{arguments.paddle}/bin/fleetrun", os.X_OK):
        print(f"skipped: no Paddle in {arguments.paddle}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run_paddle(arguments.paddle, folder, "train", "-", f"{folder}/theirs", servers=2)
        for mode in "0123":
            theirs, ours = f"{folder}/theirs/{mode}", f"{folder}/ours/{mode}"
            subprocess.run([arguments.rewrite, theirs, ours, str(WIDTH), str(DENSE)], check=True)
            rows, dense = contents(theirs)
            if not rows or len(dense) != DENSE:
                print(f"Paddle saved {len(rows)} rows and {len(dense)} dense values")
                return 1
            if contents(ours) != (rows, dense):
                print(f"mode {mode}: what was written again differs")
                return 1
            print(f"mode {mode}: {len(rows)} rows and {len(dense)} dense values are equal")
        run_paddle(arguments.paddle, folder, "load", f"{folder}/ours/0", f"{folder}/back", servers=1)
        rows, dense = contents(f"{folder}/ours/0")
        back, dense_back = contents(f"{folder}/back")
        if rows.keys() != back.keys() or not all(close(rows[key], back[key]) for key in rows):
            print(f"Paddle loaded {len(back)} rows of what was written for it, {len(rows)} were; or others")
            return 1
        if len(dense_back) != DENSE or not all(close(a, b) for a, b in zip(dense, dense_back)):
            print("Paddle loaded other dense values than were written for it")
            return 1
        print("equal: Paddle loads what was written for it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
