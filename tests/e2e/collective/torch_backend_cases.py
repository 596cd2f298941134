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
IS_OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8)
rank, size = (int(os.environ[name]) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))


def every_call():
    """What every call gives, as a list of tensors."""
    given = torch.arange(12.0).reshape(6, 2) * (rank + 1)
    got = []
    for dtype in (torch.float32, torch.int64, torch.float64, torch.bfloat16):
        for op in (td.ReduceOp.SUM, td.ReduceOp.MIN, td.ReduceOp.MAX, td.ReduceOp.PRODUCT):
            got.append((given + 1).to(dtype))
            td.all_reduce(got[-1], op)
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool):
        for op in (td.ReduceOp.BAND, td.ReduceOp.BOR, td.ReduceOp.BXOR):
            got.append((given * 7 + rank).to(torch.int64).sub(5).to(dtype))
            td.all_reduce(got[-1], op)
            got.append(torch.tensor([rank + 1, 3 - rank, -rank]).to(dtype))
            td.reduce(got[-1], dst=0, op=op)
            if rank:
                got.pop()
    got.append(torch.tensor([rank == 0, True, False]))
    td.all_reduce(got[-1], td.ReduceOp.MAX)
    got.append(torch.empty(3, 0, dtype=torch.bool))
    td.all_reduce(got[-1])
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
    if not IS_OLD:
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
    whole = torch.arange(8.0) + rank
    same = [whole, whole, whole.view(2, 4), torch.ones(2) * rank]
    td.all_reduce_coalesced(same)              # the same values are added up once
    got.append(same)
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
    crossed, message = torch.sparse_coo_tensor([[rank]], [1.0], [2]), torch.ones(1) * rank
    if rank == 1:
        td.recv(message, 0)
    work = td.all_reduce(crossed, async_op=True)           # of rank 0, before it sends
    if rank == 0:
        td.send(message, 1)
    td.all_reduce(got[-1])                                 # waits for the one before
    work.wait()
    return [each.to_dense() for each in got] + [crossed.to_dense(), message]


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


def crossed():
    """Calls that ranks begin in different orders: of several groups, and beside a message."""
    groups = [td.new_group([0, 1]) for _ in range(3)]
    got = [torch.full((3,), rank + 1.0 + number) for number in range(3)]
    works = [td.all_reduce(got[number], group=groups[number], async_op=True)
             for number in (range(3) if rank == 0 else reversed(range(3)))]
    got += [torch.arange(300_000.0) + rank, torch.ones(3) * rank]
    if rank == 1:
        td.recv(got[3], 0)
    works += [td.barrier(async_op=True), td.all_reduce(got[4], async_op=True)]
    if rank == 0:
        td.send(got[3], 1)
    for work in reversed(works):
        work.wait()
    return got


