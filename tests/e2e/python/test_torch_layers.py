"""Layers of random shapes and arguments beside PyTorch (tests/oracles/torch_layers.py);
skipped where there is no torch."""

import pathlib
import subprocess

import pytest
from torch_python import clean_environment, find_torch_python

ORACLE = pathlib.Path(__file__).parents[2] / "oracles" / "torch_layers.py"
KINDS = ["convolution", "pool", "norm", "recurrence", "attention"]


def test_layers_and_their_gradients_are_pytorchs(tmp_path):
    found = find_torch_python(tmp_path)
    if found is None:
        pytest.skip("no torch here: scripts/setup-debian --tests installs Debian's")
    python, environment = found
    done = subprocess.run([python, ORACLE, "20"], text=True, capture_output=True, timeout=300,
                          env=clean_environment(**environment), stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"{kind}: 20 cases" for kind in KINDS]
