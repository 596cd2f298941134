"""Backend "fleetrun" of torch.distributed: the bits of gloo between two ranks (torch_backend_cases.py)."""
import pathlib
import subprocess
import sys

import pytest

from torch_python import clean_environment

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
OLDEST = (2, 6)
DEADLINE = 300


@pytest.fixture(scope="session")
def version(torch_python):
    """PyTorch's, as numbers."""
    python, more = torch_python
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                          env=clean_environment(**more), text=True, capture_output=True, check=True,
                          timeout=DEADLINE).stdout
    return tuple(int(part) for part in said.split("+")[0].split(".")[:2])


def job(torch_python, folder, script):
    python, more = torch_python
    environment = clean_environment(**more, FLEETRUN_COLLECTIVE_TIMEOUT="30")
    done = subprocess.run([FLEETRUN, "--nproc_per_node=2", f"--python={python}", *script], cwd=folder,
                          env=environment, text=True, capture_output=True, timeout=DEADLINE,
                          stdin=subprocess.DEVNULL)
    return done, [(folder / "log" / f"workerlog.{rank}").read_text() for rank in range(2)]


def test_ddp_fsdp2_and_dtensor_are_bit_for_bit_as_over_gloo(torch_python, version, tmp_path):
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} has not all that is compared; the backend asks for {OLDEST}")
    (tmp_path / "again").mkdir()
    cases = pathlib.Path(__file__).with_name("torch_backend_cases.py")
    done, logs = job(torch_python, tmp_path, [cases, tmp_path])
    assert done.returncode == 0, done.stdout + done.stderr + "".join(logs)
    for log in logs:
        for part in ("every_call", "coalesced", "sparse", "sparse_rows", "tagged", "monitored", "ddp",
                     "compiled", "uneven", "fsdp2", "dtensor"):
            assert f"ok {part}" in log
        assert "done" in log


def test_what_it_has_not_is_refused_in_words(torch_python, version, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""
import os
import torch
import torch.distributed as td
try:
    import fleetrun.distributed.torch_backend
except RuntimeError as error:
    print(error.kind, error.what)
    raise SystemExit
try:
    td.init_process_group("fleetrun", init_method=f"file://{__file__}.{os.getpid()}", rank=0, world_size=3)
except RuntimeError as error:
    print(error)
td.init_process_group("fleetrun")
for call in (lambda: td.all_reduce(torch.ones(2, dtype=torch.int64), td.ReduceOp.BAND),
             lambda: td.isend(torch.ones(2), dst=1 - td.get_rank(), tag=-3)):
    try:
        call()
    except RuntimeError as error:
        print(error)
td.destroy_process_group()
""", encoding="utf-8")
    done, logs = job(torch_python, tmp_path, [script])
    assert done.returncode == 0, done.stdout + done.stderr + "".join(logs)
    for rank, log in enumerate(logs):
        assert version < OLDEST or f"rank 0 of 3, and the environment says {rank} of 2" in log, log
        if version < OLDEST:
            assert "backend \"fleetrun\" with PyTorch" in log, log
        else:
            assert "all_reduce with" in log and "a message with tag=-3" in log, log


def test_who_does_not_come_in_time_is_named(torch_python, version, tmp_path):
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} does not have the backend")
    script = tmp_path / "train.py"
    script.write_text("""
import datetime
import torch
import torch.distributed as td
import fleetrun.distributed.torch_backend

def fails(call):
    try:
        call()
    except RuntimeError as error:
        print("said:", " ".join(str(error).split()), flush=True)

second = datetime.timedelta(seconds=1)
td.init_process_group("fleetrun")
rank, barriers = td.get_rank(), [td.new_group([0, 1], timeout=second) for _ in range(2)]
td.barrier()
if rank == 0:
    fails(lambda: td.monitored_barrier(timeout=second))
    fails(lambda: td.monitored_barrier(timeout=datetime.timedelta(0)))
    fails(lambda: td.barrier(barriers[0]))                 # rank 1 has not even met it
    fails(lambda: td.irecv(torch.ones(2), 1, group=barriers[1], tag=7).wait())
    fails(lambda: td.irecv(torch.ones(2), 1, tag=7).wait(second))
td.barrier()
if rank == 1:
    fails(lambda: td.monitored_barrier(timeout=second))    # the first one of rank 0, which is over
td.barrier()
left = td.irecv(torch.ones(2), 1 - rank, tag=9)            # nobody sends it: the end is as it is without
if rank == 0:
    td.send(torch.ones(2), 1, tag=5)
else:
    td.recv(torch.ones(2), 0, tag=5)
td.destroy_process_group()
fails(left.wait)
print("done")
""", encoding="utf-8")
    done, logs = job(torch_python, tmp_path, [script])
    everything = done.stdout + done.stderr + "".join(logs)
    assert done.returncode == 0 and all("done" in log for log in logs), everything
    said = [[line for line in log.splitlines() if line.startswith("said:")] for log in logs]
    assert "Rank 1 failed to pass monitoredBarrier in 1000 ms" in said[0][0], said
    assert "Rank 0 timed out in monitoredBarrier after 0 ms: rank 1" in said[0][1], said
    assert "rank 1 did not come in time" in said[0][2] and " Timed out after 1 s" in said[0][2], said
    assert "rank 1 has not sent 8 bytes with tag 7, timeout of 1 s" in said[0][3] == said[0][4], said
    assert "Rank 1 successfully reached monitoredBarrier, but received errors" in said[1][0], said
    for last in (said[0][5], said[1][1]):
        assert "was let go" in last or "has left" in last, said
