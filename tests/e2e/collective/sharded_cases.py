"""Models in shards, backend "fleetrun" beside gloo: FSDP, FSDP2, a tensor-parallel plan, and that in FSDP2.

usage: fleetrun --nproc_per_node=RANKS sharded_cases.py FOLDER
All ranks have the same bits in every run; between two ranks they are gloo's.
"""
import hashlib
import os
import sys
import warnings

import torch
import torch.distributed as td
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import fleetrun.distributed.torch_backend  # noqa: F401

warnings.simplefilter("ignore")
torch.set_num_threads(1)
rank, size = (int(os.environ[name]) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
WIDE = 4e-6  # of sums in another order


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 36), nn.Tanh(), nn.Linear(36, 20), nn.Tanh(), nn.Linear(20, 4))


def train(model, seed, whole):
    """What the parameters are after four steps, as `whole` has them, and the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 12, generator=generator)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().reshape(1))
    return whole(model), losses


def gathered(model):
    return [parameter.full_tensor().detach() for parameter in model.parameters()]


def summoned(model):
    with FullyShardedDataParallel.summon_full_params(model):
        return [parameter.detach().clone() for parameter in model.parameters()]


def fsdp1():
    return train(FullyShardedDataParallel(net(), device_id=torch.device("cpu")), rank, summoned)


def in_shards(model, mesh):
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def fsdp2():
    return train(in_shards(net(), init_device_mesh("cpu", (size,))), rank, gathered)


PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}


def tensor_parallel():
    """The ranks take the same batch."""
    model = parallelize_module(net()[:3], init_device_mesh("cpu", (size,)), PLAN)
    return train(model, 0, gathered)


def both():
    """Pairs of ranks share layers, and the pairs share the batch."""
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "layers"))
    model = parallelize_module(net()[:3], mesh["layers"], PLAN)
    return train(in_shards(model, mesh["data"]), rank // 2, gathered)


# PyTorch 2.6 has no FSDP2 on CPUs.
IS_OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8)
PARTS = (fsdp1, tensor_parallel) if IS_OLD else (fsdp1, fsdp2, tensor_parallel, both)


def results(backend, where):
    td.init_process_group(backend, init_method=f"file://{where}", rank=rank, world_size=size)
    got = {part.__name__: part() for part in PARTS}
    for name, (values, _) in got.items():
        state = hashlib.sha256(b"".join(value.numpy().tobytes() for value in values)).hexdigest()
        states = [None] * size
        td.all_gather_object(states, state)
        assert set(states) == {state}, (backend, name, states)
    td.destroy_process_group()
    return got


if __name__ == "__main__":
    folder = sys.argv[1]
    theirs = results("gloo", folder + "/gloo")
    ours, again = (results("fleetrun", f"{folder}/{name}") for name in ("ours", "again"))
    for part, (values, losses) in ours.items():
        assert len(values) > 0 and len(losses) == 4
        for one, other, third in zip(values + losses, sum(theirs[part], []), sum(again[part], [])):
            assert torch.equal(one, third), part
            assert torch.equal(one, other) if size == 2 else torch.allclose(one, other, 0, WIDE), (
                part, (one - other).abs().max())
        print("ok", part, len(values), flush=True)
    print("done")
