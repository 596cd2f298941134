"""`fleetrun data` in a directory of its own."""

import subprocess

import pytest

from fleetrun_job import clean_environment, find_fleetrun

SLOTS = "--slots=ids:int64,price:float32[2],label:int64[1]"
ROWS = "3 1002 7 45  2 0.5 1e-3  1 0\n1 9 2 1 2 1 1\n2 18446744073709551615 -1 2 nan inf 1 1\n"


@pytest.fixture
def data(tmp_path):
    """Runs it: (exit status, standard output, standard error). rows.txt is there."""

    def run(*arguments, program=None, **options):
        done = subprocess.run([str(program or find_fleetrun()), "data", *arguments], cwd=tmp_path,
                              env=clean_environment(),
                              capture_output=True, text=True, timeout=60, **options)
        return done.returncode, done.stdout, done.stderr

    run.directory = tmp_path
    run.slots = SLOTS
    run.rows = ROWS
    (tmp_path / "rows.txt").write_text(ROWS)
    return run
