"""MovieLens-100k as files that a QueueDataset reads: will this user like this film?

The data is what the PyPI package recbole carries (100,000 ratings of 1,682 films by 943 users; GroupLens
allows research and no redistribution, so it is downloaded with pip and never kept here). `made_up` writes the
same files from a formula, for tests that must not need a network.

A line is one rating as MultiSlot text, each slot a count and its numbers: the FIELDS with their ids, padded
with 0, then the LABELS, 1 or 0. history: the films that the user liked before this rating, latest first. The
last fifth of each user's ratings, by time, is the test,
and the fifth before it may be kept for validation: then the test is not read.
"""
import csv
import io
import random
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "recbole==1.2.1"
FIELDS = {"user": 1, "gender": 1, "age": 1, "occupation": 1, "item": 1, "year": 1, "genres": 4, "history": 10}
LABELS = {"fine": 3, "like": 4, "love": 5}
FILES = 4


def download(cache):
    """The tables of the package by name, each a list of dicts; the archive stays in `cache`."""
    if not list(cache.glob("recbole-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                        "--no-deps",
                        "--dest", str(cache), PACKAGE], check=True)
    with zipfile.ZipFile(next(cache.glob("recbole-*.whl"))) as wheel:
        return {kind: _table(wheel.read(f"recbole/dataset_example/ml-100k/ml-100k.{kind}"))
                for kind in ("inter", "user", "item")}


def _table(content):
    lines = csv.reader(io.StringIO(content.decode("utf-8")), delimiter="\t", quoting=csv.QUOTE_NONE)
    names = [column.split(":")[0] for column in next(lines)]
    return [dict(zip(names, line)) for line in lines]


def made_up(users=60, items=80, ratings=6000, seed=1):
    """Tables like download()'s: a rating depends on how a user's taste and a film's kind go together."""
    draw = random.Random(seed)
    tastes = [draw.randrange(4) for _ in range(users)]
    kinds = [draw.randrange(4) for _ in range(items)]
    pairs = draw.sample([(user, item) for user in range(users) for item in range(items)],
                        min(ratings, users * items))
    return {"inter": [{"user_id": str(user), "item_id": str(item), "timestamp": str(time),
                       "rating": str(draw.choice((4, 5, 5) if tastes[user] == kinds[item] else (1, 2, 3, 4)))}
                      for time, (user, item) in enumerate(pairs)],
            "user": [{"user_id": str(user), "age": "30", "gender": "F", "occupation": "other"}
                     for user in range(users)],
            "item": [{"item_id": str(item), "release_year": "1990", "class": "Drama"}
                     for item in range(items)]}


class Ids:
    """Numbers of features in the order in which they are first seen, from 1."""

    def __init__(self):
        self._known = {}

    def __call__(self, *feature):
        return self._known.setdefault(feature, len(self._known) + 1)

    def __len__(self):
        return len(self._known) + 1


def examples(tables, ids):
    """For each user in turn, (ids by field, rating) of the ratings in order of time."""
    users = {row["user_id"]: row for row in tables["user"]}
    items = {row["item_id"]: row for row in tables["item"]}
    by_user = {}
    for row in sorted(tables["inter"], key=lambda row: (float(row["timestamp"]), row["item_id"])):
        by_user.setdefault(row["user_id"], []).append(row)
    for name, rows in sorted(by_user.items()):
        user, liked, found = users[name], [], []
        for row in rows:
            item = items[row["item_id"]]
            film = ids("item", row["item_id"])
            fields = {"user": [ids("user", name)], "gender": [ids("gender", user["gender"])],
                      "age": [ids("age", int(user["age"]) // 5)],
                      "occupation": [ids("occupation", user["occupation"])],
                      "item": [film], "year": [ids("year", item["release_year"])],
                      "genres": [ids("genre", genre) for genre in item["class"].split()],
                      "history": liked[::-1]}
            found.append((fields, float(row["rating"])))
            if float(row["rating"]) >= LABELS["like"]:
                liked.append(film)
        yield found


def line(fields, rating):
    """One example as MultiSlot text."""
    words = []
    for name, width in FIELDS.items():
        values = (fields[name] + [0] * width)[:width]
        words += [width, *values]
    for least in LABELS.values():
        words += [1, int(rating >= least)]
    return " ".join(map(str, words))


def write(tables, folder, validate=False):
    """Writes train/part-N.txt and test/part-0.txt below `folder`; returns how many ids there are."""
    ids, train, test = Ids(), [], []
    for found in examples(tables, ids):
        end = len(found) - len(found) // 5 if validate else len(found)
        cut = end - len(found) // 5
        train += [line(*example) for example in found[:cut]]
        test += [line(*example) for example in found[cut:end]]
    random.Random(1).shuffle(train)
    parts = {f"train/part-{index}.txt": train[index::FILES] for index in range(FILES)}
    for part, lines in {**parts, "test/part-0.txt": test}.items():
        file = Path(folder) / part
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="ascii")
    (Path(folder) / "ids.txt").write_text(f"{len(ids)}\n", encoding="ascii")
    return len(ids)
