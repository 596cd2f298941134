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
for op, combine in ((ReduceOp.BAND, np.bitwise_and), (ReduceOp.BOR, np.bitwise_or), (ReduceOp.BXOR, np.bitwise_xor)):
    for kind in (np.int64, np.uint8, bool):
        array = np.array([rank + 1, 5 * rank + 4, 7]).astype(kind)
        dist.all_reduce(array, op)
        given = np.array([ranks + 1, 5 * ranks + 4, 7 + 0 * ranks]).astype(kind)
        assert array.tolist() == combine.reduce(given, axis=1).tolist(), (op, kind, array)

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


@pytest.mark.parametrize("way", ["shm", "gloo"])
def test_messages_that_both_ranks_post_first_pass_each_other(job, way):
    job(NUMPY + """
others = [r for r in ranks if r != rank]
# Receives before sends on every rank, and a receive whose sender waits for another message first.
got = {r: np.zeros(1000) for r in others}
receives = {r: dist.irecv(got[r], src=r) for r in others}
sends = [dist.isend(np.full(1000, 10.0 * rank + r), dst=r) for r in others]
for r in others:
    receives[r].wait()
    assert (got[r] == 10 * r + rank).all(), (r, got[r])
for task in sends:
    task.wait()
    assert task.is_completed()
if rank == 0:
    dist.recv(got[2], src=2)
    dist.send(np.full(1000, 7.0), dst=1)
elif rank == 1:
    late, early = dist.irecv(got[0], src=0), dist.isend(np.full(1000, 5.0), dst=2)
    late.wait()
    assert (got[0] == 7).all()
elif rank == 2:
    dist.recv(got[1], src=1)
    dist.send(got[1], dst=0)
# A message and a call of all ranks do not wait for each other, and messages keep their order.
right, left = (rank + 1) % size, (rank - 1) % size
tasks = [dist.irecv(part, src=left) for part in (got[left][:300], got[left][300:])]
total = np.ones(1)
dist.all_reduce(total)
assert total == size
swap = dist.batch_isend_irecv([dist.P2POp(dist.isend, np.full(300, 1.0), right), dist.P2POp(dist.isend, np.full(700, 2.0), right)])
for task in tasks + swap:
    task.wait()
assert got[left][:300].tolist() == [1.0] * 300 and got[left][300:].tolist() == [2.0] * 700
odd = dist.new_group([0, 2])
if odd.is_member():
    other = 2 - rank
    tasks = dist.batch_isend_irecv([dist.P2POp(dist.irecv, got[other], other, odd), dist.P2POp(dist.isend, np.full(1000, rank + 3.0), other, odd)])
    for task in tasks:
        task.wait()
    assert (got[other] == other + 3).all()
print("done")
""", 3, FLEETRUN_COLLECTIVE=way).succeeded()


def test_a_message_that_nobody_sends_is_an_error_and_keeps_nobody_from_ending(job):
    result = job(NUMPY + """
got = np.zeros(3)
task = dist.irecv(got, src=1 - rank)
assert not task.is_completed()
if rank == 1:
    raise SystemExit(0)
try:
    task.wait()
except Exception as error:
    print(error.kind)
print("done")
""", 2, FLEETRUN_MEET_TIMEOUT="20")
    assert result.status == 0 and result.logs[0].split() == ["network", "done"], result.logs


@pytest.mark.parametrize("way", ["shm", "gloo"])
def test_scatter_and_gather(job, way):
    job(NUMPY + """
mine, last = np.zeros((2, 2)), size - 1
dist.scatter(mine, [np.full((2, 2), 5.0 + r) for r in ranks] if rank == last else None, src=last)
assert (mine == 5 + rank).all()
parts = []
dist.gather(mine, parts if rank == 0 else None, dst=0)
assert [part[0, 0] for part in parts] == ([5 + r for r in ranks] if rank == 0 else [])
places = [np.zeros((2, 2)) for _ in ranks]
task = dist.gather(mine, places, dst=last, sync_op=False)
task.wait()
assert [part[1, 1] for part in places] == ([5 + r for r in ranks] if rank == last else [0] * size)
print("done")
""", 3, FLEETRUN_COLLECTIVE=way).succeeded()


def test_bools_and_complex_numbers(job):
    job(NUMPY + """
for op, expected in ((ReduceOp.SUM, [True, True, False]), (ReduceOp.MAX, [True, True, False]),
                     (ReduceOp.PROD, [False, True, False]), (ReduceOp.MIN, [False, True, False])):
    array = np.array([rank == 0, True, False])
    dist.all_reduce(array, op)
    assert array.view("uint8").tolist() == [int(each) for each in expected], (op, array.view("uint8"))
for kind in ("complex64", "complex128"):
    array = np.full((2, 3), 1 + 2j * rank, dtype=kind)
    dist.all_reduce(array)
    assert array.dtype == kind and (array == size + 2j * sum(ranks)).all()
    dist.all_reduce(array, ReduceOp.AVG)
    parts = []
    dist.all_gather(parts, np.full((), 1j * rank, dtype=kind))
    assert parts == [1j * r for r in ranks]
    dist.broadcast(array, src=0)
print("done")
""", 2).succeeded()


