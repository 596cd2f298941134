"""The raw calls on numpy arrays and torch tensors, in jobs of several ranks:
results that are known for any order."""

import pytest

NUMPY = """
import numpy as np
import fleetrun.distributed as dist
from fleetrun.distributed import ReduceOp

group = dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
assert dist.is_initialized() and (group.rank, group.nranks) == (rank, size)
ranks = np.arange(size)
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_call_on_numpy_arrays(job, ranks):
    job(NUMPY + """
for kind in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8"):
    for count in (0, 1, 5, 1000):
        array = np.full(count, rank + 1, dtype=kind)
        assert dist.all_reduce(array) is not None
        assert array.dtype == kind and (array == sum(ranks + 1)).all(), (kind, array)
for op, expected in ((ReduceOp.MAX, size), (ReduceOp.MIN, 1), (ReduceOp.PROD, np.prod(ranks + 1)), (ReduceOp.AVG, (size + 1) / 2)):
    array = np.full((2, 3), rank + 1.0)
    dist.all_reduce(array, op)
    assert (array == expected).all(), (op, array)

array = np.full(4, float(rank))
dist.broadcast(array, src=size - 1)
assert (array == size - 1).all()
array = np.full(4, float(rank))
dist.reduce(array, dst=0)
assert (array == (sum(ranks) if rank == 0 else rank)).all()
parts = []
dist.all_gather(parts, np.full((2, 2), rank))
assert len(parts) == size and all((part == r).all() and part.shape == (2, 2) for r, part in enumerate(parts))
dist.all_gather(parts, np.full((2, 2), rank + 10))
assert parts[-1][0, 0] == size + 9

share = np.zeros(3)
dist.reduce_scatter(share, [np.full(3, 10.0 * r + rank) for r in ranks])
assert (share == size * 10 * rank + sum(ranks)).all()
taken = []
dist.alltoall([np.full(2, 10 * rank + r) for r in ranks], taken)
assert [int(part[0]) for part in taken] == [10 * r + rank for r in ranks]
# Rank r sends r + 1 rows to every rank.
rows = np.repeat(np.arange(size), rank + 1).reshape(-1, 1) + 100 * rank
got = np.zeros((sum(ranks + 1), 1), dtype=rows.dtype)
dist.alltoall_single(rows, got, [rank + 1] * size, list(ranks + 1))
assert got.ravel().tolist() == [100 * r + rank for r in ranks for _ in range(r + 1)]

objects = []
dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
assert [each["rank"] for each in objects] == list(ranks)
listed = [rank, "from"] if rank == 0 else []
dist.broadcast_object_list(listed, src=0)
assert listed == [0, "from"]
dist.barrier()
dist.destroy_process_group()
assert not dist.is_initialized()
print("done")
""", ranks).succeeded()


def test_two_ranks_send_and_receive(job):
    job(NUMPY + """
array = np.arange(5.0) * (rank + 1)
if rank == 0:
    dist.send(array, dst=1)
else:
    got = np.zeros(5)
    task = dist.irecv(got, src=0)
    task.wait()
    assert (got == np.arange(5.0)).all()
print("done")
""", 2).succeeded()


def test_tasks_and_groups(job):
    job(NUMPY + """
odd = dist.new_group([1])
both = dist.new_group([2, 0])
assert odd.is_member() == (rank == 1) and both.ranks == [0, 2]
assert dist.get_group(both.id) is both and dist.get_rank(both) == {0: 0, 1: -1, 2: 1}[rank]
values = [np.full(100, rank + number) for number in range(4)]
tasks = [dist.all_reduce(value, sync_op=False) for value in values]
for number, task in enumerate(tasks):
    task.wait()
    assert task.is_completed() and (values[number] == 3 + 3 * number).all()
if both.is_member():
    array = np.full(3, rank)
    dist.all_reduce(array, group=both)
    assert (array == 2).all()
    dist.broadcast(array, src=2, group=both)
else:
    try:
        dist.all_reduce(np.zeros(1), group=both)
    except Exception as error:
        assert error.kind == "config" and "[0, 2]" in error.what and error.hint
    else:
        raise AssertionError
print("done")
""", 3).succeeded()


def test_tensors_of_torch_in_place(torch_job):
    torch_job("""
