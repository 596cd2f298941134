"""examples/dense_loader: workers that draw pictures, trainers that share them out,
PyTorch in the place of the engine."""
import re
import subprocess
import sys

import pytest


@pytest.fixture
def folder(example):
    return example("dense_loader")


def learned(output):
    accuracy = float(re.search(r"^test accuracy: (\d\.\d+)$", output, re.MULTILINE).group(1))
    assert accuracy > 0.8, output  # guessing gives 0.5


def test_one_process(folder, python):
    run = python(folder, "train.py")
    assert run.returncode == 0, run.stderr
    assert re.findall(r"^trainer 0, epoch (\d): (\d+) batches", run.stdout,
                      re.MULTILINE) == [(str(n), "80") for n in (1, 2, 3, 4)]
    learned(run.stdout)


def test_two_trainers_share_the_pictures(folder, fleetrun):
    run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py")
    assert run.returncode == 0, run.stdout + run.stderr
    for rank in (0, 1):
        text = (folder / "log" / f"workerlog.{rank}").read_text()
        assert re.findall(rf"^trainer {rank}, epoch (\d): (\d+) batches", text,
                          re.M) == [(str(n), "40") for n in (1, 2, 3, 4)]
        learned(text)


def test_pytorch(folder, python):
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("PyTorch is not installed")
    run = python(folder, "train.py", "--to=torch")
    assert run.returncode == 0, run.stderr
    learned(run.stdout)
