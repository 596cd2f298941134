"""The ten models of tests/models in seconds: on ratings made up so that a user's taste and a film's kind must
be seen together, each is well above the logistic regression of the same features."""

import pathlib
import re
import subprocess
import sys

import pytest
from conftest import environment
from flow import LIMIT

MODELS = pathlib.Path(__file__).parents[2] / "models"
sys.path.insert(0, str(MODELS))

import movielens  # noqa: E402

BASELINES = ["lr_of_fine", "lr_of_like", "lr_of_love"]
NAMES = ["wide_and_deep", "dnn", "fm", "deepfm", "dcn", "xdeepfm", "din", "dssm", "esmm", "mmoe"]


@pytest.fixture(scope="module")
def areas(tmp_path_factory):
    """{(model, label): AUC} of one run of them all."""
    done = subprocess.run([sys.executable, str(MODELS / "train.py"), "all", "--data",
                           str(tmp_path_factory.mktemp("ratings")),
                           "--made-up", "--epochs", "6", "--learning-rate", "0.01"], text=True,
                           capture_output=True,
                          env=environment(), timeout=LIMIT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| (\w+) \| (\w+) \| ([\d.]+) \(", done.stdout, re.MULTILINE)
    return {(model, label): float(area) for model, label, area in rows}


def test_every_model_is_there(areas):
    assert {model for model, _ in areas} == {*BASELINES, *NAMES}
    assert len(areas) == 15


@pytest.mark.parametrize("model", NAMES)
def test_a_model_sees_what_logistic_regression_cannot(areas, model):
    found = {label: area for (name, label), area in areas.items() if name == model}
    assert found
    for label, area in found.items():
        assert area > areas["lr_of_" + label, label] + 0.1, f"{label}: {area}"


def test_a_line_has_what_was_known_before_the_rating():
    user = {"user_id": "u", "age": "31", "gender": "M", "occupation": "artist"}
    items = [{"item_id": name, "release_year": "1990", "class": "Drama Comedy"} for name in "abc"]
    ratings = [("b", 5, 20), ("a", 4, 10), ("c", 2, 30)]
    tables = {"user": [user], "item": items, "inter": [
        {"user_id": "u", "item_id": item, "rating": str(rating), "timestamp": str(time)}
        for item, rating, time in ratings]}
    (found,) = movielens.examples(tables, movielens.Ids())
    films = [fields["item"] for fields, _ in found]
    assert [fields["history"] for fields, _ in found] == [[], films[0], films[1] + films[0]]
    words = movielens.line(*found[1]).split()
    assert len(words) == sum(width + 1 for width in movielens.FIELDS.values()) + 2 * len(movielens.LABELS)
    assert words[-6:] == ["1", "1", "1", "1", "1", "1"]
    assert movielens.line(*found[2]).split()[-6:] == ["1", "0", "1", "0", "1", "0"]


def test_the_test_is_later_than_the_training_of_each_user(tmp_path):
    movielens.write(movielens.made_up(users=3, items=10, ratings=30), tmp_path)
    parts = {part: [line for file in sorted((tmp_path / part).iterdir())
                    for line in file.read_text().splitlines()]
             for part in ("train", "test")}
    assert (len(parts["train"]), len(parts["test"])) == (24, 6)

    def seen(line):
        words = line.split()
        return words[1], sum(word != "0" for word in words[-6 - movielens.FIELDS["history"]:-6])

    most = {}
    for line in parts["train"]:
        user, liked = seen(line)
        most[user] = max(most.get(user, 0), liked)
    assert all(seen(line)[1] >= most[seen(line)[0]] for line in parts["test"])
