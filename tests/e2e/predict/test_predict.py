"""fleetrun predict: the numbers that the script itself computed,
in text and in JSON, and what it says of what cannot be."""

import json
import os
import shutil
import subprocess
import sys

import numpy
import pytest
from fleetrun_job import clean_environment, find_fleetrun
from saved_model import DAY, SCRIPT, SLOTS


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """The directory with the models, day.txt, expected.npz and names."""
    directory = tmp_path_factory.mktemp("saved")
    (directory / "day.txt").write_text(DAY)
    (directory / "train.py").write_text(SCRIPT)
    environment = clean_environment(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    if folder := os.environ.get("FLEETRUN_PYTHONPATH"):
        environment["PYTHONPATH"] = folder
    done = subprocess.run([sys.executable, "train.py"], cwd=directory, env=environment, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def predict(saved):
    """Runs it: (exit status, standard output, standard error)."""

    def run(*arguments, cwd=saved, **options):
        done = subprocess.run([find_fleetrun(), "predict", *map(str, arguments)], cwd=cwd,
                              env=clean_environment(),
                              capture_output=True, text=True, timeout=60, **options)
        return done.returncode, done.stdout, done.stderr

    return run


def columns(out):
    """{position: array} of the printed lines."""
    lines = [line.split("\t") for line in out.splitlines()]
    return [numpy.array([[float(word) for word in line[i].split()] for line in lines])
            for i in range(len(lines[0]))]


def test_a_model_with_rows_gives_what_the_script_computed(predict, saved):
    expected = numpy.load(saved / "expected.npz")
    code, out, err = predict("wide", "day.txt", SLOTS)
    assert code == 0, err
    result, summed, pooled, big = columns(out)
    numpy.testing.assert_allclose(result, expected["out"], rtol=1e-6)
    numpy.testing.assert_array_equal(summed.astype("float32"), expected["summed"])
    numpy.testing.assert_array_equal(pooled.astype("float32"), expected["summed"])
    numpy.testing.assert_array_equal(big != 0, expected["big"])
    assert 0 < expected["big"].sum() < len(expected["big"])  # both are there


@pytest.mark.parametrize("batch", [1, 2, 7, 1000])
def test_the_batch_changes_nothing(predict, batch):
    assert predict("wide", "day.txt", SLOTS, "--batch", batch)[1].count("\n") == 7
    assert predict("dense", "day.txt", SLOTS, "--batch", batch)[1] == predict("dense", "day.txt", SLOTS)[1]


def test_without_slots_a_line_has_the_inputs_alone(predict, saved, tmp_path):
    (tmp_path / "x.txt").write_text("".join(" ".join(line.split()[:3]) + "\n" for line in DAY.splitlines()))
    code, out, err = predict("dense", tmp_path / "x.txt")
    assert code == 0, err
    numpy.testing.assert_allclose(columns(out)[0], numpy.load(saved / "expected.npz")["hidden"], rtol=1e-6)


def test_json_names_what_was_fetched(predict, saved):
    names = (saved / "names").read_text().split()
    code, out, err = predict("wide", "day.txt", SLOTS, "--json", f"--fetch={names[0]},{names[1]}")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    expected = numpy.load(saved / "expected.npz")
    assert [list(row) for row in rows] == [names[:2]] * 7
    numpy.testing.assert_allclose([[row[names[0]]] for row in rows], expected["out"], rtol=1e-6)
    numpy.testing.assert_allclose([row[names[1]] for row in rows], expected["summed"], rtol=1e-6)


def test_several_files_and_columnar_ones(predict, saved, work, tmp_path):
    converted = tmp_path / "day.frc"
    job = work.run("data", "convert", saved / "day.txt", SLOTS, "--out", converted)
    assert job.status == 0, job.err
    text = predict("wide", "day.txt", SLOTS)[1]
    assert predict("wide", converted) == (0, text, "")
    assert predict("wide", "day.txt", "day.txt", SLOTS) == (0, text + text, "")


def test_nothing_is_printed_for_an_empty_file(predict, tmp_path):
    (tmp_path / "empty.txt").touch()
    assert predict("dense", tmp_path / "empty.txt", SLOTS) == (0, "", "")


@pytest.mark.parametrize("arguments, told", [
    ([], "usage: fleetrun predict"),
    (["dense"], "there is no FILE to predict on"),
    (["nowhere", "day.txt"], "nowhere.pdmodel cannot be read"),
    (["dense", "day.txt", "--bath=3"], "predict has no flag --bath"),
    (["dense", "day.txt", SLOTS, "--batch=0"], "--batch"),
    (["dense", "none.txt", SLOTS], "none.txt"),
    (["dense", "day.txt", SLOTS, "--fetch=nothing"], "nothing"),
    (["dense", "day.txt", "--slots=x:float32[3],ids:int64[2],bag:int64,label:float32[1]"], "day.txt:1:"),
    (["dense", "day.txt", "--slots=y:float32[2],ids:int64[2],bag:int64,label:float32[1]"],
     "reads 'x', which is not a slot"),
    (["dense", "day.txt", "--slots=x:int64[2],ids:int64[2],bag:int64,label:float32[1]"],
     "slot 'x' has dense int64 values"),
    (["dense", "day.txt"], "day.txt:1:"),
])
def test_what_cannot_be_is_told_in_one_error(predict, arguments, told):
    code, out, err = predict(*arguments)
    if not arguments:
        assert code == 0 and told in out
        return
    assert (code, out) == (125, "") and told in err and err.startswith("fleetrun predict: error: "), err
    assert err.count("error:") == 1


def test_rows_before_a_bad_line_are_printed(predict, tmp_path):
    (tmp_path / "bad.txt").write_text("2 1 2\n2 3 4\n2 x 4\n")
    code, out, err = predict("dense", tmp_path / "bad.txt")
    assert code == 125 and out.count("\n") == 2 and "bad.txt:3:" in err


DEEP = "[" * 200_000 + "]" * 200_000


def damaged(saved, folder, change):
    shutil.copytree(saved / "wide", folder)
    change(folder)
    return folder


@pytest.mark.parametrize("change, told", [
    (lambda f: (f / "model.pdiparams").write_bytes((f / "model.pdiparams").read_bytes()[:-1]),
     "model.pdiparams is damaged"),
    (lambda f: (f / "model.pdiparams").write_bytes(b"\xff" * 40), "model.pdiparams is damaged"),
    (lambda f: (f / "model.pdiparams").unlink(), "model.pdiparams cannot be read"),
    (lambda f: (f / "model.pdmodel").write_text("{}"), "model.pdmodel is not a program of fleetrun"),
    (lambda f: (f / "model.pdmodel").write_text((f / "model.pdmodel").read_text().replace(
        '"concat"', '"concatt"')),
     "model.pdmodel is damaged"),
    (lambda f: (f / "model.pdmodel").write_text('{"format": ' + DEEP + "}"),
     "model.pdmodel is not a program of fleetrun"),
    (lambda f: (f / "model.pdmodel").write_text(
        (f / "model.pdmodel").read_text().rstrip()[:-1] + ', "more": ' + DEEP + "}"),
     "model.pdmodel is not a program of fleetrun"),
    (lambda f: (f / "model.pdiparams").write_bytes(
        len(DEEP).to_bytes(8, "little") + DEEP.encode()), "model.pdiparams is damaged"),
    (lambda f: shutil.rmtree(f / "tables"), "tables holds no saved tables"),
    (lambda f: [p.write_bytes(p.read_bytes()[:-1]) for p in (f / "tables").glob("part-*")], "part-"),
])
def test_a_damaged_model_is_named(predict, saved, tmp_path, change, told):
    folder = damaged(saved, tmp_path / "model", change)
    code, out, err = predict(folder, "day.txt", SLOTS)
    assert (code, out) == (125, "") and told in err, err


def test_a_reader_that_has_seen_enough_is_no_error(predict, saved):
    done = subprocess.run(f"{find_fleetrun()} predict wide day.txt {SLOTS} --batch 1 | head -n 1", shell=True,
                          cwd=saved, env=clean_environment(),
                          capture_output=True, text=True, timeout=60)
    assert done.stderr == "" and done.stdout.count("\n") == 1
