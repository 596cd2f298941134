"""Reads MultiSlot files through QueueDataset under the smallest program, a mean, and writes how long each pass took.

One script for both sides of `scripts/bench dataset`: run with Paddle, and with fleetrun's alias package `paddle` on
PYTHONPATH.
"""

import argparse
import glob
import json
import os
import time

import paddle


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of MultiSlot files")
    parser.add_argument("--report", required=True, help="JSON file to write: seconds of each pass")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pipe-command", default="cat")
    arguments = parser.parse_args()

    paddle.enable_static()
    dense = paddle.static.data(name="dense", shape=[None, 13], dtype="float32")
    ids = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64", lod_level=1) for i in range(26)]
    label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
    paddle.mean(dense)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    seconds = []
    for _ in range(arguments.epochs):
        dataset = paddle.distributed.QueueDataset()
        dataset.init(use_var=[dense, *ids, label], pipe_command=arguments.pipe_command, batch_size=1000, thread_num=1)
        dataset.set_filelist(sorted(glob.glob(os.path.join(arguments.data, "part-*"))))
        start = time.monotonic()
        executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
        seconds.append(time.monotonic() - start)
    with open(arguments.report, "w") as report:
        json.dump(seconds, report)


if __name__ == "__main__":
    main()
