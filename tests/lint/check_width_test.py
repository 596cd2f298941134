"""scripts/check-width: what is too wide, and the two things that cannot be broken."""
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-width"
LONG = "x" * 111


def check(root, path, text):
    """What the check, copied into a tree that has only `text`, says of it."""
    (root / "scripts").mkdir()
    shutil.copy(SCRIPT, root / "scripts")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    run = subprocess.run([root / "scripts" / "check-width"], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout


@pytest.mark.parametrize("path, text", [
    ("launcher/plan.cc", f"int x;\n// {LONG}\n"),
    ("launcher/plan.h", f'const char* kHelp = R"(\n{LONG}\n)";\n'),
    ("runtime/python/fleetrun/a.py", f'x = 1\nTEXT = """\n{LONG}\n"""\n'),
    ("tests/unit/a_test.cc", f"int x;\n// {LONG}\n"),
    ("tests/e2e/test_a.py", f'"""A test.\n{LONG}\n"""\n'),
    ("scripts/x", f"#!/bin/sh\n# {LONG}\n"),
])
def test_a_wide_line_is_named(tmp_path, path, text):
    status, found = check(tmp_path, path, text)
    number = next(number for number, line in enumerate(text.splitlines(), 1) if len(line) > 110)
    assert (status,
            found) == (1, f"{path}:{number}: {len(text.splitlines()[number - 1])} columns; at most 110\n")


@pytest.mark.parametrize("path, text", [
    ("launcher/plan.cc", f"// {'ü' * 107}\n"),
    ("launcher/plan.cc", f"// see https://example.org/{LONG}\n"),
    ("tests/unit/a_test.cc", f'const char* kText = R"({LONG})";\n'),
    ("tests/e2e/test_a.py", f'TEXT = """\n{LONG}\n"""\n'),
    ("README.md", LONG + "\n"),
])
def test_columns_are_characters_and_what_cannot_be_broken_stays(tmp_path, path, text):
    assert check(tmp_path, path, text) == (0, "")
