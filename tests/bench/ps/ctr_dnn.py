"""Trains a CTR network on a parameter server, asynchronously, and writes how long each pass took.

One script for both sides of `scripts/bench ps`: it says `import paddle` and runs under Paddle's fleetrun, and
under `fleetrun --compat=paddle`. Shape: 26 slots x 10 from one sparse table, 13 floats, layers as --hidden
has them, two classes. With --local no server: the same network, trained in one process.
"""

import argparse
import glob
import json
import os
import time

import paddle
import paddle.distributed.fleet as fleet

SLOTS, DENSE, WIDTH = 26, 13, 10


def build(hidden, on_servers):
    """The inputs, in the order of the text, and the loss."""
    dense = paddle.static.data(name="dense", shape=[None, DENSE], dtype="float32")
    ids = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64") for i in range(SLOTS)]
    label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
    table = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Uniform(-0.01, 0.01))
    embedding = paddle.static.nn.sparse_embedding
    if not on_servers:
        def embedding(**arguments):
            return paddle.static.nn.embedding(is_sparse=True, **arguments)
    rows = [paddle.reshape(embedding(input=one, size=[1000001, WIDTH], param_attr=table), [-1, WIDTH])
            for one in ids]
    layer = paddle.concat([dense, *rows], axis=1)
    width = DENSE + SLOTS * WIDTH
    for size in (*hidden, 2):
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
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--hidden", default="400,400,400", help="sizes of the layers")
    parser.add_argument("--local", action="store_true", help="without a server")
    arguments = parser.parse_args()

    paddle.enable_static()
    hidden = [int(size) for size in arguments.hidden.split(",")]
    if arguments.local:
        inputs, loss = build(hidden, False)
        paddle.optimizer.Adam(learning_rate=0.001, lazy_mode=True).minimize(loss)
    else:
        fleet.init(is_collective=False)
        inputs, loss = build(hidden, True)
        strategy = fleet.DistributedStrategy()
        strategy.a_sync = True
        fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.001), strategy).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            return
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    if not arguments.local:
        fleet.init_worker()
    report = arguments.report
    if not arguments.local and fleet.worker_num() > 1:
        report += f".{fleet.worker_index()}"
    seconds = []
    for _ in range(arguments.epochs):
        dataset = paddle.distributed.QueueDataset()
        dataset.init(use_var=inputs, pipe_command="cat", batch_size=arguments.batch_size, thread_num=1)
        dataset.set_filelist(sorted(glob.glob(os.path.join(arguments.data, "part-*"))))
        start = time.monotonic()
        executor.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss],
                                    fetch_info=["loss"],
                                    print_period=10)
        seconds.append(time.monotonic() - start)
    with open(report + ".part", "w") as file:
        json.dump(seconds, file)
    os.replace(report + ".part", report)
    if not arguments.local:
        fleet.stop_worker()


if __name__ == "__main__":
    main()
