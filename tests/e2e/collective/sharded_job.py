"""A model in shards, whose state torch.distributed.checkpoint keeps, for test_resume.py: trains and saves, or
loads on another number of ranks and goes on. Rank 0 prints digests of whole parameters and moments.

usage: fleetrun --nproc_per_node=N sharded_job.py save|load FOLDER
"""

import hashlib
import sys

import torch
import torch.distributed as td
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import fleetrun.distributed.torch_backend  # noqa: F401

what, folder = sys.argv[1:]
torch.set_num_threads(1)
td.init_process_group("fleetrun")
torch.manual_seed(5)
model = torch.nn.Sequential(torch.nn.Linear(7, 30), torch.nn.Tanh(), torch.nn.Linear(30, 5))
fully_shard(model, mesh=init_device_mesh("cpu", (td.get_world_size(),)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)


def step(seed):
    """The same batch on all ranks, so that their number changes nothing but rounding."""
    optimizer.zero_grad()
    model(torch.randn(6, 7, generator=torch.Generator().manual_seed(seed))).square().mean().backward()
    optimizer.step()


def digest():
    """Of everything, whole."""
    state = hashlib.sha256()
    for parameter in model.parameters():
        for value in (parameter, *(optimizer.state[parameter][name] for name in ("exp_avg", "exp_avg_sq"))):
            state.update(value.full_tensor().detach().numpy().tobytes())
    return state.hexdigest()


def parts():
    """What is kept, as get_state_dict() names it."""
    parameters, moments = get_state_dict(model, optimizer)
    return {"model": parameters, "optimizer": moments}


if what == "save":
    for seed in range(3):
        step(seed)
    checkpoint.save(parts(), checkpoint_id=folder)
else:
    kept = parts()
    checkpoint.load(kept, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=kept["model"], optim_state_dict=kept["optimizer"])
found = digest()
if td.get_rank() == 0:
    print("digest", found)
step(9)
losses = [model(torch.ones(1, 7)).sum().detach() for _ in range(1)]
if td.get_rank() == 0:
    print("after", float(losses[0]))
td.destroy_process_group()
print("done")
