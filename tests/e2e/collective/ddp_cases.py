"""What scripts expect of data parallel training: cases in the classes of PyTorch's own tests of
DistributedDataParallel, for ours and for PyTorch's.

usage: fleetrun --nproc_per_node=2 ddp_cases.py FOLDER ours|torch [PART or CASE ...]

Each case runs in a process of its own, forked from one that has imported torch. The means that gradients are
compared with come from torch.distributed's gloo. Rank 0 prints "ok CASE", "n/a CASE" where this PyTorch lacks
what the case needs, or "FAILED CASE: why".
"""
import contextlib
import importlib
import os
import pathlib
import signal
import sys
import time
import traceback

import torch
import torch.distributed as td

import ddp_beside
import ddp_means
import ddp_refusals
import ddp_types
import ddp_ways
from ddp_side import CASES, Missing, Side

LIMIT = 60
# What the cases' processes need not load again.
LOADED_ONCE = {"ours": ["fleetrun.distributed.fleet", "fleetrun.distributed.parallel.model"], "torch": [],
               "both": ["torch._dynamo", "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"]}
PARTS = (ddp_means, ddp_types, ddp_ways, ddp_refusals, ddp_beside)


def run(name, side_name, folder, number):
    rank, size = (int(os.environ[name]) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    torch.set_num_threads(1)
    td.init_process_group("gloo", init_method=f"file://{folder}/gloo.{number}", rank=rank, world_size=size)
    try:
        side = Side(side_name)
        # A rank that has nothing more to say leaves only when the others have come, and have wrapped too.
        td.barrier()
        CASES[name](side)
        td.barrier()
    except Missing:
        return "n/a"
    except BaseException:
        return "FAILED " + traceback.format_exc(limit=-3)
    return "ok"


def attempt(name, side_name, folder, number, rank):
    """What the case said, in a process of its own that is killed when it does not end."""
    result = folder / f"{number}.{rank}"
    child = os.fork()
    if child == 0:
        text = run(name, side_name, folder, number)
        (folder / f"{number}.{rank}.part").write_text(text)
        os.replace(folder / f"{number}.{rank}.part", result)
        os._exit(0)
    limit = time.monotonic() + LIMIT
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.01)
    if not result.exists():
        result.write_text(f"FAILED it did not end within {LIMIT} s, or died")


def main():
    folder, side_name, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    for module in LOADED_ONCE[side_name] + LOADED_ONCE["both"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    rank, size = (int(os.environ[name]) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    parts = {part.__name__: [name for name, case in CASES.items() if case.__module__ == part.__name__]
             for part in PARTS}
    chosen = [case for name in names or parts for case in parts.get(name, [name])]
    for number, name in enumerate(chosen):
        attempt(name, side_name, folder, number, rank)
        results = [folder / f"{number}.{each}" for each in range(size)]
        while not all(result.exists() for result in results):
            time.sleep(0.01)
        said = [result.read_text() for result in results]
        bad = [f"rank {each}: {text}" for each, text in enumerate(said) if text.startswith("FAILED")]
        if rank == 0:
            print(f"FAILED {name}: {' '.join(bad)}" if bad else f"{said[0]} {name}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
