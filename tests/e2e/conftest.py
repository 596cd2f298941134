"""What every end-to-end test shares: a place to run fleetrun in, and an interpreter."""

import os
import pathlib
import signal
import sys

import pytest

# tests/support holds what tests import; pytest does not look there by itself.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from fleetrun_job import Workplace  # noqa: E402
from reader import Reader  # noqa: E402


# A shell starts what runs in its background with SIGINT ignored, and what a test starts would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
