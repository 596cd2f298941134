"""What the tests of the examples share: a copy to run in, and commands as a user types them."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torch_python import clean_environment, find_torch_python

EXAMPLES = Path(__file__).parents[3] / "examples"
# The command and the interpreter that were installed together.
FLEETRUN = Path(sys.executable).parent / "fleetrun"
DEADLINE = 300


@pytest.fixture
def example(tmp_path):
    """copy(NAME): a copy of the example, without what earlier runs left in it; where tests run it."""
    def copy(name):
        return shutil.copytree(EXAMPLES / name, tmp_path / name,
                               ignore=shutil.ignore_patterns("data", "log", "model", "__pycache__"))
    return copy


@pytest.fixture
def run():
    """run(FOLDER, COMMAND...): the finished process, its output as text."""
    def start(folder, *command):
        return subprocess.run(list(map(str, command)), cwd=folder, text=True, capture_output=True,
                              timeout=DEADLINE)
    return start


@pytest.fixture
def fleetrun(run):
    """fleetrun(FOLDER, ARGUMENT...): a finished job."""
    return lambda folder, *arguments: run(folder, FLEETRUN, *arguments)


@pytest.fixture
def python(run):
    """python(FOLDER, SCRIPT, ARGUMENT...): a finished script, without a launcher."""
    return lambda folder, *arguments: run(folder, sys.executable, "-B", *arguments)


@pytest.fixture(scope="session")
def torch_python(tmp_path_factory):
    """(interpreter, environment) that have torch and the package."""
    found = find_torch_python(tmp_path_factory.mktemp("packages"))
    return found or pytest.skip("no torch here: scripts/setup-debian --tests installs Debian's")


@pytest.fixture
def torch_fleetrun(torch_python):
    """torch_fleetrun(FOLDER, ARGUMENT...): a finished job whose interpreter has torch."""
    python, environment = torch_python

    def start(folder, *arguments):
        return subprocess.run([FLEETRUN, f"--python={python}", *map(str, arguments)], cwd=folder, text=True,
                              capture_output=True,
                              timeout=DEADLINE, env=clean_environment(**environment))
    return start
