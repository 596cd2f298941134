"""What is installed can be loaded anywhere, has no memory that is both written and executed, no table of
functions that can be written once it runs, and no way to leave a defence out."""

import pathlib
import re
import struct
import subprocess
import sys

import pytest

from fleetrun_job import ROOT, find_fleetrun

LOAD, DYNAMIC, STACK, RELRO = 1, 2, 0x6474E551, 0x6474E552
WRITE, EXECUTE = 2, 1
TEXTREL, FLAGS, FLAGS_1 = 22, 30, 0x6FFFFFFB


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


class Elf:
    """Segments of a program or library of 64 bits, and what its dynamic section says."""

    def __init__(self, path):
        data = path.read_bytes()
        self.type, = struct.unpack_from("<H", data, 16)
        begin, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, begin + i * size) for i in range(count)]
        self.dynamic = {}
        for kind, _, offset, _, _, length, _, _ in self.segments:
            if kind == DYNAMIC:
                self.dynamic = dict(struct.iter_unpack("<QQ", data[offset:offset + length]))

    def flags(self, kind):
        return [segment[1] for segment in self.segments if segment[0] == kind]


def test_there_is_something_to_look_at():
    names = {path.name.split(".")[0] for path in installed()}
    assert {"fleetrun", "fleetrun-init", "fleetrun-log", "_native"} <= names


@pytest.mark.parametrize("path", installed(), ids=lambda path: path.name.split(".")[0])
def test_what_is_installed_is_hardened(path):
    elf = Elf(path)
    assert elf.type == 3, "loaded at a fixed address"
    assert elf.flags(STACK) == [6], "its stack may be executed"
    assert not [flags for flags in elf.flags(LOAD) if flags & WRITE and flags & EXECUTE]
    assert elf.flags(RELRO), "its tables of addresses can be written"
    assert TEXTREL not in elf.dynamic
    assert elf.dynamic.get(FLAGS, 0) & 8 or elf.dynamic.get(FLAGS_1, 0) & 1, "it binds functions as it runs"


def test_no_defence_can_be_switched_off():
    model = (ROOT / "THREAT_MODEL.md").read_text(encoding="utf-8").split("## The attacks")[1]
    names = [name.encode() for name in re.findall(r"^\| T\d+ \| .* \| (.*) \|$", model, re.M)]
    assert len(names) > 20
    assert not [(path, name) for path in installed() for name in names if name in path.read_bytes()]
    for program in ROOT.glob("build/tests/attack/attack_test"):
        assert not [name for name in names if name not in program.read_bytes()], "they would not be found"
