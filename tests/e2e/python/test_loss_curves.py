"""The losses of 50 steps are those that Paddle 2.6.2 had from the same parameters
(tests/oracles/loss_curves.py)."""

import json
import pathlib
import subprocess
import sys

from conftest import environment
from flow import LIMIT

TESTS = pathlib.Path(__file__).parents[2]
RECORDED = json.loads((TESTS / "golden" / "training" / "loss_curves.json").read_text(encoding="utf-8"))


def test_every_loss_is_within_a_ten_thousandth_of_paddles():
    done = subprocess.run([sys.executable, str(TESTS / "oracles" / "loss_curves.py"), "run", "fleetrun"],
                          text=True,
                          capture_output=True, env=environment(), timeout=LIMIT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sorted(found) == sorted(RECORDED) and len(RECORDED) == 6
    for name, losses in RECORDED.items():
        assert len(losses) == len(found[name]) == 50, name
        assert sum(losses[-10:]) < sum(losses[:10]), f"{name} learns nothing"
        apart = [abs(one - other) for one, other in zip(found[name], losses)]
        assert max(apart) <= 1e-4, f"{name}: {max(apart)} apart at step {apart.index(max(apart))}"
