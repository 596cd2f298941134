"""Arrays on GPUs, by DLPack, against the fake CUDA runtime and the fake NCCL of tests/support/fake_gpu: which
way a call goes, what it comes after, and what is refused.
The fake device memory is the host's, and its ranks are threads of one process.
"""

import pathlib

import pytest

FAKES = pathlib.Path(__file__).parents[3] / "build" / "tests" / "support"

COMMON = """
import ctypes
import os
import socket
import threading

import numpy as np
import fleetrun.distributed as dist
from fleetrun import _native
from fleetrun.distributed._arrays import view

CUDA, ROCM = 2, 10

class Managed(ctypes.Structure):  # the beginning of DLPack's DLManagedTensor
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32)]

pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.POINTER(Managed), [ctypes.py_object, ctypes.c_char_p]

class GpuArray:
    # A numpy array that says that it lies on a device.
    def __init__(self, values, number=0, device=CUDA):
        self.values, self.place, self.streams = values, (device, number), []
        self.shape, self.dtype = values.shape, values.dtype

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = self.values.__dlpack__()
        tensor = pointer_of(capsule, b"dltensor")[0]
        tensor.device, tensor.number = self.place
        return capsule

class Counts(ctypes.Structure):  # tests/support/fake_gpu/controls.h: FakeNccl
    _fields_ = [("version", ctypes.c_int)] + [(name, ctypes.c_long) for name in
                ("collectives", "sends", "receives", "groups", "aborted", "destroyed", "shrunk", "revoked")]

def counts():
    fake = ctypes.CDLL("libnccl.so.2")._ZN8fleetrun5tests9fake_ncclEv
    fake.restype = ctypes.POINTER(Counts)
    return fake()[0]

def refused(action):
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("nothing was thrown")
"""


@pytest.fixture
def fakes(tmp_path):
    """The environment in which the fake libraries are found."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    for name, fake in (("libcudart.so.13", "libfake_cudart.so"), ("libnccl.so.2", "libfake_nccl.so")):
        if not (FAKES / fake).exists():
            pytest.skip(f"no {FAKES / fake}: scripts/setup-cuda and scripts/build --tests make it")
        (folder / name).symlink_to(FAKES / fake)
    return {"LD_LIBRARY_PATH": str(folder)}


def test_calls_on_arrays_of_a_gpu_go_over_nccl_and_others_do_not(job, fakes):
    job(COMMON + """
dist.init_parallel_env()
dist.all_reduce(np.ones(3))
array = GpuArray(np.arange(6, dtype=np.float32).reshape(2, 3), number=5)
dist.all_reduce(array)
assert array.streams == [1], array.streams  # the legacy default stream, on which the call comes after the array's
assert counts().collectives == 1
dist.broadcast(array, src=0)
dist.reduce(array, dst=0)
task = dist.all_reduce(array, dist.ReduceOp.AVG, sync_op=False)
task.wait()
assert task.is_completed() and counts().collectives == 4
got = GpuArray(np.zeros(6, dtype=np.float32), number=5)
dist.alltoall_single(array, got, [2], [6])
assert (got.values == np.arange(6)).all() and (array.values.ravel() == np.arange(6)).all()
before = counts().collectives
dist.all_reduce(np.ones(3))
assert counts().collectives == before
whole = dist.new_group([0], backend="nccl")
dist.all_reduce(GpuArray(np.ones(2, dtype=np.int64)), group=whole)
assert counts().collectives == before + 1
dist.destroy_process_group()
assert counts().destroyed == 2
print("done")
""", 1, **fakes).succeeded()


RANKS = COMMON + """
held = socket.socket()
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
held.bind(("127.0.0.1", 0))

def ranks(count, body):
    # Runs body(world, rank) on a thread for each rank.
    met, failures = threading.Barrier(count), []
    def run(rank):
        try:
            world = _native.World.join({"WORLD_SIZE": str(count), "RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                                        "MASTER_PORT": str(held.getsockname()[1]), "FLEETRUN_INSECURE": "1",
                                        "FLEETRUN_MEET_TIMEOUT": "30"})
            body(world, rank)
            met.wait()
        except BaseException as error:
            failures.append((rank, error))
            met.abort()
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures

def all_reduce(array):
    values = view(array)
    return _native.Call(_native.CallKind.all_reduce, values, values, values.count)
"""


@pytest.mark.parametrize("options", ["", "hierarchical=True, inner_size=2"])
def test_ranks_reduce_what_is_on_their_gpus(job, fakes, options):
    job(RANKS + f"""
def body(world, rank):
    group = world.make_communicator("all", {options})
    array, same = GpuArray(np.full(1000, rank + 1.0), number=rank), np.full(1000, rank + 1.0)
    group.run(all_reduce(array))
    group.run(all_reduce(same))
    assert (array.values == 10).all() and (same == 10).all()
    started = [group.start(all_reduce(GpuArray(array.values, number=rank)))]
    for each in started:
        each.wait()
    assert (array.values == 40).all()
    # Another GPU of the same rank: a communicator of its own.
    other = GpuArray(np.full(3, rank, dtype=np.int32), number=rank + 4)
    group.run(all_reduce(other))
    assert (other.values == 6).all()

ranks(4, body)
print("done")
""", 1, **fakes).succeeded()


def test_a_rank_whose_array_lies_elsewhere_is_named(job, fakes):
    job(RANKS + """
def body(world, rank):
    group = world.make_communicator("all")
    array = np.ones(5) if rank == 1 else GpuArray(np.ones(5), number=rank)
    error = refused(lambda: group.run(all_reduce(array)))
    assert error.kind == "config", error
    assert "rank 1 calls all_reduce of 5 float64 (sum)" in error.what and "calls barrier" in error.what, error.what

ranks(3, body)
print("done")
""", 1, **fakes).succeeded()


def test_what_cannot_be_is_refused_by_name(job, fakes):
    job(COMMON + """
dist.init_parallel_env()
error = refused(lambda: dist.all_reduce(GpuArray(np.ones(2), device=ROCM)))
assert error.kind == "config" and "DLPack's type 10" in error.what and "cpu()" in error.hint
error = refused(lambda: _native.Call(_native.CallKind.all_gather, view(np.ones(2)), view(GpuArray(np.ones(2), number=3)), 2))
assert error.kind == "config" and error.what == "all_gather of an array in the host's memory into one on GPU 3", error.what
error = refused(lambda: dist.all_reduce(GpuArray(np.ones(2), number=9)))
assert error.kind == "host" and "device 9, and there are 8" in error.what and "CUDA_VISIBLE_DEVICES" in error.hint
print("done")
""", 1, **fakes).succeeded()


@pytest.mark.skipif(pathlib.Path("/dev/nvidiactl").exists(), reason="there may be a GPU here")
def test_without_a_gpu_the_call_says_what_is_missing(job):
    job(COMMON + """
dist.init_parallel_env()
error = refused(lambda: dist.all_reduce(GpuArray(np.ones(2))))
assert error.kind == "host" and error.hint, error
dist.all_reduce(np.ones(2))
print("done")
""", 1).succeeded()
