"""PyTorch's side of scripts/bench collective, on Gloo, in place, with one thread.

usage: torch_peer.py FILE RANK SIZE in|out BYTES…
"""

import statistics
import sys
import time

import torch
import torch.distributed as dist


def measure(rank, size, count_bytes):
    count = count_bytes // 4
    calls = (200 if count_bytes <= 65536 else 20 if count_bytes <= 1 << 20 else 4 if count_bytes <= 8 << 20
             else 1)
    batches = 31 if count_bytes <= 8 << 20 else 15
    values = torch.zeros(count)
    figures = []
    for batch in range(-2, batches):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            dist.all_reduce(values)
        if batch >= 0:
            figures.append((time.perf_counter() - begin) / calls * 1e6)
    elements = torch.arange(count)
    values.copy_((elements + rank * 7) % 5)
    dist.all_reduce(values)
    wanted = sum((elements + r * 7) % 5 for r in range(size)).to(torch.float32)
    if rank == 0:
        print(f"row {count_bytes} {statistics.median(figures):.3f} {int((values != wanted).sum())}",
              flush=True)


def main():
    file, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    for word in sys.argv[5:]:
        measure(rank, size, int(word))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
