"""Trainings that go on from a checkpoint: where no rank is left that has the state, on another number of
ranks, and after a preemption (exit status 75)."""

import json
import pathlib
import re
import signal
import subprocess

import pytest

from fleetrun_job import find_fleetrun, wait_until
from torch_python import clean_environment

JOB = pathlib.Path(__file__).with_name("resume_job.py")
SHARDED = JOB.with_name("sharded_job.py")
RANKS, EPOCHS, BATCHES, DEADLINE = 2, 4, 3, 180


class Runs:
    """Runs of the job in one folder."""

    def __init__(self, torch_python, folder):
        self.python, self.environment = torch_python
        self.folder = folder

    def start(self, *flags, deaths=(), **more):
        environment = {"OUT": str(self.folder), "EPOCHS": str(EPOCHS), "BATCHES": str(BATCHES),
                       "DEATHS": json.dumps(deaths), **more}
        return subprocess.Popen(
            [find_fleetrun(), f"--nproc_per_node={RANKS}", f"--python={self.python}", "--restart_backoff=0",
             *flags, JOB], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, env=clean_environment(**self.environment, **environment))

    def run(self, *flags, **more):
        """(exit status, what fleetrun said)."""
        job = self.start(*flags, **more)
        said, _ = job.communicate(timeout=DEADLINE)
        return job.returncode, said

    def steps(self, rank):
        """[epoch, number] of each step that counted."""
        notes = [json.loads(line) for line in (self.folder / f"{rank}.jsonl").read_text().splitlines()]
        return [[note["epoch"], note["number"]] for note in notes]

    def parameters(self):
        return [(self.folder / f"{rank}.end").read_text() for rank in range(RANKS)]


@pytest.fixture
def runs(torch_python, tmp_path):
    return Runs(torch_python, tmp_path)


@pytest.fixture(scope="module")
def calm(torch_python, tmp_path_factory):
    """The parameters where nothing happens."""
    runs = Runs(torch_python, tmp_path_factory.mktemp("calm"))
    status, said = runs.run()
    assert status == 0, said
    return runs.parameters()


def everybody_dies(batch):
    return [[rank, batch, "drawn"] for rank in range(RANKS)]


def test_where_no_rank_is_left_all_go_on_from_the_newest_checkpoint(runs, calm):
    status, said = runs.run("--on_failure=replace", "--max_restart=1", deaths=everybody_dies(2 * BATCHES + 1))
    assert status == 0, said
    assert "all processes are started again" in said
    assert runs.parameters() == calm
    every = [[epoch, number] for epoch in range(EPOCHS) for number in range(BATCHES)]
    # The first step of the third epoch had counted, and was in no checkpoint.
    assert runs.steps(0) == every[: 2 * BATCHES + 1] + every[2 * BATCHES :]


def test_such_restarts_are_counted(runs):
    deaths = everybody_dies(1) + everybody_dies(BATCHES + 1)
    status, said = runs.run("--on_failure=replace", "--max_restart=1", deaths=deaths)
    assert status == 137, said
    assert said.count("all processes are started again") == 1
    assert "used up" in said, said


def test_a_preempted_job_saves_ends_with_75_and_goes_on(runs, calm):
    for flags in ([], ["--on_failure=replace"]):
        for name in ("checkpoint.pt", *(f"ready.{rank}" for rank in range(RANKS))):
            (runs.folder / name).unlink(missing_ok=True)
        job = runs.start("--signal_map=TERM=drain", *flags, PACE="1.5")
        try:
            ready = [runs.folder / f"ready.{rank}" for rank in range(RANKS)]
            wait_until(lambda: all(path.exists() for path in ready), "steps", DEADLINE)
            job.send_signal(signal.SIGTERM)
            said, _ = job.communicate(timeout=DEADLINE)
        finally:
            job.kill()
        assert job.returncode == 75, said
        before = runs.steps(0)
        status, said = runs.run(*flags)
        assert status == 0, said
        assert runs.parameters() == calm
        # No step is taken twice, and none is left out.
        assert sorted(runs.steps(0)) == [[e, n] for e in range(EPOCHS) for n in range(BATCHES)], before
        for rank in range(RANKS):
            (runs.folder / f"{rank}.jsonl").unlink()


def test_shards_are_loaded_on_another_number_of_ranks(torch_python, tmp_path):
    python, more = torch_python
    found = {}
    for what, ranks in (("save", 3), ("load", 2), ("load", 1), ("load", 4)):
        done = subprocess.run(
            [find_fleetrun(), f"--nproc_per_node={ranks}", f"--python={python}", SHARDED, what,
             tmp_path / "kept"], cwd=tmp_path, text=True, capture_output=True, timeout=DEADLINE,
            env=clean_environment(**more), stdin=subprocess.DEVNULL)
        log = (tmp_path / "log" / "workerlog.0").read_text()
        told = done.stdout + done.stderr + log  # of whichever rank came to it first
        if "is older than" in told or "No module named 'torch.distributed.checkpoint'" in told:
            pytest.skip("this PyTorch is too old")
        assert done.returncode == 0 and "done" in log, told
        found[what, ranks] = re.search(r"digest (\w+)\nafter (\S+)", log).groups()
    assert len({digest for digest, _ in found.values()}) == 1, found
    losses = [float(after) for _, after in found.values()]
    assert max(losses) - min(losses) < 1e-4, losses
