"""One side of tests/bench/data_parallel_bench.py:
trains a small network for some seconds and prints milliseconds of a step.

usage: data_parallel_step.py fleetrun|torch LAYERS WIDTH BATCH STEPS,
as a rank of a job (MASTER_ADDR, RANK and so on)
"""

import os
import statistics
import sys
import time

import torch


def wrap(side, model, optimizer):
    if side == "fleetrun":
        import fleetrun.distributed.fleet as fleet

        fleet.init(is_collective=True)
        return fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
    if side == "torch":
        torch.distributed.init_process_group("gloo")
        return torch.nn.parallel.DistributedDataParallel(model), optimizer
    return model, optimizer


def main():
    side, (layers, width, batch, steps) = sys.argv[1], map(int, sys.argv[2:])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    parts = [part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*parts, torch.nn.Linear(width, 10))
    model, optimizer = wrap(side, model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
    x, y = torch.randn(batch, width), torch.randint(10, (batch,))
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    if os.environ.get("RANK", "0") == "0":
        print(f"step {statistics.median(times[steps // 4:]) * 1000:.4f}", flush=True)
    if side == "torch":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
