"""PyTorch DistributedDataParallel on the CPU, as its tutorial has it: nothing in here knows fleetrun."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(rank, size):
    torch.manual_seed(0)
    truth = torch.randn(8, 1)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank + 1)  # every rank has data of its own
    losses = []
    for _ in range(20):
        x = torch.randn(64, 8)
        loss = torch.nn.functional.mse_loss(model(x), x @ truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / size)
    weights = [torch.zeros(1, 8) for _ in range(size)]
    dist.all_gather(weights, model.module.weight.detach())
    assert all(torch.equal(w, weights[0]) for w in weights), "the ranks have different weights"
    return losses


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (rank == int(os.environ["RANK"])
            and int(os.environ["LOCAL_RANK"]) < int(os.environ["LOCAL_WORLD_SIZE"]))
    losses = train(rank, size)
    print(f"rank {rank} of {size}: loss {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
