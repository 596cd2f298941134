"""Jobs over a list of hosts, started through an ssh that stands in for the real one
(tests/support/fake_ssh.py)."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import urllib.request

import pytest
from fleetrun_job import ROOT, clean_environment, find_fleetrun, marked_pids, wait_until

FAKE = f"{os.path.realpath(sys.executable)} -IS {ROOT}/tests/support/fake_ssh.py"

REPORT = """
import json, os, sys
names = ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "TRAINING_ROLE", "FAKE_HOST", "FLEETRUN_EPOCH", "GIVEN", "PADDLE_LOCAL_SIZE", "LOCAL_RANK")
print(json.dumps({name: os.environ.get(name) for name in names} | {"argv": sys.argv[1:], "cwd": os.getcwd(), "pid": os.getpid()}))
"""

WAIT = """
import os, signal, sys, time
print("up", os.getpid(), flush=True)
time.sleep(60)
"""


ROLE = """
import os, socket, time
print(os.environ["TRAINING_ROLE"], os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].count(":"), flush=True)
if os.environ["TRAINING_ROLE"] == "PSERVER":
    listening = socket.create_server((os.environ["POD_IP"], int(os.environ["PADDLE_PORT"])))
    time.sleep(60)
"""


class Hosts:
    """fleetrun with a fake ssh, and what came of its logins."""

    def __init__(self, work, python):
        self.work, self.python = work, python
        self.place = work.directory / "fake"
        self.place.mkdir()
        self.settle({})

    def settle(self, config):
        (self.place / "config.json").write_text(json.dumps(config))

    def environment(self, **more):
        return clean_environment(FAKE_SSH=str(self.place), **more)

    def start(self, *arguments, environment=None, **options):
        environment = environment or self.environment()
        return self.work.start("--ssh", FAKE, "--python", self.python, *arguments, environment=environment,
                               **options)

    def run(self, *arguments, seconds=30, **options):
        return self.start(*arguments, **options).finish(seconds)

    def logins(self):
        path = self.place / "logins"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def hosts(work, python):
    return Hosts(work, python)


def lines_of(job):
    """{"h1:trainer 0": what it printed, as JSON}"""
    return {name.strip(): json.loads(text)
            for name, text in (line.split(" | ", 1) for line in job.out.splitlines())}


def test_ranks_are_prefix_sums_over_uneven_slots(hosts, work):
    work.script("report.py", REPORT)
    job = hosts.run("--hosts", "h1,me@h2:3,h3:2", "--nproc_per_node", "1", "--show", "all", "report.py",
                    "--lr", "0.1")
    assert job.status == 0, job.err
    lines = lines_of(job)
    assert sorted(lines) == [f"h{host}:trainer {rank}" for host, rank in ((1, 0), (2, 1), (2, 2), (2, 3),
                                                                          (3, 4), (3, 5))]
    for name, line in lines.items():
        assert line["PADDLE_TRAINER_ID"] == name[-1]
        assert line["PADDLE_TRAINERS_NUM"] == "6"
        assert line["FAKE_HOST"] == name[:2]
        assert line["argv"] == ["--lr", "0.1"]
        assert line["cwd"] == str(work.directory)
    assert lines["h2:trainer 3"]["LOCAL_RANK"] == "2"
    words = {host: call for host, outcome, call in hosts.logins()}
    assert sorted(words) == ["h1", "h2", "h3"]
    assert words["h2"][words["h2"].index("-l") + 1] == "me"
    assert words["h1"][-2:] == ["h1", f"{find_fleetrun()} agent --stdin"]
    assert (work.directory / "log" / "h2" / "workerlog.2").exists()
    assert job.survivors() == set()


def test_only_the_first_trainer_is_shown_as_it_is(hosts, work):
    work.script("say.py",
                "import os; print('rank', os.environ['PADDLE_TRAINER_ID']); print('no end', end='')")
    job = hosts.run("--hosts", "h1:2,h2:2", "say.py")
    assert job.status == 0, job.err
    assert job.out == "rank 0\nno end"


def test_a_host_file_and_this_host_among_others(hosts, work):
    work.script("report.py", REPORT)
    hostfile = work.script("hosts.txt", "# two\r\nlocalhost slots=1\r\nn[01-02] slots=1\r\nspare\n")
    job = hosts.run("--hostfile", hostfile, "--exclude", "spare", "--show", "all", "report.py")
    assert job.status == 0, job.err
    lines = lines_of(job)
    assert sorted(lines) == ["localhost:trainer 0", "n01:trainer 1", "n02:trainer 2"]
    assert lines["localhost:trainer 0"]["FAKE_HOST"] is None
    assert sorted(host for host, _, _ in hosts.logins()) == ["n01", "n02"]


def test_servers_on_one_host_and_trainers_on_others(hosts, work):
    work.script("role.py", ROLE)
    job = hosts.run("--hosts", "h1:servers=1,h2:trainers=2,h3:trainers=1", "--run_mode", "ps", "--show",
                    "all", "role.py")
    assert job.status == 0, job.err
    assert sorted(line.replace("  ", " ") for line in job.out.splitlines()) == [
        "h1:server 0 | PSERVER 1",
        "h2:trainer 0 | TRAINER 1",
        "h2:trainer 1 | TRAINER 1",
        "h3:trainer 2 | TRAINER 1",
    ]
    assert job.survivors() == set()


def test_every_byte_arrives(hosts, work):
    arguments = ["", *(chr(byte).encode("latin-1") for byte in range(1, 256)), bytes(range(1, 256)),
                 "$(touch pwned)", "`id`"]
    arguments += ["a b", "a\nb", "'", '"', "\\", ";", "a;touch pwned", "-x", "--", "*", "64(x2)",
                  '{"a": [1, 2]}', "x" * 100_000, "y" * 100_000]
    wanted = [os.fsencode(a) for a in arguments]
    work.script("bytes.py",
                "import os, sys\nwith open('got', 'wb') as f: f.write(b'\\0'.join(map(os.fsencode, "
                "sys.argv[1:] + [os.environ['ODD'], os.environ['EMPTY']])))\n")
    odd = bytes(range(1, 256))
    environment = {os.fsencode(k): os.fsencode(v)
                   for k, v in hosts.environment(EMPTY="").items()} | {b"ODD": odd}
    name, _, mark = "TEST_MARK=bytes".partition("=")
    import subprocess

    job = subprocess.run(
        [find_fleetrun(), "--ssh", FAKE, "--hosts", "h1", "--export", "ODD,EMPTY", "--python", hosts.python,
         "bytes.py", *wanted],
        cwd=work.directory, env={**environment, name.encode(): mark.encode()}, capture_output=True,
        timeout=30,
    )
    assert job.returncode == 0, job.stderr
    assert (work.directory / "got").read_bytes().split(b"\0") == [*wanted, odd, b""]
    assert not list(work.directory.rglob("pwned"))


def test_variables_and_a_directory_for_the_hosts(hosts, work):
    work.script("report.py", REPORT)
    there = work.directory / "there"
    there.mkdir()
    (there / "report.py").write_text(REPORT)
    environment = hosts.environment(GIVEN="from here", NOT="this")
    job = hosts.run("--hosts", "h1", "--export", "GIV*", "--chdir", there, "--show", "all", "report.py",
                    environment=environment)
    line = lines_of(job)["h1:trainer 0"]
    assert line["GIVEN"] == "from here"
    assert line["cwd"] == str(there)


def test_a_failure_ends_the_job_everywhere_and_is_shown_once(hosts, work):
    work.script("fail.py",
                "import os, sys, time\nif os.environ['PADDLE_TRAINER_ID'] == '2': "
                "sys.exit('out of luck')\ntime.sleep(60)\n")
    job = hosts.run("--hosts", "h1:2,h2:2,h3:1", "fail.py")
    assert job.status == 1
    assert "trainer 2 on h2 exited with 1" in job.err
    assert "on h2:\n" in job.err
    assert job.err.count("first failure: trainer 2 ") == 1
    assert "out of luck" in job.err
    assert job.survivors() == set()


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143),
                                            (signal.SIGHUP, 129)])
def test_a_signal_reaches_every_host(hosts, work, number, status):
    work.script("wait.py", WAIT)
    job = hosts.start("--hosts", "h1,h2", "--show", "all", "wait.py")
    wait_until(lambda: (work.directory / "log/h2/workerlog.0").exists() and "up" in job.log("h2/workerlog.0"),
               "a trainer on h2")
    job.signal(number)
    job.finish()
    assert job.status == status, job.err
    assert job.survivors() == set()


def test_a_second_signal_kills_at_once(hosts, work):
    work.script("stubborn.py",
                "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + WAIT)
    with open(work.directory / "err", "wb") as err:
        job = hosts.start("--hosts", "h1,h2", "--grace", "60", "stubborn.py", stderr=err)
    for host in ("h1", "h2"):
        wait_until(lambda h=host: (work.directory / f"log/{h}/workerlog.0").exists()
                   and "up" in job.log(f"{h}/workerlog.0"), host)
    said = work.directory / "err"
    job.signal(signal.SIGINT)
    wait_until(lambda: "Terminating with signal 2" in said.read_text(), "the first signal is heard")
    job.signal(signal.SIGINT)
    job.process.wait(20)
    assert "Force quit" in said.read_text()
    assert job.process.returncode == 130
    wait_until(lambda: not job.survivors(), "everything gone")


def test_one_host_that_is_down_leaves_nothing_on_the_good_ones(hosts, work):
    hosts.settle({"hosts": {"h2": "timeout", "h4": "host_key", "*": "ok"}})
    work.script("touch.py", "open('ran', 'w')")
    job = hosts.run("--hosts", "h[1-5]", "touch.py")
    assert job.status == 125
    assert (
        "2 of 5 hosts cannot be used; nothing was started, nor on the others:\n    h2: it does not answer" in
        job.err)
    assert "\n    h4: its host key is not known" in job.err
    assert "h1" not in job.err.split("error:")[1]
    assert not list(work.directory.rglob("ran"))
    assert not (work.directory / "log").exists()
    assert job.survivors() == set()


def test_an_elastic_job_does_without_a_host_that_is_down(hosts, work):
    hosts.settle({"hosts": {"h2": "refused", "*": "ok"}})
    work.script("report.py", REPORT)
    job = hosts.run("--hosts", "h1,h2,h3", "--nnodes", "2:3", "--show", "all", "report.py")
    assert job.status == 0, job.err
    assert "h2 is left out: nothing listens at its ssh port" in job.err
    assert sorted(line["FAKE_HOST"] for line in lines_of(job).values()) == ["h1", "h3"]


def test_logins_that_hang_end_in_time(hosts, work):
    hosts.settle({"hosts": {"h1": "hang", "h2": "swallow", "h3": "password", "*": "ok"}})
    work.script("report.py", REPORT)
    job = hosts.run("--hosts", "h1,h2,h3,h4", "--join_timeout", "1", "report.py")
    assert job.status == 125
    assert "3 of 4 hosts cannot be used" in job.err
    assert "h1: no word from fleetrun there within 1 s of the login" in job.err
    assert "h3: ssh is not let in (and passwords are not asked for)" in job.err
    assert job.survivors() == set()


SHELLS = {
    "bash": (["bash"], ".bashrc", "echo hello; printf 'no newline> '; sleep 0.1 & cd /; set -eu\n"),
    "dash": (["dash"], ".profile", ""),
    "ash": (["busybox", "ash"], ".profile", ""),
    "ksh": (["ksh"], ".profile", ""),
    "tcsh": (["tcsh"], ".cshrc", "echo hello; set noclobber; cd /\n"),
    "zsh": (["zsh"], ".zshenv", "echo hello; cd /\n"),
    "fish": (["fish"], ".config/fish/config.fish", "echo hello; cd /\n"),
}


@pytest.mark.parametrize("name", SHELLS)
def test_any_login_shell_starts_a_job_whatever_its_scripts_print(hosts, work, name):
    shell, script, text = SHELLS[name]
    program = shutil.which(shell[0])
    if not program:
        pytest.skip(f"no {shell[0]}")
    hosts.settle({"shell": [program, *shell[1:]], "homes": True})
    for host in ("h1", "h2"):
        (hosts.place / host / script).parent.mkdir(parents=True)
        (hosts.place / host / script).write_text(text)
    work.script("report.py", REPORT)
    job = hosts.run("--hosts", "h1,h2", "--show", "all", "report.py",
                    environment=hosts.environment(LC_ALL="xx_YY.UTF-8"))
    assert job.status == 0, job.err
    assert sorted(line["FAKE_HOST"] for line in lines_of(job).values()) == ["h1", "h2"]


def test_an_account_without_a_shell_is_explained_by_its_own_words(hosts, work):
    hosts.settle({"hosts": {"h1": "closed", "*": "ok"}})
    job = hosts.run("--hosts", "h1,h2", work.script("report.py", REPORT))
    assert job.status == 125
    assert "h1: no agent was started there, the command ended with 1: This account is" in job.err
    hosts.settle({"shell": ["/bin/bash"], "homes": True})
    (hosts.place / "h2").mkdir(exist_ok=True)
    (hosts.place / "h2" / ".bashrc").write_text("exit\n")
    job = hosts.run("--hosts", "h1,h2", "report.py")
    assert job.status == 125
    assert "h2: no agent was started there, the command ended with 0" in job.err
    assert "such as .bashrc, exit?" in job.err


def test_a_connection_that_breaks_stops_what_runs_there_and_the_job(hosts, work):
    hosts.settle({"hosts": {"h2": "drop", "*": "ok"}})
    work.script("wait.py", WAIT)
    job = hosts.start("--hosts", "h1,h2", "wait.py")
    wait_until(lambda: (work.directory / "log/h2/workerlog.0").exists() and "up" in job.log("h2/workerlog.0"),
               "a trainer on h2")
    (hosts.place / "drop-h2").touch()
    job.finish()
    assert job.status == 125, job.err
    assert "LAUNCH ERROR" in job.err and "the connection to h2 broke" in job.err
    wait_until(lambda: not job.survivors(), "everything gone")


def test_a_head_that_is_killed_leaves_nothing(hosts, work):
    work.script("wait.py", WAIT)
    job = hosts.start("--hosts", "h1,h2,localhost", "wait.py")
    for host in ("h1", "h2", "localhost"):
        wait_until(lambda h=host: (work.directory / f"log/{h}/workerlog.0").exists()
                   and "up" in job.log(f"{h}/workerlog.0"), host)
    job.signal(signal.SIGKILL)
    job.finish()
    wait_until(lambda: not job.survivors(), "everything gone")


def test_noise_of_login_scripts_is_no_output(hosts, work):
    hosts.settle({"noise": "Welcome to h1\n\x1b[2J******\nno end of line"})
    work.script("say.py", "print('hello')")
    job = hosts.run("--hosts", "h1", "say.py")
    assert job.status == 0, job.err
    assert job.out == "hello\n"


def test_a_busy_sshd_is_tried_again_and_every_host_starts_once(hosts, work):
    hosts.settle({"refuse": 0.5, "seed": 2})
    work.script("once.py", "import os; open(f'once-{os.environ[\"FAKE_HOST\"]}', 'x')")
    job = hosts.run("--hosts", "n[1-8]", "once.py", seconds=60)
    assert job.status == 0, job.err
    assert len(list(work.directory.glob("once-*"))) == 8
    outcomes = [outcome for _, outcome, _ in hosts.logins()]
    assert outcomes.count("ok") == 8 and outcomes.count("busy") > 0


@pytest.mark.parametrize("without", [["h2"], ["h3"], ["h2", "h3"]])
def test_a_program_that_a_host_lacks_ends_the_job_at_once(hosts, work, without):
    (work.directory / "bin").mkdir()
    work.script("bin/only", "#!/bin/sh\nsleep 60\n", mode=0o755)
    for host in ("h2", "h3"):
        path = "/usr/bin:/bin" + ("" if host in without else f":{work.directory}/bin")
        work.script(f"fleetrun-{host}", f'#!/bin/sh\nPATH={path} exec {find_fleetrun()} "$@"\n', mode=0o755)
    hosts.settle({"path": {host: f"{work.directory}/fleetrun-{host}" for host in ("h2", "h3")}})
    job = hosts.run("--hosts", "h2,h3", "only", seconds=20)
    assert job.status == 127, job.err
    assert "program 'only' is not on PATH" in job.err
    assert any(f"{host} ended with 127" in job.err for host in without), job.err
    wait_until(lambda: not job.survivors(), "everything gone")


def test_fleetrun_that_is_absent_or_another_there(hosts, work):
    work.script("say.py", "print('hello')")
    hosts.settle({"hosts": {"h1": "absent", "*": "ok"}})
    job = hosts.run("--hosts", "h1,h2", "say.py")
    assert job.status == 125
    assert f"h1: there is no {find_fleetrun()}" in job.err and "--path=" in job.err
    job = hosts.run("--hosts", "h2", "--path", "/nonexistent/fleetrun", "say.py")
    assert "h2: there is no /nonexistent/fleetrun" in job.err


@pytest.mark.parametrize(
    "hosts_text, says",
    [
        ("-oProxyCommand=touch pwned", "begins with '-'"),
        ("h1,-oProxyCommand=touch${IFS}pwned", "begins with '-'"),
        ("a;touch pwned", "is not the name of a host"),
        ("$(touch pwned)", "is not the name of a host"),
        ("user@-x", "begins with '-'"),
        ("h1,,h2", "is empty"),
        ("n[0-999999999]", "more than 65536 hosts"),
        ("h1,me@h1", "h1 is in the list twice"),
        ("", "no host is given"),
    ],
)
def test_a_list_that_is_none_is_refused_before_anything_is_started(hosts, work, hosts_text, says):
    work.script("say.py", "print('hello')")
    job = hosts.run("--hosts", hosts_text, "say.py")
    assert job.status == 125
    assert job.err.startswith("fleetrun: error: --hosts: ") and says in job.err
    assert hosts.logins() == [] and not list(work.directory.rglob("pwned"))


def test_a_dry_run_logs_in_nowhere(hosts, work):
    work.script("say.py", "print('hello')")
    job = hosts.run("--hosts", "h1:2,h2:1", "--export", "GIVEN=secret value", "--dry-run", "say.py")
    assert job.status == 0, job.err
    assert "host 1: h2\n" in job.out and "rank 2" in job.out and "GIVEN" in job.out
    assert "secret value" not in job.out
    assert hosts.logins() == []


def test_logs_are_collected_once_however_the_hosts_share_their_files(hosts, work):
    work.script("say.py", "import os; print('I am', os.environ['FAKE_HOST'])")
    job = hosts.run("--hosts", "h1,h2", "--collect_logs", "say.py")  # one file system: nothing to bring
    assert job.status == 0, job.err
    assert job.log("h2/workerlog.0") == "I am h2\n"
    there = work.directory / "there"
    there.mkdir()
    (there / "say.py").write_text("import os; print('I am', os.environ['FAKE_HOST'], 'x' * 300000)")
    job = hosts.run("--hosts", "h1,h2", "--collect_logs", "--chdir", there, "--log_dir", "brought", "say.py")
    assert job.status == 0, job.err
    for host in ("h1", "h2"):
        brought = work.directory / "brought" / host
        assert (brought / "workerlog.0").read_text() == f"I am {host} {'x' * 300000}\n"
        assert (brought / "workerlog.0").read_bytes() == (there / "brought" / host /
                                                          "workerlog.0").read_bytes()
        assert not list(brought.glob(".fleetrun-*"))


def test_a_script_that_is_missing_on_a_host_is_said_with_the_host(hosts, work):
    there = work.directory / "there"
    there.mkdir()
    job = hosts.run("--hosts", "h1,h2", "--chdir", there, "missing.py")
    assert job.status == 127, job.err
    assert "missing.py" in job.err
    job = hosts.run("--hosts", "h1", "--chdir", work.directory / "gone", "missing.py")
    assert job.status == 125
    assert f"directory {work.directory}/gone: No such file or directory" in job.err


@pytest.mark.parametrize("planted", [False, True])
def test_the_secret_is_in_no_command_line_and_no_environment(hosts, work, planted):
    work.script("wait.py", WAIT)
    secret = os.urandom(32)
    (work.directory / "secret").write_text(secret.hex() + "\n")
    (work.directory / "secret").chmod(0o600)
    job = hosts.start("--hosts", "h1,localhost", "--secret_file", work.directory / "secret", "wait.py",
                      environment=hosts.environment(**({"LEAK": secret.hex()} if planted else {})))
    wait_until(lambda: (work.directory / "log/h1/workerlog.0").exists() and "up" in job.log("h1/workerlog.0"),
               "a trainer on h1")
    seen = b""
    for pid in marked_pids(job.mark):
        for what in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                seen += pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
    assert b"wait.py" in seen and secret not in seen
    assert (secret.hex().encode() in seen) == planted, "it is there, or who looks for it would not find it"
    job.signal(signal.SIGTERM)
    job.finish()
    assert job.status == 143


@pytest.mark.parametrize(
    "show, shown",
    [
        ("0,2", ["h1:trainer 0 | 0", "h2:trainer 2 | 2"]),
        ("trainer", ["h1:trainer 0 | 0", "h1:trainer 1 | 1", "h2:trainer 2 | 2", "h2:trainer 3 | 3"]),
        ("none", []),
    ],
)
def test_who_is_shown_is_chosen_over_all_hosts(hosts, work, show, shown):
    work.script("say.py", "import os; print(os.environ['PADDLE_TRAINER_ID'])")
    job = hosts.run("--hosts", "h1:2,h2:2", "--show", show, "say.py")
    assert job.status == 0, job.err
    assert sorted(job.out.splitlines()) == shown


def test_a_rank_that_no_host_has_cannot_be_shown(hosts, work):
    work.script("say.py", "print('hello')")
    job = hosts.run("--hosts", "h1:2,h2:2", "--show", "4", "say.py")
    assert job.status == 125
    assert "--show names trainer 4, and there are 4 of them" in job.err


def test_with_show_fail_only_what_failed_is_shown(hosts, work):
    work.script("fail.py",
                "import os, pathlib, sys, time\nrank = os.environ['PADDLE_TRAINER_ID']\n"
                "print('rank', rank, flush=True)\npathlib.Path(f'up{rank}').touch()\n"
                "while rank == '3' and not all(os.path.exists(f'up{each}') for each in range(4)):\n"
                "    time.sleep(0.01)\n"
                "sys.exit(4) if rank == '3' else time.sleep(60)\n")
    job = hosts.run("--hosts", "h1:2,h2:2", "--show", "fail", "fail.py")
    assert job.status == 4
    assert job.out == "h2:trainer 3 | rank 3\n"


def test_an_agent_that_is_killed_takes_its_launcher_with_it(hosts, work):
    work.script("wait.py", WAIT)
    job = hosts.start("--hosts", "h1,h2", "wait.py")
    wait_until(lambda: (work.directory / "log/h2/workerlog.0").exists() and "up" in job.log("h2/workerlog.0"),
               "a trainer on h2")

    def agent_of_h2():
        for pid in marked_pids("FAKE_HOST=h2"):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if words[1:3] == [b"agent", b"--stdin"] and pid in marked_pids(job.mark):
                return pid
        return None

    os.kill(wait_until(agent_of_h2, "the agent on h2"), signal.SIGKILL)
    job.finish()
    assert job.status == 125, job.err
    assert "the connection to h2 broke" in job.err
    wait_until(lambda: not job.survivors(), "everything gone")


def test_a_reader_that_takes_nothing_keeps_nobody_from_ending(hosts, work):
    work.script("flood.py", "import sys\nfor i in range(20000): sys.stdout.write('x' * 500 + '\\n')\n")
    job = hosts.start("--hosts", "h1,h2", "--show", "all", "flood.py",
                      stderr=open(work.directory / "err", "wb"))
    try:
        job.process.wait(40)
    finally:
        job.process.stdout.close()
    assert job.process.returncode == 0, (work.directory / "err").read_text()
    assert (work.directory / "log/h2/workerlog.0").stat().st_size == 20000 * 501


def test_restarts_are_counted_over_all_hosts(hosts, work):
    work.script("flaky.py",
                "import os, sys\nattempt = os.environ['PADDLE_RESTART_COUNT'] if 'PADDLE_RESTART_COUNT' in "
                "os.environ else os.environ.get('TORCHELASTIC_RESTART_COUNT')\nprint('attempt', attempt)\n"
                "sys.exit(3 if attempt == '0' and os.environ['PADDLE_TRAINER_ID'] == '1' else 0)\n")
    job = hosts.run("--hosts", "h1,h2", "--max_restart", "2", "--restart_backoff", "0", "--show", "all",
                    "flaky.py")
    assert job.status == 0, job.err
    assert "h1:trainer 0 | attempt 1" in job.out and "h2:trainer 1 | attempt 1" in job.out


def test_many_hosts_are_started_by_some_of_them(hosts, work):
    hosts.settle({"nested": True, "exec": True})
    work.script("once.sh", "#!/bin/sh\n: > once-$FAKE_HOST\n", mode=0o755)
    job = hosts.run("--hosts", "n[01-70]:1", "--no_python", "./once.sh", seconds=60)
    assert job.status == 0, job.err
    assert len(list(work.directory.glob("once-*"))) == 70
    assert sorted(host for host, _, _ in hosts.logins()) == [f"n{number:02}" for number in range(1, 71)]
    wait_until(lambda: not job.survivors(), "everything gone")


def test_a_host_that_starts_others_and_breaks_down_takes_them_with_it(hosts, work):
    hosts.settle({"nested": True, "hosts": {"n01": "drop", "*": "ok"}})
    job = hosts.start("--hosts", "n[01-66]:1", "--no_python",
                      work.script("wait.sh", "#!/bin/sh\n: > up-$FAKE_HOST\nexec sleep 60\n", mode=0o755))
    wait_until(lambda: len(list(work.directory.glob("up-*"))) == 66, "66 trainers", 60)
    (hosts.place / "drop-n01").touch()
    job.finish(60)
    assert job.status == 125, job.err
    assert "the connection to n01 broke" in job.err
    wait_until(lambda: not job.survivors(), "everything gone")


def test_what_happens_is_told_once_and_here(hosts, work):
    work.script("die.py", "import os, sys; sys.exit(5 if os.environ['PADDLE_TRAINER_ID'] == '1' else 0)")
    job = hosts.run("--hosts", "h1,h2", "--max_restart=1", "--restart_backoff=0", "--job_id=told",
                    "--on_event=cat >> told; echo $PPID >> by", "die.py")
    assert job.status == 5, job.err
    told = [json.loads(line) for line in (work.directory / "told").read_text().splitlines()]
    assert [each["event"] for each in told] == ["start", "failure", "restart", "failure", "end"]
    assert (told[1]["process"], told[1]["host"], told[1]["exit_status"]) == ("trainer 1", "h2", 5)
    assert told[2]["why"] == "crash, restart 1 of 1"
    assert (told[4]["exit_status"], told[4]["host"]) == (5, "h2") and "trainer 1" in told[4]["why"]
    assert {int(pid) for pid in (work.directory / "by").read_text().split()} == {job.process.pid}
    shown = hosts.run("--hosts", "h1,h2", "--dry-run", "--on_event=cat >> told", "die.py")
    assert "\n  on event   cat >> told\n" in shown.out


def test_a_job_of_oar_logs_in_by_oars_own_command(work):
    work.script("say.py", "print('hello')")
    nodes = work.directory / "nodes"
    nodes.write_text("n1\nn1\nn2\n")
    oarsh = work.directory / "oarsh"
    oarsh.write_text("#!/bin/sh\n")
    environment = clean_environment(OAR_NODEFILE=str(nodes), PATH=f"{work.directory}:{os.environ['PATH']}")
    assert "started by ssh -T" in work.run("--dry-run", "say.py", environment=environment).out
    oarsh.chmod(0o755)
    shown = work.run("--dry-run", "say.py", environment=environment)
    assert "started by oarsh -T" in shown.out and "2 trainers, ranks 0 to 1" in shown.out
    asked = work.run("--dry-run", "--ssh=ssh", "say.py", environment=environment)
    assert "started by ssh -T" in asked.out


def test_each_host_has_a_page_whose_address_is_said_here(hosts, work):
    work.script("t.py", "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)\n")
    with open(work.directory / "said", "w") as said:
        job = hosts.start("--hosts=h1,h2", "--ui", "t.py", stderr=said)
    text = work.directory / "said"
    found = wait_until(lambda: (all_of := re.findall(r"(h\d): Page: (http\S+)", text.read_text()))
                       and len(all_of) == 2 and all_of, "two addresses")
    assert {host for host, _ in found} == {"h1", "h2"}
    for _, address in found:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=30) as page:
            assert page.status == 200
    (work.directory / "go").touch()
    assert job.process.wait(30) == 0
