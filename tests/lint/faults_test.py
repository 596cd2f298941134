"""tests/faults.md has each fault from F1 to F77, and the tests that it names are there."""
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TABLE = (TESTS / "faults.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| F(\d+) \| (.*?) \| (.*?) \|$", TABLE, re.M)


def test_each_fault_is_there_once():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 78))


def test_each_test_that_is_named_is_there():
    for number, _, how in ROWS:
        named = re.findall(r"`(\S+?)::(.*?)`", how)
        assert named or "by hand" in how, f"F{number} has no test"
        for path, name in named:
            text = (TESTS / path).read_text(encoding="utf-8")
            # A long name is written in two pieces.
            there = f"def {name}(" if path.endswith(".py") else f'"{name}"'
            assert there in re.sub(r'"\s*\n\s*"', "", text), f"F{number}: {path} has no test {name!r}"
