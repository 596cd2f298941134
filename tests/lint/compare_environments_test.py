"""scripts/compare-environments tells what is equal from what is meant to differ and from what is not."""
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare-environments"


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("compare_environments", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_environments", loader))
    loader.exec_module(module)
    return module


PEER = {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:5000,10.0.0.1:5001", "PADDLE_MASTER": "10.0.0.1:5000",
        "POD_NAME": "abcdef",
        "PADDLE_LOG_DIR": "/tmp/x/log", "CUSTOM_DEVICE_ROOT": ""}
OURS = {"PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:7000,127.0.0.1:7001", "PADDLE_MASTER": "127.0.0.1:7000",
        "POD_NAME": "zyxwvu",
        "PADDLE_LOG_DIR": "/tmp/y/log", "FLEETRUN_POD": "zyxwvu", "RANK": "0"}


def test_ports_names_and_directories_are_equal_by_shape(script, capsys):
    assert script.compare("collective", {"trainer 0": PEER}, {"trainer 0": OURS}) == 0
    text = capsys.readouterr().out
    assert "UNEXPECTED" not in text and "CUSTOM_DEVICE_ROOT               intended, only-peer" in text


@pytest.mark.parametrize("change", [
    {"PADDLE_MASTER": "127.0.0.1:7001"},  # another place in the list
    {"PADDLE_MASTER": "127.0.0.1:9000"},
    {"PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:7000"},
    {"POD_NAME": "pod"},
    {"NEW": "1"},
    {"PADDLE_MASTER": None},
])
def test_everything_else_is_unexpected(script, change):
    changed = {name: value for name, value in {**OURS, **change}.items() if value is not None}
    assert script.compare("collective", {"trainer 0": PEER}, {"trainer 0": changed}) > 0


def test_a_process_that_only_one_starts_is_unexpected(script):
    assert script.compare("collective", {"trainer 0": PEER}, {"trainer 0": OURS, "trainer 1": OURS}) == 1
    assert script.intended("ps-numbers", "RANK", "only-ours") is None
