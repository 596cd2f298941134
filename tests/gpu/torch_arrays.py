"""Collective calls and data parallel training on tensors of real GPUs: a trainer that checks itself.

    fleetrun --nproc_per_node=2 tests/gpu/torch_arrays.py

Needs PyTorch with CUDA beside the package. Each rank takes GPU "its rank modulo those that it sees"; with
fewer GPUs than ranks NCCL has to allow several ranks on one: NCCL_MULTI_RANK_GPU_ENABLE=1, which is set here.
Prints "rank R: done, …" on each rank, or ends with what was wrong.
"""

import os
import time

os.environ.setdefault("NCCL_MULTI_RANK_GPU_ENABLE", "1")

import torch

import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet


def check_calls(rank, size, device):
    """Every kind of call, in place, for the types that NCCL has."""
    total = size * (size + 1) // 2
    for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int32,
                 torch.int64, torch.uint8):
        tensor = torch.full((3, 400), rank + 1, device=device).to(kind)
        dist.all_reduce(tensor)
        assert bool((tensor == total).all()), (kind, tensor)
    tensor = torch.full((1000,), float(rank), device=device)
    dist.broadcast(tensor, src=size - 1)
    assert bool((tensor == size - 1).all())
    parts = []
    dist.all_gather(parts, torch.full((2, 2), float(rank), device=device))
    assert [float(part[0, 0]) for part in parts] == list(range(size))
    share = torch.zeros(5, device=device)
    dist.reduce_scatter(share,
                        [torch.full((5,), float(10 * other + rank), device=device) for other in range(size)])
    assert bool((share == size * 10 * rank + size * (size - 1) // 2).all())
    taken = []
    dist.alltoall([torch.full((2,), 10 * rank + other, device=device) for other in range(size)], taken)
    assert [int(part[0]) for part in taken] == [10 * other + rank for other in range(size)]


def check_streams(rank, size, device):
    """A call comes after what the current stream has, also where that is not the default one."""
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        for _ in range(20):
            values = torch.zeros(1 << 22, device=device)
            torch.cuda._sleep(2_000_000)
            values += rank + 1
            dist.all_reduce(values)
            assert bool((values == size * (size + 1) // 2).all()), "the call came before the stream's work"
    tasks, many = [], [torch.full((1000,), float(rank + each), device=device) for each in range(50)]
    for each in many:
        tasks.append(dist.all_reduce(each, sync_op=False))
    for number, task in enumerate(tasks):
        task.wait()
        assert bool((many[number] == size * (size - 1) // 2 + size * number).all())


def check_training(rank, size, device):
    """Twenty steps of all ranks are those of one process with the batches of all."""
    strategy = fleet.DistributedStrategy()
    strategy.nccl_comm_num = 2
    fleet.init(is_collective=True, strategy=strategy)

    def make():
        torch.manual_seed(5)
        model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512),
                                    torch.nn.Tanh(),
                                    torch.nn.Linear(512, 3)).double().to(device)
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    alone, its_optimizer = make()
    model, optimizer = make()
    model, optimizer = fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
    batches = torch.Generator().manual_seed(9)
    spent = 0.0
    for _ in range(20):
        x = torch.randn(8 * size, 64, generator=batches, dtype=torch.float64).to(device)
        for trained, steps, examples in ((alone, its_optimizer, x),
                                         (model, optimizer, x[8 * rank:8 * rank + 8])):
            begun = time.perf_counter()
            steps.zero_grad()
            trained(examples).square().mean().backward()
            steps.step()
            spent = time.perf_counter() - begun
    difference = max((a - b).abs().max().item() for a, b in zip(alone.parameters(), model.parameters()))
    assert difference < 1e-6, difference
    return difference, spent


def all_reduce_rate(device, count=1 << 24):
    """GB/s of an all_reduce of 64 MiB of float32, in NCCL's sense of algbw."""
    values = torch.ones(count, device=device)
    dist.all_reduce(values)
    begun = time.perf_counter()
    for _ in range(20):
        dist.all_reduce(values, dist.ReduceOp.AVG)
    return 20 * 4 * count / (time.perf_counter() - begun) / 1e9


def main():
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    check_calls(rank, size, device)
    check_streams(rank, size, device)
    difference, spent = check_training(rank, size, device)
    rate = all_reduce_rate(device)
    print(
        f"rank {rank}: done, on {torch.cuda.get_device_name(device)}: "
          f"the training differs by {difference:.1e}, its last step took {spent * 1e3:.2f} ms; all_reduce of "
          f"64 MiB {rate:.1f} GB/s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
