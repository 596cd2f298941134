#!/usr/bin/env python3
"""usage: tests/campaigns/programs.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Draws random programs, 500 a run, and asks that fleetrun gives for each, and for its gradients, what numpy
gives in float64. With PADDLE_PYTHON=PYTHON, an interpreter with paddlepaddle==2.6.2, real Paddle says what is
right instead, also where values are equal and slopes a matter of taste. 200 runs are 100,000 programs. What
fails is made small and printed as a script (tests/oracles/fuzz_programs.py); the interpreter beside the
fleetrun that is tested runs it.
"""

import collections
import os
import pathlib
import re
import subprocess

import campaign

EACH = 500
counts = collections.Counter()


def run(turn):
    python = pathlib.Path(turn.options.fleetrun).parent / "python"
    script = campaign.ROOT / "tests" / "oracles" / "fuzz_programs.py"
    words = ["--seed", str(1 + (turn.options.seed * 1000 + turn.number) * EACH), "--count", str(EACH)]
    other = os.environ.get("PADDLE_PYTHON")
    done = subprocess.run(
        [python, script, *words, *(["--against", other] if other else [])],
        text=True,
        capture_output=True,
        env=turn.environment(),
        cwd=turn.directory,
        stdin=subprocess.DEVNULL,
    )
    lines = done.stdout.splitlines()
    for count, name in re.findall(r"(\d+) ([^,]+)", lines[-1] if lines else ""):
        counts[name] += int(count)
    return None if done.returncode == 0 else done.stdout + done.stderr


def summary():
    return ", ".join(f"{count} {name}" for name, count in counts.items())


if __name__ == "__main__":
    campaign.main(__doc__, run, count=200, summary=summary)
