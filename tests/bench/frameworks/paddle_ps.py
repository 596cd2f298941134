"""Paddle 2.6.2 on a parameter server, asynchronously, as its quick start has it:
nothing in here knows fleetrun.

Every trainer reads a file of its own by QueueDataset; Paddle prints the loss every 100 batches.
"""

import os
import tempfile

import numpy as np
import paddle
import paddle.distributed.fleet as fleet

WIDTH, KEYS, BATCH, EPOCHS = 8, 200, 100, 5

paddle.enable_static()
fleet.init(is_collective=False)

ids = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64") for i in range(2)]
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
rows = [paddle.reshape(paddle.static.nn.sparse_embedding(input=one, size=[KEYS, WIDTH],
                                                         param_attr=paddle.ParamAttr(name="rows")),
                                                         [-1, WIDTH])
        for one in ids]
hidden = paddle.static.nn.fc(x=paddle.concat(rows, axis=1), size=32, activation="relu")
loss = paddle.mean(paddle.nn.functional.cross_entropy(paddle.static.nn.fc(x=hidden, size=2), label))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)


def examples(seed, count):
    """Two keys; the label says in which half the first one is."""
    keys = np.random.RandomState(seed).randint(0, KEYS, size=(count, 2))
    return keys, (keys[:, 0] < KEYS // 2).astype("int64")


def train():
    rank, size = fleet.worker_index(), fleet.worker_num()
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "part")
        with open(path, "w") as file:
            for (first, second), own in zip(*examples(rank, 20000)):
                file.write(f"1 {first} 1 {second} 1 {own}\n")
        dataset = paddle.distributed.QueueDataset()
        dataset.init(use_var=[*ids, label], pipe_command="cat", batch_size=BATCH, thread_num=1)
        dataset.set_filelist([path])
        for _ in range(EPOCHS):
            executor.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss],
                                        fetch_info=["loss"], print_period=100)
    print(f"trainer {rank} of {size}: done", flush=True)
    fleet.stop_worker()


if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    train()
