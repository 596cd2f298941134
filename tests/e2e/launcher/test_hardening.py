"""What is installed lacks nothing that keeps a fault in it from being used (tests/support/elf.py), and has no
way to leave a defence out."""

import pathlib
import platform
import re
import subprocess
import sys

import pytest

from elf import weaknesses
from fleetrun_job import ROOT, find_fleetrun


def modules():
    """The package's native modules."""
    code = "import fleetrun, pathlib; print(pathlib.Path(fleetrun.__file__).resolve().parent)"
    package = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    places = [pathlib.Path(package.strip()), *(pathlib.Path(place) / "fleetrun" for place in sys.path)]
    return sorted({path.resolve() for place in places for path in place.glob("_*.so")})


def installed():
    folder = pathlib.Path(find_fleetrun()).parent
    programs = [path.resolve() for path in sorted(folder.glob("fleetrun*")) if path.is_file()]
    return [path for path in [*programs, *modules()] if path.read_bytes()[:4] == b"\x7fELF"]


def test_there_is_something_to_look_at():
    names = {path.name.split(".")[0] for path in installed()}
    assert {"fleetrun", "fleetrun-init", "fleetrun-log", "_native"} <= names


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors are guarded in other ways")
@pytest.mark.parametrize("path", installed(), ids=lambda path: path.name.split(".")[0])
def test_what_is_installed_is_hardened(path):
    assert weaknesses(path) == []


def test_no_defence_can_be_switched_off():
    model = (ROOT / "THREAT_MODEL.md").read_text(encoding="utf-8").split("## The attacks")[1]
    names = [name.encode() for name in re.findall(r"^\| T\d+ \| .* \| (.*) \|$", model, re.M)]
    assert len(names) > 20
    assert not [(path, name) for path in installed() for name in names if name in path.read_bytes()]
    for program in ROOT.glob("build/tests/attack/attack_test"):
        assert not [name for name in names if name not in program.read_bytes()], "they would not be found"
