"""Backend "fleetrun" of torch.distributed beside gloo: the calls, DistributedDataParallel, FSDP2, DTensor.

usage: fleetrun --nproc_per_node=2 torch_backend_cases.py FOLDER
"""
import datetime
import os
import sys
import warnings

import torch
import torch.distributed as td
from torch import nn

import fleetrun.distributed.torch_backend

assert fleetrun.distributed.torch_backend.ProcessGroup
warnings.simplefilter("ignore")
rank, size = (int(os.environ[name]) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))


def every_call():
    """What every call gives, as a list of tensors."""
    given = torch.arange(12.0).reshape(6, 2) * (rank + 1)
    got = []
    for dtype in (torch.float32, torch.int64, torch.float64, torch.bfloat16):
        for op in (td.ReduceOp.SUM, td.ReduceOp.MIN, td.ReduceOp.MAX, td.ReduceOp.PRODUCT):
            got.append((given + 1).to(dtype))
            td.all_reduce(got[-1], op)
    got.append(torch.tensor([rank == 0, True, False]))
    td.all_reduce(got[-1], td.ReduceOp.MAX)
    got.append(given.t().contiguous().t())            # with gaps
    td.all_reduce(got[-1])
    got.append(given.clone())
    td.broadcast(got[-1], src=1)
    got.append(given.clone()[:1, ::2])                # one value, whose strides say nothing
    td.broadcast(got[-1], src=1)
    got.append(given.clone())
    td.reduce(got[-1], dst=1)
    if rank != 1:
        got.pop()
    outputs = [torch.empty(6, 2) for _ in range(size)]
    td.all_gather(outputs, given)
    got += outputs
    got.append(torch.empty(6 * size, 2))
    td.all_gather_into_tensor(got[-1], given)
    got.append(torch.empty(6 // size, 2))
    td.reduce_scatter_tensor(got[-1], given)
    got.append(torch.empty(3, 2))
    td.reduce_scatter(got[-1], [given[:3], given[3:]])
    got.append(torch.empty(6, 2))
    td.all_to_all_single(got[-1], given)
    rows = [1, 5] if rank == 0 else [2, 4]
    got.append(torch.empty(3 if rank == 0 else 9, 2))
    td.all_to_all_single(got[-1], given, [1, 2] if rank == 0 else [5, 4], rows)
    outputs = [torch.empty(6, 2) for _ in range(size)]
    td.gather(given, outputs if rank == 0 else None, dst=0)
    got += outputs if rank == 0 else []
    got.append(torch.empty(6, 2))
    td.scatter(got[-1], [given + r for r in range(size)] if rank == 0 else None, src=0)
    other = 1 - rank
    got.append(torch.empty(6, 2))
    works = td.batch_isend_irecv([td.P2POp(td.irecv, got[-1], other), td.P2POp(td.isend, given, other)])
    for work in works:
        work.wait()
    got += [torch.ones(200_000) * rank, torch.ones(3)]
    for work in [td.all_reduce(part, async_op=True) for part in got[-2:]]:
        assert work.wait()
    objects = [None] * size
    td.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    td.barrier()
    alone = [td.new_group([r]) for r in range(size)][rank]
    got.append(torch.full((2,), float(rank)))
    td.all_reduce(got[-1], group=alone)
    return got


def coalesced():
    """Several tensors of different shapes at once."""
    given = [torch.full((part, part), float(rank + part)) for part in range(4)]
    got = [[torch.empty(part, part) for part in range(4)] for _ in range(size)]
    td.all_gather_coalesced(got, given)
    return [each for outputs in got for each in outputs]


def sparse():
    """Tensors with different numbers of rows, of which some are the same, some are there twice."""
    got = []
    for mine in (([[0, 3]], [[2, 3]]), ([[0, 3, 3], [1, 1, 1]], [[2], [1]]), ([[]], [[2, 3]])):
        indices = torch.tensor(mine[rank], dtype=torch.int64)
        values = torch.arange(indices.shape[1] * 2.0).reshape(-1, 2) + rank
        shape = [5] * indices.shape[0] + [2]
        got.append(torch.sparse_coo_tensor(indices, values, shape))
        td.all_reduce(got[-1])
    return [each.to_dense() for each in got]


def sparse_rows():
    """Rows of an embedding whose gradient is sparse, over DistributedDataParallel."""
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.EmbeddingBag(20, 3, sparse=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.tensor([[rank, 7, step + 3 + rank]])).square().sum().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def tagged():
    """Messages with tags, which come in another order than they were sent; from any rank; of every size."""
    other, got = 1 - rank, []
    for values in (1, 1020, 1021, 300_000):
        sent = [torch.arange(float(values)) + 10 * rank + tag for tag in range(3)]
        works = [td.isend(each, other, tag=tag) for tag, each in enumerate(sent)]
        taken = [torch.empty(values) for _ in range(3)]
        td.recv(taken[2], other, tag=2)
        assert td.recv(taken[0]) == other                  # tag 0, from any rank
        work = td.irecv(taken[1], tag=1)
        works.append(work)
        for work in works:
            work.wait()
        assert works[-1]._source_rank() == other and works[-1].is_completed()
        got += taken
    return got


def monitored():
    td.monitored_barrier(timeout=datetime.timedelta(seconds=30), wait_all_ranks=True)
    return [torch.ones(1)]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 8))


def train(model, steps=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, 64, generator=generator)).square().mean().backward()
        optimizer.step()
    return [parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter.detach().clone()
            for parameter in model.parameters()]


def ddp():
    return train(nn.parallel.DistributedDataParallel(net(), bucket_cap_mb=0.5))


def compiled():
    return train(torch.compile(nn.parallel.DistributedDataParallel(net()), backend="eager"))


def uneven():
    from torch.distributed.algorithms.join import Join
    model = nn.parallel.DistributedDataParallel(net(), bucket_cap_mb=0.5)
    with Join([model]):
        return train(model, steps=3 + rank)


def fsdp2():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (size,))
    model = net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return train(model)


def dtensor():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    left, right = torch.randn(8, 6), torch.randn(6, 4)
    product = distribute_tensor(left, mesh, [Shard(1)]) @ distribute_tensor(right, mesh, [Shard(0)])
    assert torch.allclose(product.redistribute(mesh, [Replicate()]).to_local(), left @ right, atol=1e-5)
    moved = distribute_tensor(left, mesh, [Shard(0)]).redistribute(mesh, [Shard(1)])
    return [product.full_tensor(), moved.to_local()]


PARTS = (every_call, coalesced, sparse, sparse_rows, tagged, monitored, ddp, compiled, uneven, fsdp2, dtensor)


def results(backend, folder):
    way = {"init_method": f"file://{folder}/{backend}", "rank": rank, "world_size": size}
    td.init_process_group(backend, **way)
    assert td.get_backend() == backend
    got = {part.__name__: part() for part in PARTS}
    td.destroy_process_group()
    return got


if __name__ == "__main__":
    theirs, ours, again = (results(*each) for each in (("gloo", sys.argv[1]), ("fleetrun", sys.argv[1]),
                                                       ("fleetrun", sys.argv[1] + "/again")))
    for part, values in ours.items():
        assert len(values) == len(theirs[part]) > 0
        for number, (one, other, third) in enumerate(zip(values, theirs[part], again[part])):
            # Two ranks: the same bits.
            assert one.dtype == other.dtype and torch.equal(one, other), (part, number, one, other)
            assert torch.equal(one, third), (part, number)
        print("ok", part, len(values), flush=True)
    print("done")
