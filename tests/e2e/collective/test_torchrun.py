"""`fleetrun torchrun` behind PyTorch's own functions, by the plug-in of tests/torchrun."""

import json
import pathlib
import subprocess

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

run, launch, script = torch.distributed.run.main, torch.distributed.launch.main, sys.argv[1]
print(json.dumps([
    outcome(run, "--nproc_per_node=2", script, "average"),
    outcome(run, "--nproc_per_node=2", script, "fail"),
    outcome(run, "--no_python", "--module", script),
    outcome(run, "--start_method=thread", script),
    outcome(launch, "--nproc_per_node=2", script, "local"),
    outcome(launch, "--nproc_per_node=2", "--use_env", script, "average"),
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
                                                       "ran", "ran"]
    assert "ValueError: rank 1 fails" in done.stderr.partition("Root Cause")[2]
