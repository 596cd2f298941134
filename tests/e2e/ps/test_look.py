"""`fleetrun ps` looks into the parameter servers of a running job:
a trainer of one's own in C++ (examples/ps_client)."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest

from fleetrun_job import DEADLINE, ROOT, clean_environment, find_fleetrun, wait_until


def example():
    """$PS_CLIENT_EXAMPLE, else the newest one that was built in this checkout."""
    built = sorted(ROOT.glob("build*/examples/ps_client_example"), key=lambda path: path.stat().st_mtime)
    path = os.environ.get("PS_CLIENT_EXAMPLE") or (str(built[-1]) if built else "")
    if not os.path.exists(path):
        pytest.skip("examples/ps_client is not built")
    return path


class Looker:
    """A place for jobs, and `fleetrun ps` beside them."""

    def __init__(self, work, runtime):
        self.work = work
        self.environment = clean_environment(FLEETRUN_RUN_DIR=str(runtime / "fleetrun"))

    def command(self, *arguments, program=None):
        done = subprocess.run(
            [program or find_fleetrun(), *arguments], env=self.environment, capture_output=True, text=True,
            timeout=DEADLINE, cwd=self.work.directory
        )
        return done.returncode, done.stdout, done.stderr

    def ps(self, *arguments):
        code, out, err = self.command("ps", *arguments)
        assert code == 0, err
        return out

    def start(self, *arguments):
        return self.work.start(*arguments, environment=self.environment)

    def train(self, *flags):
        """A job that trains until it is stopped, with figures in its servers."""
        job = self.start("--server_num=2", "--trainer_num=2", *flags, example(), "", "1000000000")
        wait_until(lambda: self.command("ps", "stat")[0] == 0 and self.pushes() > 100,
                   "pushes on the servers")
        return job

    def pushes(self):
        return sum(json.loads(line)["calls"].get("push", {}).get("calls", 0)
                   for line in self.ps("stat", "--json").splitlines())


@pytest.fixture
def looker(work, tmp_path_factory):
    return Looker(work, tmp_path_factory.mktemp("run"))


def test_stat_shows_tables_and_calls_of_every_server(looker):
    looker.train()
    text = looker.ps("stat")
    assert "server 0 of 2: mode async, 2 trainers" in text and "server 1 of 2" in text
    assert text.count("  weights ") == 2
    assert "2 servers, 500 rows, skew 1." in text
    servers = [json.loads(line) for line in looker.ps("stat", "--json").splitlines()]
    assert [server["server"] for server in servers] == [0, 1]
    assert sum(server["tables"][0]["rows"] for server in servers) == 500
    for server in servers:
        calls = server["calls"]["push"]
        assert sum(many for _, many in calls["latency_ns"]) == calls["calls"] and calls["errors"] == 0


def test_watch_shows_what_happened_in_between_until_nobody_reads(looker):
    looker.train()
    watch = subprocess.Popen(
        [find_fleetrun(), "ps", "stat", "--watch"], env=looker.environment, stdout=subprocess.PIPE, text=True,
        cwd=looker.work.directory
    )
    assert watch.stdout.readline().startswith("server 0 of 2")
    watch.stdout.close()
    assert watch.wait(timeout=DEADLINE) == 0


def test_a_server_that_does_not_answer_any_more_is_named(looker):
    looker.train()
    watch = subprocess.Popen(
        [find_fleetrun(), "ps", "stat", "--watch", "--timeout=2"],
        env=looker.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=looker.work.directory,
    )
    assert watch.stdout.readline().startswith("server 0 of 2")
    server = json.loads(looker.command("status", "--json")[1])["processes"][0]["pid"]
    os.kill(server, signal.SIGSTOP)
    try:
        _, err = watch.communicate(timeout=DEADLINE)
    finally:
        os.kill(server, signal.SIGCONT)
    assert watch.returncode == 125
    assert "no answer to a stat within 2000 ms from server 0 at 127.0.0.1:" in err


def test_get_shows_rows_and_makes_none(looker):
    looker.train()
    text = looker.ps("get", "weights", "3", "777777", "9")
    lines = text.splitlines()
    assert lines[0].startswith("3 ") and lines[1] == "777777  no row" and lines[2].startswith("9 ")
    rows = [json.loads(line) for line in looker.ps("get", "weights", "--json", "--", "3", "-1").splitlines()]
    assert rows[0]["found"] and len(rows[0]["values"]) == 1 and abs(rows[0]["values"][0]) < 10
    assert rows[1] == {"key": 2**64 - 1, "found": False}
    assert sum(json.loads(line)["tables"][0]["rows"]
               for line in looker.ps("stat", "--json").splitlines()) == 500
    code, _, err = looker.command("ps", "get", "weight", "3")
    assert code == 125 and "there is no table 'weight'" in err and "weights" in err
    assert looker.ps("shrink") == "weights: 0 rows erased, 500 left\n"


def test_export_saves_what_has_changed_since_a_number_that_it_knows(looker, tmp_path):
    looker.train()
    first = json.loads(looker.ps("export", str(tmp_path / "a"), "--json"))
    assert first["since"] == 0
    text = looker.ps("export", str(tmp_path / "b"), "--since", str(first["number"]))
    number = int(text.removeprefix(f"exported to {tmp_path / 'b'}, number "))
    assert number > first["number"]
    assert f"changes {first['number']} {number}\n" in (tmp_path / "b" / "manifest").read_text()
    code, _, err = looker.command("ps", "export", str(tmp_path / "c"), "--since", "5")
    assert code == 125 and "there is no export 5 of these tables to go on from" in err
    code, _, err = looker.command("ps", "export", str(tmp_path / "b"), "--since", str(number))
    assert code == 125 and "has a save already" in err
    assert looker.ps("export", str(tmp_path / "d"), "--since", str(number)).startswith("exported to ")


def test_the_launcher_shows_the_figures_of_servers_and_serves_them(looker):
    metrics = looker.work.directory / "metrics.sock"
    looker.train(f"--metrics=unix:{metrics}")
    wait_until(lambda: "keys/s" in looker.command("top")[1], "lines of servers in fleetrun top")

    def rows():
        status = json.loads(looker.command("status", "--json")[1])
        assert len(status["servers"]) == 2
        return sum(p["figures"]["tables"][0]["rows"] for p in status["processes"] if p["figures"])

    wait_until(lambda: rows() == 500, "the rows of both servers")
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(metrics))
        asked.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: asked.recv(65536), b"")).decode()
    for rank in (0, 1):
        assert f'fleetrun_ps_rows{{rank="{rank}",table="weights"}}' in text
        assert f'fleetrun_ps_call_seconds_count{{rank="{rank}",call="push"}}' in text


def test_figures_go_with_the_job_also_when_its_servers_are_killed(looker):
    job = looker.train()
    folder = pathlib.Path(looker.environment["FLEETRUN_RUN_DIR"])
    wait_until(lambda: len(list(folder.glob("*.figures"))) == 2, "figures of two servers")
    for server in json.loads(looker.command("status", "--json")[1])["processes"][:2]:
        with contextlib.suppress(ProcessLookupError):  # fleetrun may be faster
            os.kill(server["pid"], signal.SIGKILL)
    job.finish()
    assert list(folder.iterdir()) == []


def test_a_save_from_outside_is_one_that_servers_load(looker):
    looker.train()
    directory = looker.work.directory / "model"
    assert looker.ps("save", str(directory)) == f"saved to {directory}\n"
    assert directory.is_dir() and any(directory.iterdir())


def test_a_job_that_is_looked_at_ends_as_it_would(looker):
    job = looker.start("--server_num=1", "--trainer_num=1", example(), "", "20000")
    wait_until(lambda: looker.command("ps", "stat")[0] == 0, "the job")
    assert job.finish().status == 0


def test_insecure_jobs_are_looked_at_too(looker):
    looker.train("--insecure")
    assert "INSECURE" in looker.command("ps", "stat")[2]


def test_what_cannot_be_looked_at_is_said(looker):
    code, _, err = looker.command("ps", "stat")
    assert code == 125 and "no job" in err.lower()
    looker.work.script("wait.sh", "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.01; done\n", 0o755)
    looker.start("--nproc_per_node=1", "./wait.sh")
    wait_until(lambda: looker.command("status")[0] == 0, "the job")
    code, _, err = looker.command("ps", "stat")
    assert code == 125 and "has no parameter servers" in err and "--server_num" in err
    (looker.work.directory / "go").touch()
    code, _, err = looker.command("ps", "stat", "--endpoints=127.0.0.1:1", "--timeout=0.3")
    assert code == 125 and "no answer within 300 ms from server 0 at 127.0.0.1:1" in err
    code, _, err = looker.command("ps", "stats", "--endpoints=127.0.0.1:1")
    assert code == 125 and "did you mean stat?" in err


def test_help_needs_no_job(looker):
    assert looker.ps().startswith("usage: fleetrun ps COMMAND")
    assert looker.ps("get", "--help").startswith("usage: fleetrun ps get TABLE KEY")


def test_a_fleetrun_without_the_program_says_what_is_missing(looker, tmp_path):
    alone = tmp_path / "alone" / "fleetrun"
    alone.parent.mkdir()
    shutil.copy(pathlib.Path(find_fleetrun()).resolve(), alone)
    code, _, err = looker.command("ps", "stat", program=alone)
    assert code == 125 and "fleetrun-ps" in err and "is not beside fleetrun" in err
