"""Every name that real models use gives what Paddle 2.6.2 gave: the cases of tests/oracles/names against the
recorded values (tests/golden/engine, tests/oracles/record_names.py)."""

import functools
import json
import pathlib
import subprocess
import sys

import numpy
import pytest
from conftest import environment
from flow import LIMIT

TESTS = pathlib.Path(__file__).parents[2]
GOLDEN = TESTS / "golden" / "engine"
sys.path.insert(0, str(TESTS / "oracles"))

import name_cases  # noqa: E402

CASES = [(subject, name) for subject in name_cases.subjects() for name in name_cases.cases_of(subject)]


@functools.cache
def recorded(subject):
    """What Paddle gave for the cases of a subject."""
    return json.loads((GOLDEN / (subject + ".json")).read_text(encoding="utf-8"))


@functools.cache
def computed(subject):
    """What fleetrun gives for the cases of a subject, all from one process."""
    done = subprocess.run([sys.executable, str(TESTS / "oracles" / "name_cases.py"), "fleetrun", subject],
                          text=True,
                          capture_output=True, env=environment(), timeout=LIMIT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def array_of(described):
    """The array that name_cases.describe() wrote."""
    return numpy.array(described["values"], described["dtype"]).reshape(described["shape"])


@pytest.mark.parametrize("subject, name", CASES, ids=["-".join(case) for case in CASES])
def test_a_case_gives_what_paddle_gave(subject, name):
    found, wanted = computed(subject)[name], recorded(subject)[name]
    assert "error" not in found, found["error"]
    assert sorted(found["values"]) == sorted(wanted["values"])
    relative, absolute = getattr(name_cases.cases_of(subject)[name], "tolerance", (1e-5, 1e-6))
    for key, described in wanted["values"].items():
        value, expected = array_of(found["values"][key]), array_of(described)
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape), key
        exact = expected.dtype.kind != "f"
        numpy.testing.assert_allclose(value, expected, rtol=0 if exact else relative,
                                      atol=0 if exact else absolute, err_msg=key)


def test_what_is_recorded_has_its_case():
    written = {file.stem: list(json.loads(file.read_text(encoding="utf-8")))
               for file in GOLDEN.glob("*.json")}
    assert written == {subject: list(name_cases.cases_of(subject)) for subject in name_cases.subjects()}


def test_every_name_that_models_use_is_used_by_a_case():
    names = (GOLDEN / "names.txt").read_text(encoding="utf-8").split()
    used = {name for subject in name_cases.subjects() for case in recorded(subject).values()
            for name in case["names"]}
    assert len(names) == 138
    assert [name for name in names if name not in used] == []
