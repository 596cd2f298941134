"""Backend "fleetrun" of torch.distributed: the bits of gloo between two ranks (torch_backend_cases.py)."""
import pathlib
import subprocess
import sys

import pytest

from torch_python import clean_environment

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
OLDEST = (2, 6)
OLDEST_WITH_PLUGINS = (2, 15)  # which has gloo as one
DEADLINE = 300


@pytest.fixture(scope="session")
def version(torch_python):
    """PyTorch's, as numbers."""
    python, more = torch_python
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                          env=clean_environment(**more), text=True, capture_output=True, check=True,
                          timeout=DEADLINE).stdout
    return tuple(int(part) for part in said.split("+")[0].split(".")[:2])


def job(torch_python, folder, script, ranks=2):
    python, more = torch_python
    environment = clean_environment(**more, FLEETRUN_COLLECTIVE_TIMEOUT="30")
    done = subprocess.run([FLEETRUN, f"--nproc_per_node={ranks}", f"--python={python}", *script], cwd=folder,
                          env=environment, text=True, capture_output=True, timeout=DEADLINE,
                          stdin=subprocess.DEVNULL)
    return done, [(folder / "log" / f"workerlog.{rank}").read_text() for rank in range(ranks)]


def test_ddp_fsdp2_and_dtensor_are_bit_for_bit_as_over_gloo(torch_python, version, tmp_path):
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} has not all that is compared; the backend asks for {OLDEST}")
    (tmp_path / "again").mkdir()
    cases = pathlib.Path(__file__).with_name("torch_backend_cases.py")
    done, logs = job(torch_python, tmp_path, [cases, tmp_path])
    assert done.returncode == 0, done.stdout + done.stderr + "".join(logs)
    parts = {"every_call", "coalesced", "sparse", "sparse_rows", "tagged", "told", "ddp", "compiled",
             "uneven", "dtensor"}
    for log in logs:
        for part in parts if version < (2, 8) else parts | {"monitored", "fsdp2"}:
            assert f"ok {part}" in log
        assert "done" in log


@pytest.mark.parametrize("ranks", [2, 4])
def test_models_in_shards_are_as_over_gloo(torch_python, version, tmp_path, ranks):
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} has not all that is compared; the backend asks for {OLDEST}")
    cases = pathlib.Path(__file__).with_name("sharded_cases.py")
    done, logs = job(torch_python, tmp_path, [cases, tmp_path], ranks)
    assert done.returncode == 0, done.stdout + done.stderr + "".join(logs)
    for log in logs:
        assert all(f"ok {part}" in log for part in ("fsdp1", "tensor_parallel")), log
        assert version < (2, 8) or all(f"ok {part}" in log for part in ("fsdp2", "both")), log
        assert "done" in log


