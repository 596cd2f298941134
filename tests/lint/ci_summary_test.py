"""scripts/ci-summary adds up meson's and pytest's results, and never calls a broken run a good one."""
import json
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "ci-summary"
DOCTEST = "[doctest] test cases: {} | {} passed | {} failed | 0 skipped\n[doctest] Status: ...\n"


def summary(tmp_path, tests=None, junit=None):
    files = []
    if tests is not None:
        files.append(tmp_path / "testlog.json")
        files[-1].write_text("".join(json.dumps(test) + "\n" for test in tests))
    if junit is not None:
        files.append(tmp_path / "pytest.xml")
        files[-1].write_text(f"<testsuites><testsuite>{junit}</testsuite></testsuites>")
    run = subprocess.run([SCRIPT, *files], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout.splitlines()


def meson(name, result, stdout=""):
    return {"name": name, "result": result, "stdout": stdout}


def test_doctest_cases_count_one_by_one_and_other_tests_as_one(tmp_path):
    tests = [meson("base", "OK", DOCTEST.format(12, 12, 0)), meson("layers", "OK")]
    assert summary(tmp_path, tests, '<testcase name="a"/>') == (0, ["14 passed, 0 failed"])


def test_skipped_tests_are_said(tmp_path):
    tests = [meson("format", "SKIP"), meson("layers", "OK")]
    junit = '<testcase name="a"><skipped/></testcase>'
    assert summary(tmp_path, tests, junit) == (0, ["1 passed, 0 failed, 2 skipped"])


@pytest.mark.parametrize("test, count", [
    (meson("base", "FAIL", DOCTEST.format(12, 10, 2)), "10 passed, 2 failed"),
    (meson("base", "FAIL", DOCTEST.format(12, 12, 0)), "12 passed, 1 failed"),
    (meson("base", "TIMEOUT"), "0 passed, 1 failed"),
    (meson("base", "ERROR", "killed"), "0 passed, 1 failed"),
])
def test_failures_are_named_and_counted(tmp_path, test, count):
    status, lines = summary(tmp_path, [test])
    assert status == 1
    assert lines == [f"failed: base ({test['result'].lower()})", count]


def test_pytest_failures_and_errors_are_named(tmp_path):
    junit = ('<testcase classname="e2e" name="a"><failure/></testcase>'
             '<testcase classname="e2e" name="b"><error/></testcase>')
    assert summary(tmp_path, [meson("x", "OK")], junit) == (
        1, ["failed: e2e::a", "failed: e2e::b", "1 passed, 2 failed"])


def test_a_missing_result_is_a_failure(tmp_path):
    run = subprocess.run([SCRIPT, tmp_path / "nothing.json"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "0 passed, 1 failed"
