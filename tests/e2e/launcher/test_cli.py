"""Help, version, spellings, and what --dry-run prints."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from fleetrun_job import DEADLINE, ROOT, clean_environment, find_fleetrun

GOLDEN = ROOT / "tests" / "golden" / "launcher"
FIXED = ["--job_id=ctr", "--server_num=1", "--trainer_num=1", "--grace=5"]


def normalized(text, work):
    """What differs from run to run is replaced by what it is."""
    text = text.replace(str(work.directory), "DIRECTORY")
    for pod in set(re.findall(r"\bPOD_NAME\W+([a-z]{6})\b", text)):
        text = re.sub(rf"\b{pod}\b", "PODNAM", text)
    ports = {}
    return re.sub(r"127\.0\.0\.1:(\d+)|(?<=PADDLE_PORT=)(\d+)|(?<=PADDLE_PORT\": \")(\d+)",
                  lambda m: port_name(m, ports), text)


def port_name(match, ports):
    port = next(g for g in match.groups() if g)
    name = f"PORT{ports.setdefault(port, len(ports))}"
    return match.group(0).replace(port, name)


def check_golden(name, text):
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("form", ["text", "json", "sh"])
def test_dry_run_prints_the_plan_and_starts_nothing(work, form):
    job = work.run(f"--dry-run={form}", *FIXED, "/bin/echo", "it's", "$HOME")
    assert job.status == 0 and job.err == ""
    assert os.listdir(work.directory) == []
    check_golden(f"dry_run_ps.{form}", normalized(job.out, work))


def test_dry_run_without_a_form_is_text_and_does_not_take_the_script(work):
    job = work.run("--dry-run", *FIXED, "/bin/echo", "it's", "$HOME")
    assert normalized(job.out, work) == (GOLDEN / "dry_run_ps.text").read_text()


def test_the_shell_script_of_a_dry_run_does_the_same(work):
    shell = work.run("--dry-run=sh", "--nproc_per_node=2", "/bin/sh", "-c",
                     'echo "$PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM"').out
    subprocess.run(["/bin/sh"], input=shell, text=True, check=True, env=clean_environment(), timeout=20)
    assert [p.read_text() for p in work.directory.glob("log/*/0/workerlog.1")] == ["1 of 2\n"]


def test_the_json_of_a_dry_run_is_the_plan_that_is_run(work, ports):
    start = ports.in_a_row(2)
    flags = ["--nproc_per_node=2", f"--start_port={start}", "/usr/bin/env"]
    plan = json.loads(work.run("--dry-run=json", *flags).out)
    job = work.run(*flags)
    assert job.status == 0, job.err
    seen = dict(line.split("=", 1) for line in job.log("workerlog.1").splitlines() if "=" in line)
    environment = plan["processes"][1]["environment"]
    for name, value in environment.items():
        if value != "(known at start)":  # a pod's name is drawn anew
            assert seen[name] == value.replace(environment["FLEETRUN_POD"], seen["FLEETRUN_POD"])
    assert seen["PADDLE_CURRENT_ENDPOINT"] == f"127.0.0.1:{start + 1}"


def test_flags_are_written_in_every_documented_way(work):
    ways = [["--trainer_num=2"], ["--trainer-num", "2"], ["--worker_num", "2"], ["--worker-num=2"]]
    for way in ways:
        plan = json.loads(work.run("--dry-run=json", "--server_num", "1", *way, "/bin/true", "--server_num",
                                   "9").out)
        assert [p["role"] for p in plan["processes"]] == ["server", "trainer", "trainer"]
        assert plan["processes"][0]["argv"] == ["/bin/true", "--server_num", "9"]


def test_accepted_flags_of_paddle_change_nothing(work):
    flags = ["--legacy=0", "--sort_ip", "1", "--enable_gpu_log=False", "--rank=-1", "--rank=0", "--nnodes=1",
             "--master=127.0.0.1:6768", "--rank_mapping_path=none.json", "--rank_mapping_file=none.json",
             "--cluster_topo_path=none.json", "--cluster_topo_file=none.json", "--enable_auto_mapping=True"]
    for flag in [["--sort_ip", "1"] if f == "1" else [f] for f in flags if f != "--sort_ip"]:
        job = work.run(*flag, "--max_restart=2", "--elastic_level", "1", "--log_level=debug", "/bin/true")
        assert job.status == 0, job.err
    assert "max_restart: 2" in job.err


def test_help_teaches_and_names_every_flag(work):
    for flag in ("--help", "-h"):
        job = work.run(flag)
        assert job.status == 0 and job.err == ""
        for text in ("usage: fleetrun", "examples:", "--server_num", "--worker_num", "--ready_timeout",
                     "exit status", "125"):
            assert text in job.out
        assert max(map(len, job.out.splitlines())) <= 140


def test_the_schema_of_job_files_is_json(work):
    job = work.run("--job_schema")
    assert job.status == 0 and job.err == ""
    assert {"roles", "max_restart", "$schema"} <= set(json.loads(job.out)["properties"])
    assert work.run("--job-schema").out == job.out


def test_version(work):
    job = work.run("--version")
    assert job.status == 0 and re.fullmatch(r"fleetrun \d+\.\d+\.\d+\n", job.out)
    meson = (ROOT / "meson.build").read_text()
    assert f"version: '{job.out.split()[1]}'" in meson


def test_help_and_version_are_commands_too(work):
    assert work.run("version").out == work.run("--version").out
    assert work.run("help").out == work.run("--help").out
    assert work.run("help", "status").out == work.run("status", "--help").out
    flag = work.run("help", "max-restart")
    assert flag.status == 0 and flag.out.startswith("  --max_restart")
    other = work.run("help", "max_restar")
    assert other.status == 125 and "did you mean max_restart?" in other.err


def test_a_mistyped_command_is_met_with_the_one_that_was_meant(work):
    job = work.run("stauts")
    assert job.status == 127 and "did you mean fleetrun status?" in job.err
    for theirs, ours in (("restart", "ui"), ("signal", "stop"), ("jobs", "list")):
        assert f"did you mean fleetrun {ours}?" in work.run(theirs).err
    assert "did you mean" not in work.run("no_such_program_anywhere").err
    for verb in ("run", "launch"):
        job = work.run(verb, "--nproc_per_node=2", "s.py")
        assert job.status == 127 and "hint: leave it out: flags and script follow" in job.err
    work.script("s.py", "")
    for words in (["to.py"], ["./top"], ["--python=/no/python", "s.py"]):
        assert "did you mean" not in work.run(*words).err, words


@pytest.mark.parametrize("words", [["--help"], ["--dry-run=json", "t.py"], ["status", "--help"], ["version"],
                                   ["--completion=bash"], ["list", "--help"], ["report", "-o", "-"]],
                         ids=" ".join)
def test_what_is_asked_for_and_cannot_be_written_is_no_success(work, words):
    work.script("t.py", "")
    assert work.run("t.py").status == 0
    with open("/dev/full", "wb") as full:
        done = subprocess.run([find_fleetrun(), *words], cwd=work.directory, env=clean_environment(),
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 125 and "standard output cannot be written: No space left" in done.stderr


def test_it_needs_no_library_but_the_c_library(work):
    linked = subprocess.run(["ldd", find_fleetrun()], capture_output=True, text=True).stdout
    assert not re.search("boost|stdc|grpc|proto|python|cuda|nccl|spdlog", linked), linked
    assert pathlib.Path(find_fleetrun()).exists()


def test_the_writer_of_logs_is_nobody_s_command():
    writer = pathlib.Path(find_fleetrun()).resolve().with_name("fleetrun-log")
    done = subprocess.run([writer, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE)
    assert done.returncode == 125 and "fleetrun starts this" in done.stderr