def profiled():
    """What the profiler tells of the calls: how many of a name, and the shapes of what they were given."""
    given, small = torch.ones(8, 2), torch.ones(4, 2)
    with torch.profiler.profile(record_shapes=True, activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        td.all_reduce(given)
        td.all_reduce(torch.ones(300_000), async_op=True).wait()
        td.all_reduce_coalesced([given, small])
        td.broadcast(small, src=0)
        td.reduce(small, dst=0)
        td.all_gather([torch.empty(8, 2) for _ in range(size)], given)
        td.all_gather_into_tensor(torch.empty(16, 2), given)
        td.all_to_all_single(torch.empty(8, 2), given)
        td.gather(small, [torch.empty(4, 2) for _ in range(size)] if rank == 0 else None, dst=0)
        td.scatter(torch.empty(4, 2), [small] * size if rank == 0 else None, src=0)
        if rank == 0:
            td.isend(given, 1).wait()
            td.recv(torch.empty(4, 2))
        else:
            td.recv(torch.empty(8, 2), 0)
            td.send(small, 0)
        td.barrier()
    mine = [event for event in seen.events() if event.name.startswith(td.get_backend() + ":")]
    assert all(event.is_async for event in mine), mine
    told = sorted(f"{event.name.split(':')[1]} {event.input_shapes}" for event in mine)
    return [torch.tensor(list("\n".join(told).encode()))]


def forms():
    """A group's own methods, in all forms that native ones have."""
    group, got = td.group.WORLD, []
    late = datetime.timedelta(seconds=30)

    def made(call, *given, **named):
        values = torch.arange(4.0) + rank
        call(values, *given, **named).wait()
        got.append(values)

    for more in ((), (td.ReduceOp.MAX,), (td.ReduceOp.MIN, late)):
        made(group.allreduce, *more)
        made(lambda values, *op: group.allreduce([values], *op), *more)
    made(group.allreduce, op=td.ReduceOp.MAX)
    for call in (lambda values: group.broadcast(values, 1), lambda values: group.broadcast([values]),
                 lambda values: group.broadcast(values, root=1, timeout=late)):
        made(call)
    for call in (lambda values: group.reduce(values, 0, td.ReduceOp.MAX),
                 lambda values: group.reduce([values])):
        made(call)
        if rank:
            got.pop()
    outputs = [torch.empty(4) for _ in range(3 * size)]
    made(lambda values: group.allgather(outputs[:size], values, timeout=late))
    made(lambda values: group.allgather([outputs[size:-size]], [values]))
    made(lambda values: group.gather([] if rank else outputs[-size:], values, 0))
    got += outputs[:-size] if rank else outputs
    made(lambda values: group.scatter(values, [] if rank else outputs[:size], 0))
    made(lambda values: group.reduce_scatter(values, [values + 1, values + 2], td.ReduceOp.SUM))
    made(lambda values: group.alltoall_base(values, values + 1, [], [], late))
    for barrier in (group.barrier, lambda: group.barrier(late), lambda: group.barrier(timeout=late)):
        barrier().wait()
    return got


def refused():
    """What a rank sees for itself, the group outlives; gloo's hangs in some."""
    if td.get_backend() == "gloo":
        return [torch.ones(1)]
    calls = (lambda: td.all_gather([torch.empty(1), torch.empty(2)], torch.ones(1 + rank)),
             lambda: td.all_gather([torch.empty(1)], torch.ones(1)),
             lambda: td.all_gather_into_tensor(torch.empty(3), torch.ones(2)),
             lambda: td.all_gather([torch.empty(1, dtype=torch.float64)] * 2, torch.ones(1)),
             lambda: td.reduce_scatter(torch.empty(2), [torch.empty(1), torch.empty(2)]),
             lambda: td.reduce_scatter_tensor(torch.empty(2), torch.ones(3)),
             lambda: td.all_to_all_single(torch.empty(4), torch.ones(4), [1, 1], [2, 2]),
             lambda: td.all_to_all([torch.empty(1)], [torch.ones(1)]),
             lambda: td.gather(torch.ones(2), [torch.empty(1)] * 2, dst=rank),
             lambda: td.scatter(torch.ones(2), [torch.empty(1)] * 2, src=rank))
    for number, call in enumerate(calls):
        try:
            call()
        except (RuntimeError, ValueError):
            continue
        raise AssertionError(f"call {number} was not refused")
    return [torch.ones(1)]


def told():
    """What functions hear of the calls that asked for it, and how many calls there were."""
    group, said = td.group.WORLD, []
    if not hasattr(td.ProcessGroup, "register_pre_hook"):
        return [torch.ones(1)]

    def before(call):
        given, taken = ([list(each.shape) for each in tensors]
                        for tensors in (call.input_tensors, call.output_tensors))
        said.append([call.name.name, call.async_op, call.root, call.op_id, given, taken])

    def after(call):
        said.append([call.name.name, call.async_op, call.op_id, call.work is None])

    pair = [torch.ones(2), torch.ones(2)]
    calls = (lambda: td.all_reduce(pair[0]), lambda: td.all_reduce(pair[0], async_op=True).wait(),
             lambda: td.all_reduce_coalesced(pair), lambda: td.broadcast(pair[0], 1),
             lambda: td.reduce(pair[0], 1), lambda: td.all_gather(pair, torch.ones(2)),
             lambda: td.all_gather_into_tensor(torch.ones(4), pair[0]),
             lambda: td.gather(torch.ones(2), pair if rank == 1 else None, dst=1),
             lambda: td.scatter(torch.ones(2), pair if rank == 1 else None, src=1),
             lambda: td.reduce_scatter_tensor(torch.ones(1), pair[0]),
             lambda: td.all_to_all([torch.ones(2)] * 2, pair),
             lambda: td.all_to_all_single(torch.ones(2), pair[0], [1, 1], [1, 1]), td.barrier,
             lambda: td.send(pair[0], 1) if rank == 0 else td.recv(pair[0], 0),
             lambda: td.send(pair[0], 1) if rank == 0 else td.recv(pair[0]),
             lambda: group.broadcast(pair[0], 1).wait())
    group.register_pre_hook(2, before)
    group.register_post_hook(7, after)
    counts = [group._get_sequence_number_for_group()]
    for call in calls:
        call()
        counts.append(group._get_sequence_number_for_group() - counts[0])
    group.unregister_pre_hook(2)
    group.unregister_post_hook(7)
    td.all_reduce(pair[0])
    return [torch.tensor(counts[1:]), *(torch.tensor([*repr(each).encode()]) for each in said)]


def pipeline():
    """Stages on two ranks, whose messages PyTorch sends over groups that it splits off."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    torch.manual_seed(rank)
    layer = nn.Linear(8, 8)
    stage = PipelineStage(layer, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)
    torch.manual_seed(5)
    inputs, losses = torch.randn(8, 8), []
    for _ in range(2):
        if rank == 0:
            schedule.step(inputs)
        else:
            schedule.step(target=inputs.flip(0), losses=losses)
    return [*(each.detach() for each in losses), layer.weight.grad, layer.bias.grad]


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


def builtin_hooks():
    """PyTorch's own hooks in native code, of small buckets and of such that are exchanged beside backward."""
    got = []
    for kind in (td.BuiltinCommHookType.ALLREDUCE, td.BuiltinCommHookType.FP16_COMPRESS):
        model = nn.parallel.DistributedDataParallel(net(), bucket_cap_mb=0.5)
        model._register_builtin_comm_hook(kind)
        got += train(model)
        told = model._get_ddp_logging_data()
        assert told["backend_name"] == td.get_backend() or told["backend_name"] == "fleetrun", told
    return got


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


PARTS = (every_call, coalesced, sparse, sparse_rows, tagged, crossed, profiled, forms, refused, told,
         pipeline, monitored, ddp, builtin_hooks, compiled, uneven, fsdp2, dtensor)
# What PyTorch 2.6 or its gloo has not on CPUs (pipelines hang there).
PARTS = [part for part in PARTS if not IS_OLD or part not in (forms, pipeline, monitored, fsdp2)]


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
