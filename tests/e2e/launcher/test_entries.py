"""The launcher by `python -m`: under its own names, and under Paddle's with the alias package."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from fleetrun_job import ROOT, clean_environment, find_fleetrun

PACKAGE = ROOT / "runtime" / "python"
ALIAS = PACKAGE / "fleetrun" / "_compat"


def run(work, module, *arguments, alias=False, **more):
    """Runs `python -m module` with the fleetrun that is tested on PATH, and none beside the interpreter."""
    bin_directory = work.directory.with_name(work.directory.name + "-path")
    bin_directory.mkdir(exist_ok=True)
    if not (bin_directory / "fleetrun").exists():
        (bin_directory / "fleetrun").symlink_to(pathlib.Path(find_fleetrun()).resolve())
    interpreter = os.path.realpath(sys.executable)
    if (pathlib.Path(interpreter).parent / "fleetrun").exists():
        pytest.skip("another fleetrun is beside this interpreter")
    path = [str(ALIAS), str(PACKAGE)] if alias else [str(PACKAGE)]
    environment = clean_environment(PYTHONPATH=":".join(path), PATH=f"{bin_directory}:/usr/bin:/bin",
                                    PYTHONDONTWRITEBYTECODE="1", **more)
    if alias:
        environment["FLEETRUN_COMPAT"] = "paddle"
    return subprocess.run([interpreter, "-m", module, *arguments], cwd=work.directory, env=environment,
                          capture_output=True, text=True, timeout=30)


OURS = ["fleetrun", "fleetrun.launch", "fleetrun.distributed.launch", "fleetrun.distributed.fleet.launch"]
PADDLES = ["paddle.distributed.launch", "paddle.distributed.fleet.launch"]


@pytest.mark.parametrize("module", OURS + PADDLES)
def test_every_entry_is_the_command(work, module):
    work.script("train.py",
                "import os, sys; print(os.environ['PADDLE_TRAINER_ID'], sys.executable, sys.argv[1:])")
    job = run(work, module, "--log_level=error", "--nproc_per_node=1", "train.py", "--x",
              alias=module in PADDLES)
    assert job.returncode == 0, job.stderr
    assert job.stdout == f"0 {os.path.realpath(sys.executable)} ['--x']\n"


@pytest.mark.parametrize("module", ["fleetrun.launch_ps", "fleetrun.distributed.launch_ps",
                                    "paddle.distributed.launch_ps"])
def test_launch_ps_has_the_flags_of_paddle_1(work, module, ports):
    def plan(*flags):
        job = run(work, module, *flags, "--dry-run=json", "/bin/true", alias=module.startswith("paddle"))
        assert job.returncode == 0, job.stderr
        return json.loads(job.stdout)

    standard = plan("--print_config", "True", "--node_ip=127.0.0.1", "--cluster_node_ips", "127.0.0.1")
    assert [p["role"] for p in standard["processes"]] == ["server"] * 2 + ["trainer"] * 2
    assert standard["log_dir"] == str(work.directory / "logs")
    endpoint = f"127.0.0.1:{ports(1)[0]}"
    named = plan("--worker_num=1", f"--endpoints={endpoint}", "--log_dir", "mine", "--job_id", "ctr")
    assert [p["role"] for p in named["processes"]] == ["server", "trainer"]
    assert named["processes"][0]["environment"]["PADDLE_PSERVERS_IP_PORT_LIST"] == endpoint
    assert named["log_dir"] == str(work.directory / "mine") and named["job_id"] == "ctr"


def test_the_exit_status_is_fleetruns(work):
    assert run(work, "fleetrun.launch", "--nosuch", "x").returncode == 125
    assert run(work, "fleetrun.launch", "/bin/sh", "-c", "exit 7").returncode == 7


def test_without_the_command_it_says_where_it_looked(work):
    interpreter = os.path.realpath(sys.executable)
    environment = {"PATH": "/nosuch", "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
    job = subprocess.run([interpreter, "-m", "fleetrun.launch", "x"], env=environment, capture_output=True,
                         text=True, timeout=30)
    assert job.returncode == 127 and "hint: install it" in job.stderr
