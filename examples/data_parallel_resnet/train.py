"""Data parallel training of a residual network: every process has the model and a part of the pictures.

    fleetrun --nproc_per_node=2 train.py                       # a small network on real digits, on CPUs
    fleetrun --nproc_per_node=2 train.py --model=resnet50      # ResNet-50 on random pictures
    python train.py                                            # one process

See log/workerlog.0 and log/workerlog.1.
"""
import argparse
import hashlib

import numpy as np
import torch

import fleetrun.distributed.fleet as fleet
from fleetrun.distributed import get_rank
from fleetrun.distributed.parallel import LinearWarmup, scaled_learning_rate
from fleetrun.io import DataLoader, Dataset, DistributedBatchSampler
from digits import load_digits
from resnet import resnet50, small_resnet

MOMENTUM, DECAY = 0.9, 1e-4


class Digits(Dataset):
    """1,797 handwritten digits of 8 × 8 (scikit-learn's), each fifth of them for the test."""

    classes = 10

    def __init__(self, test):
        pictures, labels, is_test = load_digits()
        self.pictures, self.labels = pictures[is_test == test].reshape(-1, 1, 8, 8), labels[is_test == test]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.pictures[index], self.labels[index]


class RandomPictures(Dataset):
    """Noise of 3 × 224 × 224 and a class of 102."""

    classes = 102

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        random = np.random.default_rng(index)
        return random.random((3, 224, 224), dtype="float32"), random.integers(0, self.classes)


def accuracy(out, label, best):
    """The share of rows whose label is among the `best` highest."""
    return (out.topk(best).indices == label.unsqueeze(1)).any(1).float().mean().item()


def tensors(batch):
    return torch.from_numpy(np.ascontiguousarray(batch[0])), torch.from_numpy(
        np.asarray(batch[1], "int64")).reshape(-1)


def train(arguments):
    fleet.init(is_collective=True)
    torch.manual_seed(1)
    small = arguments.model == "small"
    dataset = (Digits(test=False) if small
               else RandomPictures(arguments.batches * arguments.batch_size * fleet.worker_num()))
    model = (small_resnet if small else resnet50)(dataset.classes)
    # Document 001, section 4.1: as many times the rate as there are processes, reached step by step.
    rate = scaled_learning_rate(arguments.rate)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM, weight_decay=DECAY)
    schedule = LinearWarmup(optimizer, warmup_steps=20)
    model = fleet.distributed_model(model)
    optimizer = fleet.distributed_optimizer(optimizer)
    sampler = DistributedBatchSampler(dataset, rank=get_rank(), batch_size=arguments.batch_size, shuffle=True,
                                      drop_last=True)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=0)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for number, batch in enumerate(loader):
            picture, label = tensors(batch)
            out = model(picture)
            loss = torch.nn.functional.cross_entropy(out, label)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            if number % 5 == 0:
                print("[Epoch %d, batch %d] loss: %.5f, acc1: %.5f, acc5: %.5f"
                      % (epoch, number, loss, accuracy(out, label, 1), accuracy(out, label, 5)), flush=True)
    return model


def report(model, arguments):
    digest = hashlib.sha256(b"".join(value.detach().numpy().tobytes()
                                     for value in model.parameters())).hexdigest()
    print(f"trainer {get_rank()}: parameters {digest[:16]}", flush=True)
    if arguments.model == "small" and fleet.is_first_worker():
        test = Digits(test=True)
        model.eval()
        with torch.no_grad():
            out = model(torch.from_numpy(test.pictures))
        print("test accuracy: %.4f of %d digits" % (accuracy(out, torch.from_numpy(test.labels), 1),
                                                    len(test)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("small", "resnet50"), default="small")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--batches", type=int, default=100, help="of an epoch, with resnet50")
    parser.add_argument("--rate", type=float, default=0.05, help="of one process")
    given = parser.parse_args()
    report(train(given), given)
