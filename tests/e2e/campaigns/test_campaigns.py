"""A short cut through each campaign of tests/campaigns; whole ones are run by hand."""

import os
import pathlib
import re
import subprocess
import sys

import hosts_rig
import pytest

from fleetrun_job import clean_environment, find_fleetrun

CAMPAIGNS = pathlib.Path(__file__).resolve().parents[2] / "campaigns"
# others: 10
COUNTS = {"orphans": 24, "ports": 4, "short_lived": 60, "chaos": 4, "ps_kills": 2, "rank_kills": 1,
          "replays": 18, "sentinel": 2, "trainer_kills": 2, "python_hangs": 4, "schedules": 5,
          "ssh_cases": 20, "load": 3, "programs": 2, "ps_jobs": 2, "ps_counts": 2,
          "ps_rules": 2, "check_scripts": 3}
MORE = {"chaos": ["--pause=0.5:1"], "ssh_cases": ["--slack=20"],
        "check_scripts": [f"--from={pathlib.Path(__file__).with_name('paddle_scripts')}"]}


def scripts():
    """Every script of the folder that is a campaign: it says so by using campaign.main
    or printing the last line."""
    return sorted(path for path in CAMPAIGNS.glob("*.py") if os.access(path, os.X_OK))


def test_there_are_campaigns():
    assert {"orphans", "short_lived"} <= {path.stem for path in scripts()}


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_a_short_cut_through_the_campaign(script):
    if script.stem in ("chaos", "schedules", "ssh_cases") and hosts_rig.why_not():
        pytest.skip(hosts_rig.why_not())
    count = COUNTS.get(script.stem, 10)
    done = subprocess.run(
        [sys.executable, str(script), f"--count={count}", "--seed=1", *MORE.get(script.stem, [])],
        env=clean_environment(FLEETRUN_BIN=find_fleetrun(), KILLS="4"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"\d+ runs, 0 failures", done.stdout.splitlines()[-1]), done.stdout


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_the_campaign_explains_itself(script):
    done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ")
    for flag in ("--seed", "--count"):
        assert flag in done.stdout


def test_a_campaign_that_finds_failures_says_how_many_and_ends_with_1(tmp_path):
    fake = tmp_path / "fleetrun"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(CAMPAIGNS / "short_lived.py"), "--count=3", f"--fleetrun={fake}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "3 runs, 3 failures"


NO_CONTAINMENT = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do
  case $1 in --nproc_per_node=*) count=${1#*=} ;; esac
  shift
done
while [ $count -gt 0 ]; do "$@" & count=$((count - 1)); done
wait
"""


def test_the_orphans_of_a_launcher_that_contains_nothing_are_found(tmp_path):
    fake = tmp_path / "fleetrun"
    fake.write_text(NO_CONTAINMENT)
    fake.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(CAMPAIGNS / "orphans.py"), "--count=6", "--seed=1", f"--fleetrun={fake}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "alive after 1.0 s" in done.stdout