@pytest.mark.parametrize("way, ranks", [("shm", 3), ("gloo", 3)])
def test_means_of_float16_are_finite(job, way, ranks):
    job(NUMPY + """
array = np.full(1000, 60000, dtype="float16")
dist.all_reduce(array, ReduceOp.AVG)
assert (array == 60000).all(), array
print("done")
""", ranks, FLEETRUN_COLLECTIVE=way).succeeded()


def test_objects_are_data_or_pickled_where_all_ranks_say_so(job):
    job(NUMPY + """
import collections
values = {"a": [1, 2.5, None, True, float("inf")], 3: (b"x", "\u00e4"), (1, 2): {"set"}, "array": np.arange(6, dtype="float16").reshape(2, 3),
          "one": np.float32(1.5), "rows": np.array([(1, 2.0)], dtype=[("key", "<i8"), ("value", "<f4")]), "rank": rank, 10**30: np.zeros((0, 3), bool)}
def same(one, other):
    if isinstance(one, (np.ndarray, np.generic)):
        return type(one) is type(other) and one.dtype == other.dtype and one.shape == other.shape and (one == other).all()
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other
every = []
dist.all_gather_object(every, values)
assert [each.pop("rank") for each in every] == list(ranks)
mine = {key: value for key, value in values.items() if key != "rank"}
assert all(same(mine, each) for each in every), every
every[0]["array"][0, 0] = 7
slots = [None] * size
dist.all_gather_object(slots, rank)      # in the place of what a list of as many has
assert slots == list(ranks)
gathered = []
dist.gather_object(("from", rank), gathered if rank == 1 else None, dst=1)
assert gathered == ([("from", r) for r in ranks] if rank == 1 else [])
out = []
dist.scatter_object_list(out, [{"for": int(r)} for r in ranks] if rank == 1 else None, src=1)
assert out == [{"for": rank}]
for call in (lambda: dist.all_gather_object([], collections.Counter(a=1) if rank == 1 else 0),
             lambda: dist.broadcast_object_list([collections.Counter(a=1)], src=1),
             lambda: dist.scatter_object_list([], [collections.Counter(a=1)] * size, src=1)):
    try:
        call()
    except Exception as error:
        assert error.kind == "config" and "rank 1" in error.what and "collections.Counter" in error.what, error
        assert "allow_pickle=True" in error.hint
    else:
        raise AssertionError("a Counter is not data")
every = []
dist.all_gather_object(every, collections.Counter(a=rank), allow_pickle=True)
assert every == [collections.Counter(a=r) for r in ranks] and type(every[0]) is collections.Counter
try:
    dist.broadcast_object_list(listed := [collections.Counter()], src=1, allow_pickle=rank == 1)
    assert rank == 1
except Exception as error:
    assert rank == 0 and "did not allow it" in error.what
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
    ("dist.all_reduce(np.zeros(3, dtype='uint32'))", "a type that collectives do not support"),
    ("dist.all_reduce(np.zeros(3, dtype='complex64'), ReduceOp.MAX)", "max of an array of complex64"),
    ("dist.all_reduce(np.zeros(3, dtype=bool), ReduceOp.AVG)", "avg of an array of bool"),
    ("dist.send(np.zeros(3), dst=0)", "dst=0 is this rank"),
    ("dist.recv(np.zeros(3), src=3)", "src=3 is not a rank of world"),
    ("dist.P2POp(dist.send, np.zeros(3), 0)", "P2POp of <function send"),
    ("dist.batch_isend_irecv([])", "a list of P2POp that is not empty"),
    ("dist.scatter(np.zeros(3), [np.zeros(3)] * 2)", "a list of 2 arrays"),
    ("dist.scatter(np.zeros(3), [np.zeros(2)])", "scatter of arrays of 2 elements together into 1 of 3"),
    ("dist.gather(np.zeros(3))", "gather on rank 0 without gather_list"),
    ("dist.all_gather_object([], ...)", "rank 0: an object of type builtins.ellipsis"),
    ("dist.broadcast_object_list([1, object()])", "rank 0: an object of type builtins.object is not data"),
    ("dist.scatter_object_list([], [])", "scatter_object_list of 0 objects"),
    ("dist.gather_object(1)", "gather_object on rank 0 without a list"),
    ("dist.all_reduce(np.zeros(3), ReduceOp.BXOR)", "bxor of an array of float64: only integers have bits"),
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


def test_a_thread_that_cannot_be_had_is_an_error_that_says_so(job):
    """As in containers and on login nodes with a low limit of processes."""
    job(NUMPY + """
import os, resource
if os.geteuid() == 0:
    os.setuid(65534)  # root has no such limit
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    dist.all_reduce(np.ones(1), group=dist.new_group([0, 1]))
except RuntimeError as error:
    assert error.what == "a thread cannot be started: Resource temporarily unavailable", error
    assert "ulimit -u" in error.hint
    print("done", flush=True)
    os._exit(0)
""", 2).succeeded()
