"""examples/mlp: the same model in one process, on parameter servers, and what collective training answers."""
import re

import pytest


@pytest.fixture
def folder(example):
    return example("mlp")


def costs(output):
    """The printed costs, in order."""
    return [float(cost) for cost in re.findall(r"step\d+ ?cost ?= ?(\d\.\d+)", output)]


def learned(output):
    found = costs(output)
    assert len(found) == 11, output
    # Guessing costs ln 2 = 0.69; single batches jump, so the last three are taken together.
    assert found[0] > 0.6
    assert sum(found[-3:]) / 3 < 0.4


def test_one_process(folder, python):
    run = python(folder, "train_local.py")
    assert run.returncode == 0, run.stderr
    learned(run.stdout)


def test_parameter_server(folder, fleetrun):
    run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train_ps.py")
    assert run.returncode == 0, run.stdout + run.stderr
    for rank in (0, 1):
        text = (folder / "log" / f"workerlog.{rank}").read_text()
        assert f"worker_index: {rank}, step0 cost=" in text
        learned(text)


def test_collective_training_with_one_trainer_is_local_training(folder, fleetrun):
    run = fleetrun(folder, "--nproc_per_node=1", "train_collective.py")
    assert run.returncode == 0, run.stdout + run.stderr
    learned((folder / "log" / "workerlog.0").read_text())


def test_collective_training_with_two_trainers_says_that_there_are_no_collectives(folder, fleetrun):
    run = fleetrun(folder, "--nproc_per_node=2", "train_collective.py")
    assert run.returncode not in (0, 124, 125)
    assert "is_collective=True" in run.stdout + run.stderr
    assert "hint: " in run.stdout + run.stderr
