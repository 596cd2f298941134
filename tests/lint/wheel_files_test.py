"""`pip install .` takes the tags that pyproject.toml names,
and a wheel made so has places for commands, packages and their data only."""
import json
import os
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL_PLACES = ("{bindir}", "{datadir}", "{py_platlib}", "{py_purelib}")


def installed():
    """(tag, destination) of everything that the build would install, as meson tells it."""
    plan = Path(os.environ.get("MESON_BUILD_ROOT", ROOT / "build"), "meson-info/intro-install_plan.json")
    if not plan.exists():
        pytest.skip("there is no build folder in this checkout")
    kinds = json.loads(plan.read_text())
    return [(file["tag"], file["destination"]) for files in kinds.values() for file in files.values()]


def test_a_wheel_gets_the_commands_and_the_package_and_nothing_that_has_no_place_in_it():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["meson-python"]["args"]["install"]
    tags = tools[0].removeprefix("--tags=").split(",")
    wheel = [place for tag, place in installed() if tag in tags]
    assert [place for place in wheel if not place.startswith(WHEEL_PLACES)] == []
    names = {Path(place).name.split(".")[0] for place in wheel}
    assert {"fleetrun", "fleetrun-init", "_native"} <= names


def test_everything_that_is_installed_has_a_tag():
    assert [place for tag, place in installed() if tag is None] == []
