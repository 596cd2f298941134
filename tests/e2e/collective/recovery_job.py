"""A training that survives what is done to it, for test_recovery.py and tests/campaigns/rank_kills.py: it
draws random numbers, has batch norms, a schedule and two steps for each batch, and notes what counts.

environment: recovery_faults.py, and WRAP: "fleet" (fleet.distributed_model) or "ddp" (PyTorch's own
DistributedDataParallel over backend "fleetrun")
"""

import os

import torch

import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet
from fleetrun.torch import recoverable
from recovery_faults import BATCHES, EPOCHS, Faults

SIZE = 4  # of a batch

torch.set_num_threads(1)
if os.environ.get("WRAP") == "ddp":
    import torch.distributed as dist

    import fleetrun.distributed.torch_backend  # noqa: F401

    dist.init_process_group("fleetrun")
    wrap = torch.nn.parallel.DistributedDataParallel
    rank, ranks = dist.get_rank(), dist.get_world_size()
else:
    fleet.init(is_collective=True)
    wrap = fleet.distributed_model
    rank, ranks = fleet.worker_index(), fleet.worker_num()
faults = Faults(rank)


class Dying(torch.autograd.Function):
    """Ends within backward."""

    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradients):
        faults.die_at("backward")
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


torch.manual_seed(7)
model = wrap(Model())
torch.manual_seed(100 + rank)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
examples = Noisy()
sampler = torch.utils.data.distributed.DistributedSampler(examples, ranks, rank, seed=3)
loader = torch.utils.data.DataLoader(examples, batch_size=SIZE, sampler=sampler)
faults.come_late()
run = recoverable(model, optimizer, schedule)


def train(inputs):
    faults.take()
    optimizer.zero_grad()
    outputs = model(inputs)
    faults.die_at("forward")
    loss = ((outputs - torch.sin(inputs)) ** 2).mean()
    loss.backward()
    faults.die_at("averaged")
    optimizer.step()
    schedule.step()
    faults.die_at("applied")
    return loss.item()


def evaluate():
    faults.take()
    with torch.no_grad():
        error = (model(torch.linspace(0, 2, 5)[:, None]) ** 2).mean()
    dist.all_reduce(error)
    faults.die_at("evaluated")
    return error.item()


for epoch in run.epochs(EPOCHS):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, numbers in run.batches(loader):
        faults.begin_batch(epoch * BATCHES + run.place[3] - 1)
        loss = run.step(train, inputs)
        faults.note(epoch=epoch, numbers=numbers.tolist(), loss=loss)
        faults.die_at("between")
        faults.note(epoch=epoch, error=run.step(evaluate))
    model.eval()
    faults.drawn = (epoch + 1) * BATCHES
    faults.note(epoch=epoch, evaluated=run.step(evaluate))
faults.end(values.numpy() for values in model.state_dict().values())
