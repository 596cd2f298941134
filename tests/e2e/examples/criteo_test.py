"""examples/criteo: on made data with servers and without, by both readers;
and on real rows of the log, where they are."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[4] / "shared" / "data"
FLEETRUN = Path(sys.executable).parent / "fleetrun"
ROWS = 4000


@pytest.fixture
def folder(example, python):
    copy = example("criteo")
    made = python(copy, "make_data.py", "--rows", ROWS, "--vocabulary", 100)
    assert made.returncode == 0, made.stderr
    return copy


def epochs(run):
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.findall(r"^epoch (\d) of \d: (\d+) examples, \d+ examples/s, loss (0\.\d+), AUC (0\.\d+)$",
                       run.stdout, re.MULTILINE)
    assert found, run.stdout
    return [(int(examples), float(loss), float(auc)) for _, examples, loss, auc in found]


@pytest.mark.parametrize("reader", ["native", "python"])
def test_one_process_learns(folder, python, reader):
    seen = epochs(python(folder, "train.py", "--reader", reader, "--epochs", 3))
    assert [examples for examples, _, _ in seen] == [ROWS] * 3
    assert seen[-1][1] < seen[0][1], "the loss did not fall"
    assert seen[-1][2] > 0.6, "nothing was learned"


def test_one_server_and_two_trainers(folder, fleetrun):
    seen = epochs(fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", "--epochs", 2))
    assert [examples for examples, _, _ in seen] == [ROWS] * 2
    assert sorted(path.name for path in (folder / "log").glob("*log.*")) == ["serverlog.0", "workerlog.0",
                                                                             "workerlog.1"]


def test_a_trainer_without_a_file_says_so(folder, fleetrun):
    run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", "data/part-00.txt")
    assert run.returncode != 0
    assert "1 files are too few for 2 trainers" in run.stdout + run.stderr


@pytest.mark.parametrize("name, rows, form, reader", [
    ("criteo_sample.csv", 200, "csv", "native"), ("criteo_sample.csv", 200, "csv", "python"),
    ("criteo_slots_sample.txt", 80, "slots", "native")])
def test_real_rows_are_read(folder, python, name, rows, form, reader):
    if not (SAMPLES / name).exists():
        pytest.skip(f"{SAMPLES / name} is not there: real rows are not part of this repository")
    seen = epochs(python(folder, "train.py", SAMPLES / name, "--format", form, "--reader", reader, "--epochs",
                         1,
                         "--batch-size", 20))
    assert [examples for examples, _, _ in seen] == [rows]


@pytest.mark.parametrize("source, form", [("made", "log"), ("criteo_sample.csv", "csv")])
def test_both_readers_print_the_same_bytes(folder, source, form):
    file = folder / "data" / "part-00.txt" if source == "made" else SAMPLES / source
    if not file.exists():
        pytest.skip(f"{file} is not there: real rows are not part of this repository")
    texts = []
    for words in ([FLEETRUN, "data", "read", f"--schema=criteo{'_csv' if form == 'csv' else ''}.json"],
                  [sys.executable, "reader.py", *([","] if form == "csv" else [])]):
        with open(file, "rb") as text:
            done = subprocess.run(words, cwd=folder, stdin=text, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0] == texts[1] and texts[0].count(b"\n") == (200 if form == "csv" else ROWS // 4)
