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


def meson(name, result, stdout="", stderr=""):
    return {"name": name, "result": result, "stdout": stdout, "stderr": stderr}


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
    assert lines[0] == f"failed: base ({test['result'].lower()})"
    assert lines[-1] == count


RULE = "=" * 79


def test_failed_doctest_cases_are_named_with_what_they_say(tmp_path):
    stdout = f"""{RULE}
../tests/unit/ps/table/rows_test.cc:46:
TEST CASE:  rows: they stay
  by number

../tests/unit/ps/table/rows_test.cc:98: \x1b[31mERROR: \x1b[0mCHECK( refused ) is NOT correct!
  values: CHECK( false )

{RULE}
../tests/unit/ps/client/steps_test.cc:12:
TEST CASE:  steps go on

../tests/unit/ps/client/steps_test.cc:12: FATAL ERROR: test case CRASHED: SIGABRT - Abort

{RULE}
""" + DOCTEST.format(12, 10, 2)
    _, lines = summary(tmp_path, [meson("ps", "FAIL", stdout, "terminate called\n  what():  no epoch\n")])
    assert lines == [
        "failed: ps (fail)",
        "  case: rows: they stay",
        "    by number",
        "    ../tests/unit/ps/table/rows_test.cc:98: ERROR: CHECK( refused ) is NOT correct!",
        "    values: CHECK( false )",
        "  case: steps go on",
        "    ../tests/unit/ps/client/steps_test.cc:12: FATAL ERROR: test case CRASHED: SIGABRT - Abort",
        "  terminate called",
        "  what():  no epoch",
        "10 passed, 2 failed"]


def test_another_failed_program_is_shown_by_the_end_of_its_output(tmp_path):
    stdout = "".join(f"line {number}\n" for number in range(1000)) + "width: 1 line is too long\n"
    _, lines = summary(tmp_path, [meson("lint", "FAIL", stdout)])
    assert lines[0] == "failed: lint (fail)"
    assert lines[-2:] == ["  width: 1 line is too long", "0 passed, 1 failed"]
    assert len(lines) == 10


def test_a_program_that_fails_everywhere_is_cut_short(tmp_path):
    case = f"{RULE}\na_test.cc:1:\nTEST CASE:  rows\n\na_test.cc:2: ERROR: CHECK( a ) is NOT correct!\n"
    _, lines = summary(tmp_path, [meson("ps", "FAIL", case * 300 + DOCTEST.format(300, 0, 300))])
    assert len(lines) == 23
    assert lines[-2:] == ["  and 290 more cases", "0 passed, 300 failed"]


def test_pytest_failures_and_errors_are_named(tmp_path):
    junit = ('<testcase classname="e2e" name="a"><failure/></testcase>'
             '<testcase classname="e2e" name="b"><error/></testcase>')
    assert summary(tmp_path, [meson("x", "OK")], junit) == (
        1, ["failed: e2e::a", "failed: e2e::b", "1 passed, 2 failed"])


def test_a_missing_result_is_a_failure(tmp_path):
    run = subprocess.run([SCRIPT, tmp_path / "nothing.json"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_a_second_run_replaces_what_failed_and_names_it(tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    late = "fleetrun:unit / late"  # as meson writes it, and does not take it
    tests = [meson("base", "OK"), meson(late, "FAIL", "slow\n"), meson("wrong", "FAIL", "1 != 2\n")]
    first.write_text("".join(json.dumps(test) + "\n" for test in tests))
    second.write_text("".join(json.dumps(test) + "\n" for test in [meson(late, "OK"), tests[2]]))
    names = subprocess.run([SCRIPT, "--failed", first], capture_output=True, text=True, timeout=60)
    assert names.stdout.splitlines() == ["late", "wrong"]
    run = subprocess.run([SCRIPT, first, "--again", second], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert run.stdout.splitlines() == ["unsteady: late failed beside others and passed alone",
                                       "failed: wrong (fail)", "  1 != 2", "2 passed, 1 failed"]


def test_failed_tests_of_pytest_are_named_as_it_takes_them(tmp_path):
    junit = tmp_path / "pytest.xml"
    junit.write_text('<testsuite>'
                     '<testcase classname="tests.e2e.test_a" name="test_b[x-1]"><failure/></testcase>'
                     '<testcase classname="tests.e2e.test_a" name="test_c"/></testsuite>')
    names = subprocess.run([SCRIPT, "--failed", junit], capture_output=True, text=True, timeout=60)
    assert names.stdout.splitlines() == ["tests/e2e/test_a.py::test_b[x-1]"]


def test_a_second_run_that_left_no_result_mends_nothing(tmp_path):
    first = tmp_path / "first.json"
    first.write_text(json.dumps(meson("late", "FAIL", "slow\n")) + "\n")
    run = subprocess.run([SCRIPT, first, "--again", tmp_path / "none.json"], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == 1 and run.stdout.splitlines()[-1] == "0 passed, 2 failed"
