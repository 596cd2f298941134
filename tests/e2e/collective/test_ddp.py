"""What PyTorch's tests ask of DistributedDataParallel, asked of fleet.distributed_model (ddp_cases.py)."""
import pathlib
import subprocess
import sys

import pytest

from torch_python import clean_environment

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
DEADLINE = 600


@pytest.mark.parametrize("part, least", [("ddp_means", 32), ("ddp_types", 16), ("ddp_ways", 23),
                                         ("ddp_refusals", 19), ("ddp_beside", 36)])
def test_it_is_as_pytorchs_is(part, least, torch_python, tmp_path):
    python, more = torch_python
    script = pathlib.Path(__file__).with_name("ddp_cases.py")
    environment = clean_environment(**more, FLEETRUN_COLLECTIVE_TIMEOUT="30")
    done = subprocess.run([FLEETRUN, "--nproc_per_node=2", f"--python={python}", script, tmp_path, "ours",
                           part], cwd=tmp_path, env=environment, text=True, capture_output=True,
                          timeout=DEADLINE, stdin=subprocess.DEVNULL)
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert done.returncode == 0 and "done" in log, done.stdout + done.stderr + log
    assert "FAILED" not in log, log
    assert log.count("ok ") + log.count("n/a ") >= least, log