def test_what_it_has_not_is_refused_in_words(torch_python, version, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""
import sys
import torch
import torch.distributed as td
try:
    import fleetrun.distributed.torch_backend
except RuntimeError as error:
    print(error.kind, error.what)
    raise SystemExit
sys.modules["ignite"] = sys  # which averages nothing under a backend that it does not know
td.init_process_group("fleetrun")
for call in (lambda: td.all_reduce(torch.ones(2), td.ReduceOp.BAND),
             lambda: td.isend(torch.ones(2), dst=1 - td.get_rank(), tag=-3)):
    try:
        call()
    except RuntimeError as error:
        print(error)
td.destroy_process_group()
""", encoding="utf-8")
    done, logs = job(torch_python, tmp_path, [script])
    assert done.returncode == 0, done.stdout + done.stderr + "".join(logs)
    for log in logs:
        if version < OLDEST:
            assert "backend \"fleetrun\" with PyTorch" in log, log
        else:
            assert "leaves a model alone" in log
            assert "band of an array of torch.float32: only integers have bits to combine" in log, log
            assert "a message with tag=-3" in log, log


GLOO = """
import os
import torch
import torch.distributed as td
try:
    import fleetrun.distributed.torch_backend
except RuntimeError as error:
    print(error.what)
    raise SystemExit
td.init_process_group("gloo")
pair = td.new_group([0, 1], backend="gloo")
values = torch.tensor([td.get_rank() + 1])
td.all_reduce(values)
td.all_reduce(values, group=pair)
print(td.get_backend(), td.get_backend(pair), pair._get_backend_name(), pair.name(), values.item(),
      type(pair).__module__)
for what in ("window", "completion_hooks"):
    assert not getattr(pair, f"supports_{what}", False)
td.barrier()
if os.environ["FLEETRUN_TORCH_GLOO"] != "1":
    os._exit(0)  # PyTorch 2.15's own aborts at times when the interpreter ends
for _ in range(10):
    pair = td.new_group([0, 1])
    td.monitored_barrier(pair)
    td.destroy_process_group(pair)  # at once: nobody's barrier fails for it
"""


@pytest.mark.parametrize("value", ["", "0", "1", "yes"])
def test_groups_of_gloo_are_ours_where_it_is_asked_for(torch_python, version, tmp_path, value):
    (tmp_path / "train.py").write_text(GLOO, encoding="utf-8")
    python, more = torch_python
    done, logs = job((python, {**more, "FLEETRUN_TORCH_GLOO": value}), tmp_path, [tmp_path / "train.py"])
    assert done.returncode == 0, done.stdout + done.stderr + "".join(logs)
    for log in logs:
        if version < OLDEST:
            assert "which is older than 2.6" in log, log
        elif value == "yes":
            assert 'FLEETRUN_TORCH_GLOO="yes" is neither 0 nor 1' in log, log
        elif value == "1" and version < OLDEST_WITH_PLUGINS:
            assert "which makes groups of gloo itself" in log, log
        else:
            home = "fleetrun.distributed.torch_backend" if value == "1" else "torch.distributed"
            assert f"gloo gloo gloo gloo 6 {home}" in log, log


def test_importing_torch_loads_the_backend_only_where_it_is_asked_for():
    """What PyTorch calls at the end of its import, which is tried here without PyTorch."""
    for value, loads in (("", False), ("0", False), ("1", True)):
        code = "from fleetrun._torch_autoload import load; load()"
        done = subprocess.run([sys.executable, "-c", "import sys; sys.modules['torch'] = None\n" + code],
                              env=clean_environment(FLEETRUN_TORCH_GLOO=value), text=True,
                              capture_output=True, timeout=DEADLINE)
        assert (done.returncode, "import torch" in done.stderr) == (int(loads), loads), done.stderr


@pytest.mark.parametrize("way", ["env", "tcp", "file", "store"])
def test_ranks_that_a_script_starts_itself_meet_by_the_store_of_torch(torch_python, version, tmp_path, way):
    """Under no launcher, or (env) under one that knows of a single process."""
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} does not have the backend")
    python, more = torch_python
    script = tmp_path / "train.py"
    script.write_text("""
import os, sys
import torch
import torch.distributed as td
import torch.multiprocessing as mp

def train(rank, port, way):
    import fleetrun.distributed.torch_backend
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    how = {"env": {}, "tcp": {"init_method": f"tcp://127.0.0.1:{port}"},
           "file": {"init_method": f"file://{__file__}.meeting"}}
    how["store"] = {"store": td.FileStore(__file__ + ".meeting", 3)} if way == "store" else {}
    td.init_process_group("fleetrun", rank=rank, world_size=3, **how[way])
    values = torch.tensor([rank + 1])
    td.all_reduce(values)
    pair = td.new_group([0, 2])
    if rank != 1:
        td.broadcast(values, src=2, group=pair)
    td.barrier()
    print(f"rank {td.get_rank()} of {td.get_world_size()}: {values.item()}", flush=True)

if __name__ == "__main__":
    held = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port = held.port
    del held
    mp.spawn(train, (port, sys.argv[1]), nprocs=3)
""", encoding="utf-8")
    command = [FLEETRUN, f"--python={python}"] if way == "env" else [python]
    done = subprocess.run([*command, script, way], cwd=tmp_path, env=clean_environment(**more), text=True,
                          capture_output=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    said += (tmp_path / "log" / "workerlog.0").read_text() if way == "env" else ""
    assert done.returncode == 0, said
    assert all(f"rank {rank} of 3: 6" in said for rank in range(3)), said


def test_the_process_group_is_made_again_at_once(torch_python, version, tmp_path):
    """Over env://, whose store rank 0 opens at the same port each time."""
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} does not have the backend")
    (tmp_path / "train.py").write_text("""
import threading
import time
import torch
import torch.distributed as td
import fleetrun.distributed.torch_backend
for round in range(30):
    td.init_process_group("fleetrun")
    values = torch.tensor([td.get_rank() + 1])
    td.all_reduce(values)
    assert values.item() == 3
    td.all_reduce(torch.ones(1 << 17), async_op=True).wait()
    td.destroy_process_group()
within = time.monotonic() + 30
for thread in threading.enumerate():  # none of those that completed the calls is left
    if thread is not threading.current_thread():
        thread.join(max(within - time.monotonic(), 0))
assert threading.active_count() == 1, threading.enumerate()
print("done")
""", encoding="utf-8")
    done, logs = job(torch_python, tmp_path, [tmp_path / "train.py"])
    everything = done.stdout + done.stderr + "".join(logs)
    assert done.returncode == 0 and all("done" in log for log in logs), everything


