"""Reads MultiSlot files with a dataset under the smallest program, a mean,
and writes how long it took and what it held.

One script for both sides of `scripts/bench dataset`: run with Paddle, and with fleetrun's alias package
`paddle` on PYTHONPATH. The report is JSON: "seconds" of each pass (queue) or load (memory), "shuffle"
seconds, "added" bytes of resident memory by the first load, above the size before it.
"""

import argparse
import glob
import json
import os
import time

import paddle


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


def queue(executor, make, arguments):
    seconds = []
    for _ in range(arguments.epochs):
        dataset = make(paddle.distributed.QueueDataset())
        start = time.monotonic()
        executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
        seconds.append(time.monotonic() - start)
    return {"seconds": seconds}


def memory(executor, make, arguments):
    found = {"seconds": [], "shuffle": [], "added": None}
    for _ in range(arguments.epochs):
        # Paddle 3.3.1's cannot load again after release_memory(): SIGSEGV
        dataset = make(paddle.distributed.InMemoryDataset())
        before, start = resident(), time.monotonic()
        dataset.load_into_memory()
        found["seconds"].append(time.monotonic() - start)
        found["added"] = found["added"] or resident() - before
        start = time.monotonic()
        dataset.local_shuffle()
        found["shuffle"].append(time.monotonic() - start)
        dataset.release_memory()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of MultiSlot files")
    parser.add_argument("--report", required=True, help="JSON file to write")
    parser.add_argument("--what", choices=["queue", "memory"], default="queue")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pipe-command", default="cat")
    arguments = parser.parse_args()

    paddle.enable_static()
    dense = paddle.static.data(name="dense", shape=[None, 13], dtype="float32")
    ids = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64", lod_level=1) for i in range(26)]
    label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
    paddle.mean(dense)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())

    def make(dataset):
        dataset.init(use_var=[dense, *ids, label], pipe_command=arguments.pipe_command, batch_size=1000,
                     thread_num=arguments.threads)
        dataset.set_filelist(sorted(glob.glob(os.path.join(arguments.data, "part-*"))))
        return dataset

    found = (queue if arguments.what == "queue" else memory)(executor, make, arguments)
    with open(arguments.report, "w") as report:
        json.dump(found, report)


if __name__ == "__main__":
    main()
