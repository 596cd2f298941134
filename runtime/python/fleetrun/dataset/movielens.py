"""paddle.dataset.movielens: what users think of films. File: DATA_HOME/movielens/ml-1m.zip."""

from __future__ import annotations

import functools
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from fleetrun import _lazy
from fleetrun.dataset import common

__all__ = [
    "age_table", "fetch", "get_movie_title_dict", "max_job_id", "max_movie_id", "max_user_id",
    "movie_categories", "movie_info", "MovieInfo", "test", "train", "user_info", "UserInfo",
]  # fmt: skip

age_table = [1, 18, 25, 35, 45, 50, 56]


class MovieInfo:
    """A film: number, categories and title."""

    def __init__(self, index: int | str, categories: list[str], title: str) -> None:
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self) -> list[Any]:
        """[number, numbers of its categories, numbers of the words of its title]."""
        categories, words = movie_categories(), get_movie_title_dict()
        return [
            self.index,
            [categories[each] for each in self.categories],
            [words[word.lower()] for word in self.title.split()],
        ]

    def __str__(self) -> str:
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"

    __repr__ = __str__


class UserInfo:
    """A user: number, gender, age (a place in age_table) and job."""

    def __init__(self, index: int | str, gender: str, age: int | str, job_id: int | str) -> None:
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self) -> list[int]:
        """[number, 0 for a man or 1, age, job]."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __str__(self) -> str:
        gender = "M" if self.is_male else "F"
        return (
            f"<UserInfo id({self.index}), gender({gender}), age({age_table[self.age]}), job({self.job_id})>"
        )

    __repr__ = __str__


def _lines(member: str) -> Iterator[list[str]]:
    path = common.local_file("movielens", "ml-1m.zip")
    with zipfile.ZipFile(path) as archive, archive.open(f"ml-1m/{member}.dat") as file:
        for line in file:
            yield line.decode("latin-1").strip().split("::")


@functools.cache
def movie_info() -> dict[int, MovieInfo]:
    """{number: film}."""
    year = re.compile(r"^(.*)\(\d+\)$")
    films = {}
    for index, title, categories in _lines("movies"):
        named = year.match(title)
        films[int(index)] = MovieInfo(index, categories.split("|"), named.group(1) if named else title)
    return films


@functools.cache
def user_info() -> dict[int, UserInfo]:
    """{number: user}."""
    return {int(index): UserInfo(index, gender, age, job) for index, gender, age, job, _ in _lines("users")}


@functools.cache
def get_movie_title_dict() -> dict[str, int]:
    """{word of a title: number}, in alphabetical order."""
    words = {word.lower() for film in movie_info().values() for word in film.title.split()}
    return {word: number for number, word in enumerate(sorted(words))}


@functools.cache
def movie_categories() -> dict[str, int]:
    """{category: number}, in alphabetical order."""
    names = {name for film in movie_info().values() for name in film.categories}
    return {name: number for number, name in enumerate(sorted(names))}


def max_movie_id() -> int:
    """The largest number of a film."""
    return max(movie_info())


def max_user_id() -> int:
    """The largest number of a user."""
    return max(user_info())


def max_job_id() -> int:
    """The largest number of a job."""
    return max(user.job_id for user in user_info().values())


def _reader(is_test: bool, rand_seed: int = 0, test_ratio: float = 0.1) -> Callable[[], Iterator[Any]]:
    def reader() -> Iterator[Any]:
        users, films = user_info(), movie_info()
        numpy.random.seed(rand_seed)
        for user, film, rating, _ in _lines("ratings"):
            if (numpy.random.random() < test_ratio) == is_test:
                yield [*users[int(user)].value(), *films[int(film)].value(), [float(rating) * 2 - 5.0]]

    return reader


def train(**options: Any) -> Callable[[], Iterator[Any]]:
    """A reader of [user, gender, age, job, film, [categories], [title], [rating from -3 to 5]]. options:
    rand_seed, test_ratio."""
    return _reader(False, **options)


def test(**options: Any) -> Callable[[], Iterator[Any]]:
    """A reader of the rest: a tenth of the ratings."""
    return _reader(True, **options)


fetch = common.fetch_files("movielens", "ml-1m.zip")

__getattr__, __dir__ = _lazy.attach(__name__)