AGAIN = """
import os
import torch
import torch.distributed as td
import fleetrun.distributed.torch_backend

rank, size = (int(os.environ[name]) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
files = td.FileStore(__file__ + ".meeting", size)

def total(**how):
    td.init_process_group("fleetrun", **how)
    values = torch.tensor([td.get_rank() + 1])
    td.all_reduce(values)
    here = td.get_rank()
    td.barrier()
    td.destroy_process_group()
    return here, values.item()

def alone():
    return total(rank=0, world_size=1, store=td.HashStore())

for turn in range(2):
    assert alone() == (0, 1)
    assert total() == (rank, 10)
    place = rank % 2
    pair = td.PrefixStore(f"{turn}/{rank // 2}", files)
    assert total(rank=place, world_size=2, store=pair) == (place, 3)
    assert total() == (rank, 10) and total() == (rank, 10)
    place = size - 1 - rank
    assert total(rank=place, world_size=size, store=td.PrefixStore(f"{turn}/turned", files)) == (place, 10)
td.init_process_group("fleetrun")
values = torch.tensor([rank + 1])
import fleetrun.distributed as fd
group = fd.new_group([0, 1, 2, 3])
fd.all_reduce(values.numpy(), group=group)
td.destroy_process_group()
try:
    alone()
except RuntimeError as error:
    print("done", " ".join(str(error).split()))
"""


def test_a_process_is_in_one_world_after_another(torch_python, version, tmp_path):
    """As PyTorch has it, where the groups of the last one were destroyed; others keep it."""
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} does not have the backend")
    (tmp_path / "train.py").write_text(AGAIN, encoding="utf-8")
    done, logs = job(torch_python, tmp_path, [tmp_path / "train.py"], 4)
    everything = done.stdout + done.stderr + "".join(logs)
    assert done.returncode == 0, everything
    for rank, log in enumerate(logs):
        assert f"this is rank 0 of 1, and it has joined as rank {rank} of 4 before" in log, log


def test_who_does_not_come_in_time_is_named(torch_python, version, tmp_path):
    if version < (2, 8):
        pytest.skip(f"PyTorch {version} has no backend, or monitored_barrier for gloo alone")
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
patient, within = [td.new_group([0, 1]) for _ in range(2)], td.BarrierOptions()
within.timeout = second
td.barrier(patient[1])
patient[1].barrier(within)
if rank == 0:
    fails(lambda: td.monitored_barrier(timeout=second))
    fails(lambda: td.monitored_barrier(timeout=datetime.timedelta(0)))
    fails(lambda: td.barrier(barriers[0]))                 # rank 1 has not even met it
    fails(lambda: patient[0].barrier(within))
    fails(lambda: patient[1].barrier(within))
    fails(lambda: td.irecv(torch.ones(2), 1, group=barriers[1], tag=7).wait())
    fails(lambda: td.irecv(torch.ones(2), 1, tag=7).wait(second))
    late, values = td.new_group([0, 1]), torch.ones(1 << 18)
    work = td.all_reduce(values, group=late, async_op=True)
    fails(lambda: work.wait(second))
else:
    late, values = td.new_group([0, 1]), torch.ones(1 << 18)
td.barrier()
if rank == 1:
    work = td.all_reduce(values, group=late, async_op=True)
