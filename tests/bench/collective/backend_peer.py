"""A rank of scripts/bench collective's part about torch.distributed: backend "fleetrun" or "gloo".

usage: fleetrun --nproc_per_node=N backend_peer.py BACKEND STEPS BYTES…

Rank 0 prints lines of "row WHAT BYTES MICROSECONDS WRONG": WHAT is send (from rank 0 to 1 and back, halved)
or all_to_all (BYTES of each rank, to all alike); and "model NAME COLLECTIVES STEP", milliseconds of a step of
DistributedDataParallel with gradients of that model's sizes: those that its all_reduce calls take when
nothing overlaps them, each from when its last rank has come, and the whole step as DDP does it. No network is
computed: a gradient is its parameter.
"""

import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WARM_UP, BATCHES = 2, 11


def resnet50():
    """The sizes of its parameters, in its order: 25,557,032 values."""
    sizes = [64 * 3 * 49, 64, 64]
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for weights, out in ((before * width, width), (width * width * 9, width),
                                 (width * width * 4, width * 4)):
                sizes += [weights, out, out]
            if block == 0:
                sizes += [before * width * 4, width * 4, width * 4]
            before = width * 4
    return [*sizes, 2048 * 1000, 1000]


def bert_base():
    """The same of BERT base: 109,482,240 values."""
    width, inner = 768, 3072
    layer = [width * width, width] * 4 + [width, width]
    layer += [width * inner, inner, inner * width, width, width, width]
    return [30522 * width, 512 * width, 2 * width, width, width, *layer * 12, width * width, width]


class Themselves(torch.autograd.Function):
    """Its gradients are its inputs, which are there already: memory that is new each time would cost more
    than what is measured."""

    @staticmethod
    def forward(context, *inputs):
        context.save_for_backward(*inputs)
        return torch.zeros(())

    @staticmethod
    def backward(context, _):
        return context.saved_tensors


class Gradients(torch.nn.Module):
    """Parameters of these sizes, which are their gradients."""

    def __init__(self, sizes):
        super().__init__()
        self.each = torch.nn.ParameterList([torch.nn.Parameter(torch.full((size,), 0.5)) for size in sizes])

    def forward(self):
        return Themselves.apply(*self.each)


def clock(calls, work):
    """Microseconds of a call, the median of batches of `calls`."""
    figures = []
    for batch in range(-WARM_UP, BATCHES):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        if batch >= 0:
            figures.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(figures)


def rows(rank, size, count_bytes):
    count = count_bytes // 4
    calls = max(1, min(100, (8 << 20) // count_bytes))
    values = torch.arange(count, dtype=torch.float32) + rank
    taken = torch.zeros(count)

    def send_and_back():
        if rank == 0:
            dist.send(values, 1)
            dist.recv(taken, 1)
        elif rank == 1:
            dist.recv(taken, 0)
            dist.send(taken, 0)

    spent = clock(calls, send_and_back) / 2
    yield "send", spent, int((taken != values).sum()) if rank == 0 else 0
    share = count // size
    whole, got = values[:share * size], torch.zeros(share * size)
    spent = clock(calls, lambda: dist.all_to_all_single(got, whole))
    wanted = torch.cat([torch.arange(share, dtype=torch.float32) + rank * share + other
                        for other in range(size)])
    yield "all_to_all", spent, int((got != wanted).sum())


def step(sizes, size, steps):
    """(milliseconds in all_reduce, milliseconds of a step)"""
    calls = []

    def reduce_alone(_, bucket):
        begin = time.perf_counter()
        dist.all_reduce(bucket.buffer())
        calls.append(time.perf_counter() - begin)
        done = torch.futures.Future()
        done.set_result(bucket.buffer().div_(size))
        return done

    figures = []
    for hooked in (True, False):
        model = DistributedDataParallel(Gradients(sizes))
        if hooked:
            model.register_comm_hook(None, reduce_alone)
        times = []
        for _ in range(WARM_UP + steps):
            dist.barrier()
            calls.clear()
            begin = time.perf_counter()
            model().backward()
            times.append(time.perf_counter() - begin)
            if hooked:
                times[-1] = time_of(calls)
            if any(parameter.grad[0] != 0.5 for parameter in model.parameters()):
                raise SystemExit("a gradient is not the mean of the ranks'")
            model.zero_grad(set_to_none=False)
        figures.append(statistics.median(times[WARM_UP:]) * 1000)
        del model
    return figures


def time_of(calls):
    """Of each call that of the rank which came last: the others waited for it."""
    times = torch.tensor(calls)
    dist.all_reduce(times, dist.ReduceOp.MIN)
    return float(times.sum())


def main():
    backend, steps = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    if backend == "fleetrun":
        import fleetrun.distributed.torch_backend  # noqa: F401
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    for word in sys.argv[3:]:
        for what, spent, wrong in rows(rank, size, int(word)):
            if rank == 0:
                print(f"row {what} {word} {spent:.3f} {wrong}", flush=True)
    for name, sizes in (("ResNet-50", resnet50()), ("BERT", bert_base())):
        alone, whole = step(sizes, size, steps)
        if rank == 0:
            print(f"model {name} {alone:.3f} {whole:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
