"""A training that survives what is done to it, for test_recovery.py and tests/campaigns/rank_kills.py: it
draws random numbers, has batch norms, a schedule and two steps for each batch, and notes what counts.

environment: OUT (a folder; RANK.jsonl there has a line for each step that counts), EPOCHS, BATCHES, PACE
(seconds that a batch takes), DEATHS (JSON, a list of [rank, number of the batch, point]: the process kills
itself there, once in the job).
"""

import json
import os
import signal
import time

import torch

import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed._generations import Votes
from fleetrun.torch import recoverable

OUT = os.environ["OUT"]
EPOCHS, BATCHES = int(os.environ.get("EPOCHS", "2")), int(os.environ.get("BATCHES", "6"))
PACE = float(os.environ.get("PACE", "0"))
DEATHS = json.loads(os.environ.get("DEATHS", "[]"))
SIZE = 4  # of a batch

torch.set_num_threads(1)
fleet.init(is_collective=True)
rank, ranks = fleet.worker_index(), fleet.worker_num()


def die_at(point):
    """Ends here, where that is asked for and has not been done."""
    for number, (who, batch, where) in enumerate(DEATHS):
        if (who, batch, where) != (rank, drawn, point):
            continue
        try:
            os.close(os.open(f"{OUT}/death.{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


class Dying(torch.autograd.Function):
    """Ends within backward."""

    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradients):
        die_at("backward")
        return gradients


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(1, 16), torch.nn.BatchNorm1d(16)
        self.drop, self.last = torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)

    def forward(self, inputs):
        hidden = self.drop(torch.relu(self.norm(self.first(inputs))))
        return self.last(Dying.apply(hidden) if hidden.requires_grad else hidden)


class Noisy(torch.utils.data.Dataset):
    """Examples with noise of their own in each epoch, drawn when they are read."""

    def __len__(self):
        return ranks * BATCHES * SIZE

    def __getitem__(self, index):
        return torch.tensor([index / 50.0]) + 0.01 * torch.randn(1), index


gather = Votes.gather


def dying_gather(self, value):
    """The call in which a step comes to count: some ranks hear its end, and one is lost at it."""
    die_at("vote")
    said = gather(self, value)
    die_at("counted")
    return said


Votes.gather = dying_gather
drawn = -1
torch.manual_seed(7)
model = fleet.distributed_model(Model())
torch.manual_seed(100 + rank)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
examples = Noisy()
sampler = torch.utils.data.distributed.DistributedSampler(examples, ranks, rank, seed=3)
loader = torch.utils.data.DataLoader(examples, batch_size=SIZE, sampler=sampler)
run = recoverable(model, optimizer, schedule)
log = open(f"{OUT}/{rank}.jsonl", "a", buffering=1)


def note(**values):
    log.write(json.dumps({"pid": os.getpid(), "at": time.monotonic(), **values}) + "\n")


def train(inputs):
    optimizer.zero_grad()
    outputs = model(inputs)
    die_at("forward")
    loss = ((outputs - torch.sin(inputs)) ** 2).mean()
    loss.backward()
    die_at("averaged")
    optimizer.step()
    schedule.step()
    die_at("applied")
    return loss.item()


def evaluate():
    with torch.no_grad():
        error = (model(torch.linspace(0, 2, 5)[:, None]) ** 2).mean()
    dist.all_reduce(error)
    die_at("evaluated")
    return error.item()


for epoch in run.epochs(EPOCHS):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, numbers in run.batches(loader):
        drawn = epoch * BATCHES + run.place[3] - 1
        die_at("drawn")
        if PACE:
            time.sleep(PACE)
        loss = run.step(train, inputs)
        note(epoch=epoch, numbers=numbers.tolist(), loss=loss)
        die_at("between")
        note(epoch=epoch, error=run.step(evaluate))
    model.eval()
    drawn = (epoch + 1) * BATCHES
    note(epoch=epoch, evaluated=run.step(evaluate))
with open(f"{OUT}/{rank}.end", "w") as file:
    file.write(" ".join(values.numpy().tobytes().hex() for values in model.state_dict().values()))
print("done")
