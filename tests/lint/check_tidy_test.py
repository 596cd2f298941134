"""scripts/check-tidy: which sources it reads, by a clang-tidy of the test's own
that writes down how it was called."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-tidy"
FAKE = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$2" in *bad.cc) echo "$2:1:1: warning: no good [some-check]"; exit 1 ;; esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A tree with a build folder: one source is compiled by itself, two as part of a unit, one not at all."""
    for name in ("scripts", "ps", "build", "bin"):
        (tmp_path / name).mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    for name in ("good.cc", "bad.cc", "other.cc", "left_out.cc"):
        (tmp_path / "ps" / name).write_text("")
    (tmp_path / "build" / "unit_0.cc").write_text('#include "ps/good.cc"\n#include "ps/bad.cc"\n')
    command = "ccache c++ -I.. -Wall -fno-math-errno -fPIC -std=c++20 -MD -MQ x.o -MF x.o.d -o x.o -c {0}"
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(tmp_path / "build"), "file": file, "command": command.format(file)}
         for file in ("unit_0.cc", "../ps/other.cc")]))
    (tmp_path / "bin" / "clang-tidy-14").write_text(FAKE)
    (tmp_path / "bin" / "clang-tidy-14").chmod(0o755)
    return tmp_path


def check(root, *arguments):
    environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "CALLS": str(root / "calls")}
    run = subprocess.run([root / "scripts" / "check-tidy", *arguments], capture_output=True, text=True,
                         timeout=60,
                         env=environment)
    calls = (root / "calls").read_text().splitlines() if (root / "calls").exists() else []
    return run.returncode, run.stdout, calls


def test_a_source_is_read_with_the_words_that_clang_knows(checkout):
    status, said, calls = check(checkout, "ps/other.cc")
    assert (status, said) == (0, "lint: tidy: ok, 1 sources\n")
    assert calls == [f"--quiet {checkout}/ps/other.cc -- -I.. -fPIC -std=c++20"]


def test_a_source_of_a_unit_is_read_as_the_unit_is_and_its_finding_is_shown(checkout):
    status, said, calls = check(checkout, "ps/good.cc", "ps/bad.cc")
    assert status == 1
    assert said == f"{checkout}/ps/bad.cc:1:1: warning: no good [some-check]\nlint: tidy: failed, 2 sources\n"
    assert all(call.endswith("-- -I.. -fPIC -std=c++20") for call in calls) and len(calls) == 2


def test_what_cannot_be_read_is_said_and_what_cannot_run_is_skipped(checkout):
    assert check(checkout, "ps/left_out.cc")[:2] == (0, "ps/left_out.cc is not compiled in this build\n"
                                                        "lint: tidy: ok, 1 sources\n")
    assert check(checkout, "--since=HEAD")[0] == 77
    shutil.rmtree(checkout / "build")
    assert check(checkout, "ps/good.cc")[0] == 77
