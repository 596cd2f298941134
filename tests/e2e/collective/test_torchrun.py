"""`fleetrun torchrun` behind PyTorch's own functions, by the plug-in of tests/torchrun."""

import json
import pathlib
import subprocess
import sys

import pytest

from torch_python import clean_environment

from fleetrun_job import ROOT, find_fleetrun

CASES = """
import json, pathlib, sys
import torchrun_shim
import torch.distributed.launch, torch.distributed.run
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

def outcome(function, *words):
    try:
        function(list(words))
    except (ChildFailedError, ValueError, SystemExit) as error:
        return type(error).__name__
    return "ran"

def parsed(words):
    torch.distributed.run.run(torch.distributed.run.get_args_parser().parse_args(words))

run, launch, script = torch.distributed.run.main, torch.distributed.launch.main, sys.argv[1]
print(json.dumps([
    outcome(run, "--nproc_per_node=2", script, "average"),
    outcome(run, "--nproc_per_node=2", script, "fail"),
    outcome(run, "--no_python", "--module", script),
    outcome(run, "--start_method=thread", script),
    outcome(launch, "--nproc_per_node=2", script, "local"),
    outcome(launch, "--nproc_per_node=2", "--use_env", script, "average"),
    outcome(parsed, "--nproc_per_node=2", "--standalone", script, "average"),
]))
"""
SCRIPT = """
import os, sys
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    rank = int(os.environ["RANK"])
    assert "FLEETRUN_RANK" in os.environ
    if "local" in sys.argv:
        assert sys.argv[1].lstrip("-").replace("-", "_") == "local_rank=" + os.environ["LOCAL_RANK"]
    if "fail" in sys.argv and rank == 1:
        raise ValueError("rank 1 fails")
    if "average" in sys.argv:
        assert dist.is_torchelastic_launched()
        dist.init_process_group("gloo")
        total = torch.tensor([rank + 1.0])
        dist.all_reduce(total)
        assert total.item() == 3.0
        dist.destroy_process_group()

main()
"""

# Ranks 0 and 1 of a job that the launcher's rank 0 of 2 starts: they meet by themselves, in one environment.
INNER = """
import concurrent.futures, queue, fleetrun.distributed
from fleetrun.distributed._torchrun import meeting_place_of

class Store(dict):
    def add(self, name, more):
        self[name] = self.get(name, 0) + more
        return self[name]
    def __missing__(self, name):
        return self.setdefault(name, queue.Queue())
    def set(self, name, value):
        self[name].put(value.encode())
    def get(self, name, other=None):
        if other is not None:
            return dict.get(self, name, other)
        value = self[name].get(timeout=20)
        self[name].put(value)
        return value

print(fleetrun.distributed.get_rank(), fleetrun.distributed.get_world_size())
store = Store()
with concurrent.futures.ThreadPoolExecutor() as pool:
    places = list(pool.map(lambda rank: meeting_place_of(store, rank, 2, False), range(2)))
print([(place["RANK"], place["WORLD_SIZE"], place["MASTER_PORT"] == places[0]["MASTER_PORT"],
        "PADDLE_TRAINER_ID" in place) for place in places])
"""


@pytest.mark.parametrize("agent, own", [("True", "1 3"), ("False", "0 2")])
def test_ranks_of_a_job_in_a_job_are_not_those_of_the_outer_one(agent, own):
    """torchrun says of itself that it is the inner launcher; else only the store tells who meets."""
    outer = {"FLEETRUN_RANK": "0", "PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "2",
             "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2"}
    inner = {"RANK": "1", "WORLD_SIZE": "3", "TORCHELASTIC_USE_AGENT_STORE": agent}
    done = subprocess.run([sys.executable, "-c", INNER], env=clean_environment(**outer, **inner),
                          capture_output=True, text=True, timeout=60, check=False)
    met = [("0", "2", True, False), ("1", "2", True, False)]
    assert done.stdout.splitlines() == [own, str(met)], done.stderr


def test_pytorchs_functions_start_jobs_by_us(torch_python, tmp_path):
    python, more = torch_python
    (tmp_path / "script.py").write_text(SCRIPT)
    path = [str(ROOT / "tests" / "torchrun"), *filter(None, [more.get("PYTHONPATH")])]
    environment = clean_environment(**more, FLEETRUN=find_fleetrun(), TMPDIR=str(tmp_path))
    environment["PYTHONPATH"] = ":".join(path)
    done = subprocess.run([python, "-c", CASES, pathlib.Path("script.py")], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["ran", "ChildFailedError", "ValueError", "SystemExit",
                                                       "ran", "ran", "ran"]
    assert "ValueError: rank 1 fails" in done.stderr.partition("Root Cause")[2]
