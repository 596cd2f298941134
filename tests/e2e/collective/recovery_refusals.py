"""What recoverable() refuses, for test_recovery.py: with local SGD where CASE is "local", of PyTorch's own
parallel training where it is "torch", else the rest."""

import os
import sys

import torch

import fleetrun.distributed.fleet as fleet
from fleetrun.torch import recoverable

case = os.environ["CASE"]
strategy = fleet.DistributedStrategy()
strategy.localsgd = case == "local"
fleet.init(is_collective=True, strategy=strategy)
model = fleet.distributed_model(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.ones(1, 2)


class Odd:
    """An object whose state is not data."""

    def state_dict(self):
        return {"made": object()}

    def load_state_dict(self, state):
        pass


def step():
    model(inputs).sum().backward()
    optimizer.step()
    return object()


def refused(call, *arguments):
    """Prints what is refused."""
    try:
        call(*arguments)
        print("accepted")
    except RuntimeError as error:  # PyTorch throws some of ours on as text
        print("refused:", error)


def step_within_join(run):
    with model.join():
        run.step(step)


def several_steps(run):
    for _ in run.batches([1]):
        run.step(step)
        run.step(step)


def uneven_steps(run):
    for _ in run.batches(range(2 + (fleet.worker_index() == 0))):
        run.step(fleet.worker_index)
    run.step(fleet.worker_index)


def refuse_of_torch():
    import torch.distributed as td
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer

    import fleetrun.distributed.torch_backend  # noqa: F401

    td.init_process_group("fleetrun")
    refused(td.new_group, None, None, "gloo")
    mesh = init_device_mesh("cpu", (td.get_world_size(),))
    refused(recoverable, fully_shard(torch.nn.Linear(4, 4), mesh=mesh))
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    refused(recoverable, ddp, ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.1))
    ddp.register_comm_hook(None, lambda state, bucket: None)
    refused(recoverable(ddp).step, step)


if case == "torch":
    refuse_of_torch()
elif case == "local":
    refused(recoverable, model, optimizer)
else:
    refused(recoverable, optimizer)
    refused(recoverable, model, torch.optim.SGD([torch.nn.Parameter(inputs)], lr=0.1))
    refused(recoverable, model, 17)
    refused(recoverable, model, Odd())
    run = recoverable(model, optimizer)
    refused(recoverable, model, optimizer)
    refused(step_within_join, run)
    refused(several_steps, run)
    refused(uneven_steps, run)
sys.stdout.flush()
os._exit(0)
