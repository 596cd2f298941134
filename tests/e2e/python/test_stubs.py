"""The .pyi beside the package say what the package has."""

import pathlib
import subprocess
import sys

from conftest import environment

SCRIPT = pathlib.Path(__file__).parents[3] / "scripts" / "python-stubs"


def test_they_agree_with_the_package():
    found = subprocess.run([sys.executable, SCRIPT, "--check"], text=True, capture_output=True,
                           env=environment(), timeout=120)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr


def test_they_are_installed_with_the_package(package):
    installed = {path.relative_to(package).as_posix() for path in pathlib.Path(package).rglob("*.pyi")}
    assert installed >= {"__init__.pyi", "_native.pyi", "_operators.pyi", "distributed/fleet/__init__.pyi"}
    assert (pathlib.Path(package) / "py.typed").exists()
