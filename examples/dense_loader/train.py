"""Pictures through a DataLoader: workers draw them as uint8, every trainer reads its share,
the network gets floats.

    fleetrun --server_num=1 --trainer_num=2 train.py
    python train.py                            # one process
    python train.py --to=torch                 # the same loader for PyTorch

Tells bars on the left from bars on the right, in noise. A data set of files does in __getitem__ what draw()
does here: read, decode, crop, and leave the bytes as bytes, a quarter of what floats would be.
"""
import argparse

import numpy as np

from fleetrun.io import DataLoader, Dataset, DistributedBatchSampler

SIZE, TRAINING, TEST, BATCH, EPOCHS = 32, 4000, 1000, 50, 4


class Bars(Dataset):
    """Picture i, always the same: [32, 32] uint8 noise with a brighter bar in it,
    and whether that is on the right."""

    def __init__(self, first, count):
        self.first, self.count = first, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return draw(np.random.default_rng(self.first + index))


def draw(random):
    picture = random.integers(0, 120, (SIZE, SIZE), np.uint8)
    row, column = random.integers(0, SIZE // 2), random.integers(0, SIZE - 2)
    picture[row:row + SIZE // 2, column:column + 2] += 130
    return picture, np.array([column >= SIZE // 2 - 1], "int64")


def loaders(**options):
    """Training in another order each epoch, the trainers taking turns; the test as it lies."""
    training, test = Bars(0, TRAINING), Bars(TRAINING, TEST)
    # num_replicas and rank come from the job; shuffled after the split,
    # a trainer would keep its pictures for all epochs.
    mine = DistributedBatchSampler(training, BATCH, shuffle=True, drop_last=True)
    return (DataLoader(training, batch_sampler=mine, num_workers=2, persistent_workers=True, **options),
            DataLoader(test, batch_size=500, num_workers=1, **options))


def train():
    """With fleetrun's engine."""
    import fleetrun as paddle
    import fleetrun.distributed.fleet as fleet

    paddle.enable_static()
    paddle.seed(1)
    fleet.init(is_collective=False)
    picture = paddle.static.data("picture", [None, SIZE * SIZE], "float32")
    right = paddle.static.data("right", [None, 1], "int64")
    hidden = paddle.nn.functional.relu(paddle.nn.Linear(SIZE * SIZE, 64)(picture))
    logits = paddle.nn.Linear(64, 2)(hidden)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, right))
    accuracy = paddle.static.accuracy(paddle.nn.functional.softmax(logits), right)
    test_program = paddle.static.default_main_program().clone(for_test=True)
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.002), fleet.DistributedStrategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()

    def step(batch, program, fetch):
        pictures, labels = batch
        floats = pictures.reshape(len(pictures), -1).astype("float32") / 255
        return exe.run(program, feed={"picture": floats, "right": labels}, fetch_list=[fetch])[0].item()

    training, test = loaders()
    for epoch in range(EPOCHS):
        losses = [step(batch, None, loss) for batch in training]
        print(
            f"trainer {fleet.worker_index()}, epoch {epoch + 1}: {len(losses)} batches, loss "
            f"{np.mean(losses):.4f}", flush=True)
    fleet.barrier_worker()
    print(f"test accuracy: {np.mean([step(batch, test_program, accuracy) for batch in test]):.3f}",
          flush=True)
    fleet.stop_worker()


def train_torch():
    """With PyTorch: its tensors lie in the memory that the workers filled."""
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)  # the other cores are the workers'
    model = torch.nn.Sequential(torch.nn.Linear(SIZE * SIZE, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.002)
    training, test = loaders(to="torch")
    for epoch in range(EPOCHS):
        losses = []
        for pictures, labels in training:
            loss = torch.nn.functional.cross_entropy(model(pictures.flatten(1).float() / 255), labels[:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: {len(losses)} batches, loss {np.mean(losses):.4f}")
    with torch.no_grad():
        hits = [(model(pictures.flatten(1).float() / 255).argmax(1) == labels[:, 0]).float().mean()
                for pictures, labels in test]
    print(f"test accuracy: {np.mean(hits):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", choices=["engine", "torch"], default="engine")
    train() if parser.parse_args().to == "engine" else train_torch()