import torch
import fleetrun.distributed as dist

dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.uint8):
    tensor = torch.full((3, 4), rank + 1).to(kind)
    address = tensor.data_ptr()
    dist.all_reduce(tensor)
    assert tensor.data_ptr() == address and tensor.dtype == kind and bool((tensor == 3).all()), tensor
parameter = torch.nn.Parameter(torch.full((5,), float(rank)))
dist.broadcast(parameter, src=1)
assert parameter.tolist() == [1.0] * 5
parts = []
dist.all_gather(parts, torch.full((2,), rank, dtype=torch.bfloat16))
assert [part.dtype for part in parts] == [torch.bfloat16] * 2 and parts[1].tolist() == [1.0, 1.0]
scalar = torch.tensor(1.5)
dist.all_reduce(scalar)
assert scalar.item() == 3.0
print("done")
""", 2).succeeded()


@pytest.mark.parametrize("call, what", [
    ("dist.all_reduce([1.0])", "list is not an array"),
    ("dist.all_reduce(np.zeros((4, 4))[:, 1])", "is not contiguous"),
    ("dist.all_reduce(np.zeros(3, dtype='complex64'))", "a type that collectives do not support"),
    ("dist.all_reduce(np.zeros(3), op=9)", "9 is not a ReduceOp"),
    ("dist.broadcast(np.zeros(3), src=5)", "src=5 is not a rank of world"),
    ("dist.alltoall([np.zeros(3)] * 4, [])", "a list of 4 arrays"),
    ("dist.new_group([7])", "new_group with rank 7"),
    ("dist.new_group([0, 0])", "a rank is there twice"),
    ("dist.new_group(backend='mpi')", "backend='mpi'"),
])
def test_what_cannot_be_is_one_clear_error(job, call, what):
    result = job(NUMPY + f"""
try:
    {call}
except Exception as error:
    assert type(error).__name__ == "Error" and error.kind == "config", repr(error)
    print(error)
    print("done")
""", 1).succeeded()
    assert what in result.logs[0]


def test_an_interrupt_ends_a_call_that_waits_and_the_others_are_told(job):
    result = job(NUMPY + """
import os, signal
pids = []
dist.all_gather_object(pids, os.getpid())
pair = dist.new_group([0, 1])
if rank == 0:
    try:
        dist.barrier(pair)
        dist.all_reduce(np.zeros(10), group=pair)      # rank 1 does not come
    except KeyboardInterrupt:
        print("interrupted")
    pair.communicator.abort("rank 0 was interrupted")  # for an interrupt between the two calls, which ends neither
    try:
        dist.all_reduce(np.zeros(10), group=pair)
    except Exception as error:
        print(error.kind)
elif rank == 1:
    dist.barrier(pair)
    os.kill(pids[0], signal.SIGINT)
dist.barrier()                                          # other groups go on
if rank == 1:
    try:
        dist.all_reduce(np.zeros(10), group=pair)
    except Exception as error:
        print(error.kind)
dist.barrier()
print("done")
""", 2).succeeded()
    assert result.logs[0].split() == ["interrupted", "network", "done"]
    assert result.logs[1].split() == ["network", "done"]


def test_a_rank_that_makes_another_call_is_named(job):
    result = job(NUMPY + """
try:
    dist.all_reduce(np.zeros(4 if rank == 0 else 5))
except Exception as error:
    print(error.kind, error)
print("done")
""", 2).succeeded()
    for log in result.logs:
        assert (log.startswith("config") and "all_reduce of 4 float64" in log
                and "all_reduce of 5 float64" in log)


def test_a_rank_that_fails_is_named_as_lost(job):
    # The launcher stops rank 0 as soon as rank 1 has failed: rank 0 has to live on to say what it saw.
    result = job(NUMPY + """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
dist.barrier()
if rank == 1:
    raise ValueError("rank 1 fails")
try:
    dist.all_reduce(np.zeros(4))
except Exception as error:
    print(error.kind, error, flush=True)
""", 2)
    assert result.status == 1
    assert ("network" in result.logs[0] and "rank 1" in result.logs[0]
            and "has left" not in result.logs[0]), result.logs[0]
