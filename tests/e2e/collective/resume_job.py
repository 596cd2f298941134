"""A training that keeps a checkpoint after each epoch, and one when it is asked to end (SIGTERM), for
test_resume.py.

environment: recovery_faults.py; a file ready.RANK in OUT says that the rank has taken a step
"""

import os
import pathlib
import signal
import sys

import torch

import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet
from fleetrun.torch import recoverable
from recovery_faults import BATCHES, EPOCHS, OUT, Faults

CHECKPOINT = pathlib.Path(OUT, "checkpoint.pt")
is_asked = torch.zeros(1)
signal.signal(signal.SIGTERM, lambda *_: is_asked.fill_(1))

torch.set_num_threads(1)
fleet.init(is_collective=True)
rank = fleet.worker_index()
faults = Faults(rank)
torch.manual_seed(3)
model = fleet.distributed_model(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
first = batch = 0
if CHECKPOINT.exists():
    first, batch, parameters, moments = torch.load(CHECKPOINT)
    model.load_state_dict(parameters)
    optimizer.load_state_dict(moments)
run = recoverable(model, optimizer)


def train(epoch, number):
    inputs = torch.randn(4, 4, generator=torch.Generator().manual_seed(1000 * epoch + 10 * number + rank))
    optimizer.zero_grad()
    model(inputs).square().sum().backward()
    optimizer.step()
    ends = is_asked.clone()
    dist.all_reduce(ends, dist.ReduceOp.MAX)
    return bool(ends)


def save(*place):
    """Rank 0 does, all wait."""
    if rank == 0:
        new = CHECKPOINT.with_suffix(".new")
        torch.save((*place, model.state_dict(), optimizer.state_dict()), new)
        os.replace(new, CHECKPOINT)
    run.step(dist.barrier)


for epoch in run.epochs(EPOCHS, first):
    for number in run.batches(range(batch if epoch == first else 0, BATCHES)):
        faults.begin_batch(epoch * BATCHES + number)
        ends = run.step(train, epoch, number)
        faults.note(epoch=epoch, number=number)
        pathlib.Path(OUT, f"ready.{rank}").touch()
        if ends:
            save(epoch, number + 1)
            sys.exit()
    save(epoch + 1, 0)
faults.end(values.numpy() for values in model.state_dict().values())
