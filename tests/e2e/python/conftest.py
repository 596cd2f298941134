"""Where the package is, and scripts run as processes of their own.

The package: FLEETRUN_PYTHONPATH (a directory that holds `fleetrun`), else what the interpreter that runs
pytest has installed. Every process ends with its test: by itself, or killed by pid at the end.
"""

import os
import subprocess
import sys

import pytest

# pytest imports files by their path; flow.py is a module of theirs.
sys.path.insert(0, os.path.dirname(__file__))
from flow import LIMIT  # noqa: E402


def environment(**variables):
    """The environment of a script: no variable of a job is inherited, `variables` are added."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PADDLE_", "TRAINING_ROLE", "POD_", "FLEETRUN_"))
             and name != "PYTHONPATH"}
    if folder := os.environ.get("FLEETRUN_PYTHONPATH"):
        clean["PYTHONPATH"] = folder
    clean["PATH"] = os.path.dirname(sys.executable) + os.pathsep + clean.get("PATH", os.defpath)
    clean["PYTHONDONTWRITEBYTECODE"] = "1"
    clean["OMP_NUM_THREADS"] = "1"
    for name, value in variables.items():
        if name == "PYTHONPATH" and "PYTHONPATH" in clean:
            value = f"{value}{os.pathsep}{clean['PYTHONPATH']}"
        clean[name] = str(value)
    return clean


@pytest.fixture
def package():
    """The directory of the package that is tested."""
    found = subprocess.run([sys.executable, "-c", "import fleetrun; print(fleetrun.__path__[0])"], text=True,
                           capture_output=True, env=environment(), timeout=LIMIT, check=True)
    return found.stdout.strip()


@pytest.fixture
def run(tmp_path):
    """run(code, …) runs a script to its end in the test's directory and returns the finished process."""

    def run_script(code, expect=0, **variables):
        script = tmp_path / "script.py"
        script.write_text(code, encoding="utf-8")
        done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment(**variables),
                              text=True,
                              capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        assert done.returncode == expect, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run_script


@pytest.fixture
def start(tmp_path):
    """start(argv, …) starts a process whose output goes to a pipe;
    what is left at the end is killed by pid."""
    started = []

    def start_process(argv, **variables):
        process = subprocess.Popen([str(word) for word in argv], cwd=tmp_path, env=environment(**variables),
                                   text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start_process
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
