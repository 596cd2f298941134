"""Attacks on the Python package and on how programs are built, with the defence and without it: T2, T21."""
import importlib
import inspect
import pickle
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from elf import HARDENING, weaknesses  # noqa: E402


def without(name, defence, left):
    """A copy of the module in which the text `defence` reads `left`."""
    module = importlib.import_module(name)
    source = inspect.getsource(module)
    assert defence in source, "what was left out is not there"
    copy = type(module)(name)
    exec(compile(source.replace(defence, left), module.__file__, "exec"), copy.__dict__)
    return copy


class Payload:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("defended", [True, False])
def test_T2_an_object_of_another_rank_runs_code_here(tmp_path, defended):
    name = "fleetrun.distributed._objects"
    module = importlib.import_module(name) if defended else without(name, "if not allow_pickle:", "if False:")
    try:
        module.from_bytes(b"P" + pickle.dumps(Payload(tmp_path / "ran")), False)
    except Exception as error:
        assert "did not allow it" in str(error), error
    assert (tmp_path / "ran").exists() != defended


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no compiler")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors are guarded in other ways")
@pytest.mark.parametrize("left_out", [None, *HARDENING])
def test_T21_a_program_that_lacks_a_hardening_is_installed(tmp_path, left_out):
    source = tmp_path / "program.cc"
    source.write_text("""
#include <cstdio>
#include <cstring>
#include <unistd.h>
namespace fleetrun {
int take(char* into, const char* from, char** list) {
  char copy[64];
  std::strcpy(copy, from);
  std::snprintf(copy, 32, "%s%p", from, static_cast<void*>(list));
  return std::strcmp(copy, into) + static_cast<int>(::read(0, copy, std::strlen(from)));
}
}
int main(int count, char** words) { return fleetrun::take(words[0], words[count - 1], words); }
""")
    flags = [flag for name, (on, off) in HARDENING.items() for flag in (off if name == left_out else on)]
    program = tmp_path / "program"
    subprocess.run(["g++", "-O2", source, "-o", program, *flags], check=True, capture_output=True)
    assert weaknesses(program) == ([left_out] if left_out else [])
