"""Trains the CTR network on data in memory, in one process, and writes how long each pass took.

One script for both sides of `scripts/bench engine`: run with Paddle, and with fleetrun's alias package
`paddle` on PYTHONPATH. 26 slots x 10 from one table, 13 floats, layers of 400 x 400 x 400, two classes, SGD.
"""

import argparse
import glob
import json
import os
import time

import paddle

SLOTS, DENSE, WIDTH, ROWS = 26, 13, 10, 1_000_001


def build():
    """The inputs, in the order of the text, and the loss."""
    dense = paddle.static.data(name="dense", shape=[None, DENSE], dtype="float32")
    ids = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64") for i in range(SLOTS)]
    label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
    table = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Uniform(-0.01, 0.01))
    rows = [paddle.static.nn.embedding(input=one, size=[ROWS, WIDTH], is_sparse=True, param_attr=table)
            for one in ids]
    layer = paddle.concat([*(paddle.reshape(one, [-1, WIDTH]) for one in rows), dense], axis=1)
    width = DENSE + SLOTS * WIDTH
    for size in (400, 400, 400, 2):
        spread = paddle.nn.initializer.Normal(std=width ** -0.5)
        layer = paddle.nn.Linear(width, size, weight_attr=paddle.ParamAttr(initializer=spread))(layer)
        if size != 2:
            layer = paddle.nn.functional.relu(layer)
        width = size
    return [dense, *ids, label], paddle.mean(paddle.nn.functional.cross_entropy(layer, label))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of MultiSlot files")
    parser.add_argument("--report", required=True, help="JSON file to write: seconds of each pass")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    paddle.enable_static()
    inputs, loss = build()
    paddle.optimizer.SGD(learning_rate=0.01).minimize(loss)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(use_var=inputs, pipe_command="cat", batch_size=arguments.batch_size,
                 thread_num=arguments.threads)
    dataset.set_filelist(sorted(glob.glob(os.path.join(arguments.data, "part-*"))))
    dataset.load_into_memory()
    seconds = []
    for _ in range(arguments.epochs):
        start = time.monotonic()
        executor.train_from_dataset(paddle.static.default_main_program(), dataset, thread=arguments.threads)
        seconds.append(time.monotonic() - start)
    with open(arguments.report + ".part", "w") as file:
        json.dump(seconds, file)
    os.replace(arguments.report + ".part", arguments.report)


if __name__ == "__main__":
    main()