assert work.wait(30 * second) and work.wait() and values.eq(2).all()  # a wait that was given up ends nothing
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
    for late in said[0][2:5]:
        assert "did not come" in late and " Timed out after 1 s" in late, said
    assert "rank 1 has not sent 8 bytes with tag 7, timeout of 1 s" in said[0][5] == said[0][6], said
    assert "Rank 1 successfully reached monitoredBarrier, but received errors" in said[1][0], said
    assert "a work has Timed out after 1 s" in said[0][7], said
    for last in (said[0][8], said[1][1]):
        assert "was let go" in last or "has left" in last, said


def test_a_group_has_another_time_limit_and_is_aborted(torch_python, version, tmp_path):
    if version < OLDEST:
        pytest.skip(f"PyTorch {version} does not have the backend")
    (tmp_path / "train.py").write_text("""
import datetime
import torch
import torch.distributed as td
import torch.distributed._functional_collectives as functional
import fleetrun.distributed.torch_backend

def fails(call):
    try:
        call()
    except RuntimeError as error:
        print("said:", " ".join(str(error).split()), flush=True)

td.init_process_group("fleetrun")
rank, pair, second = td.get_rank(), [torch.tensor([1.0]), torch.ones(1)], datetime.timedelta(seconds=1)
late, early, gone = [td.new_group([0, 1], timeout=each) for each in (200 * second, second / 2, 200 * second)]
for group in (late, early):
    td.all_reduce(pair[0], group=group)
td.send(pair[0], 1, group=late) if rank == 0 else td.recv(pair[0], 0, group=late)
late.set_timeout(second)
early.set_timeout(100 * second)
assert (late.options._timeout, early.options._timeout) == (second, 100 * second)
if rank == 0:
    fails(lambda: td.recv(pair[0], 1, group=late))
    fails(lambda: td.all_reduce(pair[0], group=late))
td.barrier()
if rank == 1:
    started = td.all_reduce(pair[1], group=early, async_op=True)
    fails(lambda: started.wait(second))                    # longer than its first limit
td.barrier()
if rank == 0:
    td.all_reduce(pair[1], group=early)
else:
    started.wait()
assert pair[1] == 2
is_old = hasattr(td.distributed_c10d, "_shutdown_backend")
gone.register_abort_hook(1, lambda: print("the hook was called", flush=True))
if rank == 0:
    td.barrier()
    expected = td.irecv(torch.ones(1), 1, group=gone)      # neither rank has met the other for a message
    gone.abort()
    fails(lambda: td.all_reduce(pair[0], group=gone))
    fails(expected.wait)
    fails(lambda: td.send(pair[0], 1, group=gone))
else:
    expected = td.irecv(torch.ones(1), 0, group=gone)
    waiting = td.all_reduce(torch.ones(1), group=gone, async_op=True)
    summed = functional.all_reduce(torch.ones(1), "sum", gone)
    td.barrier()
    fails(waiting.wait)
    fails(waiting.wait)
    if not is_old:                                         # native code of PyTorch 2.6 hears of no failure
        fails(lambda: functional.wait_tensor(summed))
    assert waiting.is_completed() and "aborted" in str(waiting.exception())
    fails(expected.wait)
    fails(lambda: td.recv(torch.ones(1), 0, tag=1, group=gone))
td.barrier()
if is_old:                                                 # it aborts groups of NCCL alone
    td.destroy_process_group()
else:
    td.distributed_c10d._abort_process_group()
td.init_process_group("fleetrun")
td.all_reduce(pair[1])
print("done", pair[1].item())
""", encoding="utf-8")
    done, logs = job(torch_python, tmp_path, [tmp_path / "train.py"])
    everything = done.stdout + done.stderr + "".join(logs)
    assert done.returncode == 0 and all("done 4.0" in log for log in logs), everything
    said = [[line for line in log.splitlines() if line.startswith("said:")] for log in logs]
    assert "rank 1 has not sent 4 bytes with tag 0, timeout of 1 s" in said[0][0], said
    assert "did not come" in said[0][1] and "Timed out after 1 s" in said[0][1], said
    assert "a work has Timed out after 1 s" in said[1][0], said
    assert len(said[0]) == 5 and len(said[1]) == (5 if version < (2, 8) else 6), said
    assert all("a rank has aborted group" in failure for failure in (*said[0][2:], *said[1][1:])), said
    assert logs[0].index("the hook was called") < logs[0].index("a rank has aborted"), logs
