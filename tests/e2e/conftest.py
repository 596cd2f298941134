"""What every end-to-end test shares: a place to run fleetrun in, and an interpreter."""

import os
import sys

import pytest

from fleetrun_job import Workplace
from reader import Reader


@pytest.fixture
def work(tmp_path):
    place = Workplace(tmp_path)
    yield place
    place.close()


@pytest.fixture
def python():
    """An interpreter by its real path, so that no shim in front of it costs time."""
    return os.path.realpath(sys.executable)


@pytest.fixture
def reader(tmp_path):
    """Who stands in a checkout and types what pages show."""
    someone = Reader(tmp_path)
    yield someone
    someone.close()
