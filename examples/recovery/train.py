"""A training that goes on in its processes when one of them is lost.

    fleetrun --nproc_per_node=4 --on_failure=replace --max_restart=3 train.py

Kill a trainer (kill -9 PID) while it runs: another process takes its place within a second, and the losses
are those of a training in which nothing happens. Where nobody is left to go on, all start again with the
newest checkpoint. Without --on_failure, and with torchrun, the same script trains as usual.
"""
import argparse
import hashlib
import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import fleetrun.distributed.fleet as fleet
from fleetrun.torch import recoverable

CHECKPOINT = "checkpoint.pt"


def train(epochs, pace):
    fleet.init(is_collective=True)  # who stands by waits here
    rank, size = fleet.worker_index(), fleet.worker_num()
    x = torch.linspace(-3, 3, 1024)[:, None]
    examples = TensorDataset(x, torch.sin(x))
    sampler = DistributedSampler(examples, size, rank, seed=1)
    loader = DataLoader(examples, batch_size=32, sampler=sampler)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    first = 0
    if os.path.exists(CHECKPOINT):
        first, state = torch.load(CHECKPOINT)
        model.load_state_dict(state)
    model = fleet.distributed_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run = recoverable(model, optimizer)

    def step(inputs, targets):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    for epoch in run.epochs(epochs, first):
        sampler.set_epoch(epoch)
        for inputs, targets in run.batches(loader):
            time.sleep(pace)  # as a larger model would take
            loss = run.step(step, inputs, targets)
        if rank == 0:
            torch.save((epoch + 1, model.state_dict()), CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
            print(f"epoch {epoch}: loss {loss:.6f}", flush=True)
    values = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print(f"trainer {rank}: parameters {hashlib.sha256(values).hexdigest()[:16]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pace", type=float, default=0.1, help="seconds that a batch takes longer (0.1)")
    arguments = parser.parse_args()
    train(arguments.epochs, arguments.pace)
