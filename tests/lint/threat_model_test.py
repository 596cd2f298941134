"""THREAT_MODEL.md names each attack of tests/attack and what stops it; each row that is kept has one."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = (ROOT / "THREAT_MODEL.md").read_text(encoding="utf-8")
ROOMS = ("runtime", "dataset", "ps", "collective", "launcher", "cli")


def attacks():
    """(row, attack, defence) of each test in C++; a test may try several words against one defence."""
    for path in sorted((ROOT / "tests/attack").glob("*_test.cc")):
        cases = re.findall(r'TEST_CASE\(\s*"(T\d+): ([^"]*)"(.*?)\n}\n', path.read_text(), re.S)
        for row, name, body in cases:
            defences = re.findall(r'stopped_only_by\(\s*"([^"]*)"', body)
            assert len(defences) == 1, name
            yield row, name, defences[0]


def listed():
    table = MODEL.split("## The attacks")[1].split("\n\n- T2:")[0]
    return re.findall(r"^\| (T\d+) \| (.*?) \| (.*?) \|$", table, re.M)


def test_the_model_lists_the_attacks_that_there_are():
    assert sorted(listed()) == sorted(attacks())


def test_each_defence_in_the_sources_has_an_attack():
    sources = [path for room in ROOMS for path in (ROOT / room).rglob("*.cc")]
    names = {name for path in sources for name in re.findall(r'\bdefends\("([^"]*)"\)', path.read_text())}
    assert names == {defence for _, _, defence in listed()}
    headers = [path for room in ROOMS for path in (ROOT / room).rglob("*.h")]
    assert not [path for path in headers if re.search(r'\bdefends\("', path.read_text())]


def test_each_row_that_is_kept_is_attacked():
    status = dict(re.findall(r"^\| (T\d+) \|.*\| (kept|partly|disclaimed) \|$", MODEL, re.M))
    assert len(status) == 24
    others = MODEL.split("## The attacks")[1].split("\n\n- T2:")[1].split("\n\n##")[0]
    tried = {row for row, _, _ in listed()} | {"T2"} | set(re.findall(r"\bT\d+\b", others))
    assert {row for row, kept in status.items() if kept != "disclaimed"} <= tried
