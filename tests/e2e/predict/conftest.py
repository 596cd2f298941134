"""Models that a script has saved, and `fleetrun predict` in their directory."""

import os
import subprocess
import sys

import pytest

from fleetrun_job import clean_environment, find_fleetrun
from saved_model import DAY, SCRIPT


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """The directory with the models, day.txt, expected.npz and names."""
    directory = tmp_path_factory.mktemp("saved")
    (directory / "day.txt").write_text(DAY)
    (directory / "train.py").write_text(SCRIPT)
    environment = clean_environment(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    if folder := os.environ.get("FLEETRUN_PYTHONPATH"):
        environment["PYTHONPATH"] = folder
    done = subprocess.run([sys.executable, "train.py"], cwd=directory, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def predict(saved):
    """Runs it: (exit status, standard output, standard error)."""

    def run(*arguments, cwd=saved, **options):
        done = subprocess.run([find_fleetrun(), "predict", *map(str, arguments)], cwd=cwd, env=clean_environment(),
                              capture_output=True, text=True, timeout=60, **options)
        return done.returncode, done.stdout, done.stderr

    return run
