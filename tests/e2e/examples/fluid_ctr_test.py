"""examples/fluid_ctr: what document 000 shows, in its spellings, under `--compat=paddle`."""
import re

import pytest


@pytest.fixture
def folder(example, python):
    place = example("fluid_ctr")
    made = python(place, "make_data.py")
    assert made.returncode == 0, made.stderr
    return place


def costs(text):
    return [float(cost) for cost in re.findall(r"cost(?:\[1\]:\[| )(\d\.\d+)", text)]


def fell(text, counts):
    """Guessing costs ln 2 = 0.69; single batches jump, so the last quarter is taken together."""
    found = costs(text)
    assert len(found) in counts, text
    last = found[-(len(found) // 4):]
    assert sum(last) / len(last) < 0.6, text


@pytest.mark.parametrize("replicas", ["1", "2"])
def test_replicas_in_one_process(folder, fleetrun, monkeypatch, replicas):
    monkeypatch.setenv("CPU_NUM", replicas)
    run = fleetrun(folder, "--compat=paddle", "--nproc_per_node=1", "train_parallel.py")
    assert run.returncode == 0, run.stdout + run.stderr
    text = (folder / "log" / "workerlog.0").read_text()
    assert f"step 300, {replicas} replicas, cost" in text
    fell(text, [4])


def test_training_from_files(folder, fleetrun):
    run = fleetrun(folder, "--compat=paddle", "--nproc_per_node=1", "train_dataset.py")
    assert run.returncode == 0, run.stdout + run.stderr
    # The first of two threads prints every fifth of its batches;
    # of an epoch's 157 it may get few or nearly all.
    fell((folder / "log" / "workerlog.0").read_text(), range(8, 63))


def test_without_data_the_script_says_how_to_get_it(example, fleetrun):
    folder = example("fluid_ctr")
    run = fleetrun(folder, "--compat=paddle", "--server_num=1", "--trainer_num=1", "train_ps.py")
    assert run.returncode == 1 and "hint: python make_data.py writes them" in run.stdout + run.stderr


@pytest.mark.parametrize("mode", ["sync", "half_async", "async", "geo"])
def test_parameter_servers(folder, fleetrun, mode):
    run = fleetrun(folder, "--compat=paddle", "--server_num=1", "--trainer_num=2", "train_ps.py", mode)
    assert run.returncode == 0, run.stdout + run.stderr
    for rank in (0, 1):
        fell((folder / "log" / f"workerlog.{rank}").read_text(), [60])
