"""fleetrun.torch's layers do what PyTorch's do, and rows get no gradient that no step asked for."""

import pathlib
import subprocess

import pytest
from flow import LIMIT
from torch_python import clean_environment, find_torch_python


@pytest.mark.parametrize("script, least, cases", [("torch_embedding_cases.py", 17, 23),
                                                  ("torch_embedding_beside.py", 13, 15)])
def test_layers_are_pytorchs(script, least, cases, tmp_path):
    found = find_torch_python(tmp_path)
    if found is None:
        pytest.skip("no torch here: scripts/setup-debian --tests installs Debian's")
    python, more = found
    done = subprocess.run([python, pathlib.Path(__file__).with_name(script)], capture_output=True, text=True,
                          cwd=tmp_path, timeout=LIMIT, env=clean_environment(**more))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == cases and done.stdout.count("ok ") >= least, done.stdout
