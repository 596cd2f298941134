"""The manual as it was built in this checkout."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MESON_BUILD_ROOT", ROOT / "build"))


def built(name):
    """A file below man/ that is made when it is built."""
    path = BUILD / "man" / name
    if not path.exists():
        pytest.skip(f"{name} is not built")
    return path
