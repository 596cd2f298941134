"""fleetrun.torch's layers do what PyTorch's do, and rows get no gradient that no step asked for."""

import pathlib
import subprocess

import pytest
from flow import LIMIT
from torch_python import clean_environment, find_torch_python


def test_layers_are_pytorchs(tmp_path):
    found = find_torch_python(tmp_path)
    if found is None:
        pytest.skip("no torch here: scripts/setup-debian --tests installs Debian's")
    python, more = found
    script = pathlib.Path(__file__).with_name("torch_embedding_cases.py")
    done = subprocess.run([python, script], capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT,
                          env=clean_environment(**more))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 20 and done.stdout.count("ok ") >= 15, done.stdout
