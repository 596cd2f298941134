"""A running job can be looked at, told to stop, left alone and come back to."""

import json
import os
import select
import signal
import socket
import subprocess
import termios
import time

import pytest

import terminals
from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, marked_pids, wait_until

WAIT = "#!/bin/sh\necho up $FLEETRUN_RANK\nwhile [ ! -e go ]; do sleep 0.01; done\necho over\n"


@pytest.fixture
def control(work, tmp_path_factory):
    return Control(work, tmp_path_factory.mktemp("run"))


class Control:
    """Jobs whose entries are in a directory of the test's own, and the commands that find them there."""

    def __init__(self, work, runtime):
        self.work = work
        self.runtime = runtime
        self.environment = clean_environment(FLEETRUN_RUN_DIR=str(runtime / "fleetrun"))
        work.script("wait.sh", WAIT, 0o755)

    def entries(self):
        directory = self.runtime / "fleetrun"
        return [json.loads(p.read_text()) for p in directory.glob("*.json")] if directory.exists() else []

    def start(self, *arguments, jobs=1, **options):
        job = self.work.start(*arguments, environment=self.environment, **options)
        wait_until(lambda: len(self.entries()) == jobs, "the entry of the job")
        return job

    def command(self, *arguments):
        done = subprocess.run(
            [find_fleetrun(), *arguments], env=self.environment, capture_output=True, text=True,
            timeout=DEADLINE, cwd=self.work.directory
        )
        return done.returncode, done.stdout, done.stderr

    def status(self, *arguments):
        code, out, err = self.command("status", "--json", *arguments)
        assert code == 0, err
        return json.loads(out)

    def let_go(self):
        (self.work.directory / "go").touch()


def events_of(work):
    (path,) = (work.directory / "log").glob("*/events.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_status_shows_each_process_with_what_it_uses_and_says_last(control):
    job = control.start("--nproc_per_node=2", "./wait.sh")
    for rank in (0, 1):
        job.wait_for_log(f"workerlog.{rank}", f"up {rank}")
    status = wait_until(lambda: (s := control.status()) and s["phase"] == "running" and s, "running")
    assert [p["name"] for p in status["processes"]] == ["trainer 0", "trainer 1"]
    for process in status["processes"]:
        assert process["state"] == "running" and process["attempt"] == 0 and process["rss_bytes"] > 0
        assert process["last_line"] == f"up {process['rank']}"
        assert os.path.exists(f"/proc/{process['pid']}")
    code, out, _ = control.command("status")
    assert code == 0 and out.startswith("job default, pod ") and "trainer 1" in out and "up 1" in out
    code, out, _ = control.command("status", "--stacks")
    assert code == 0 and "trainer 1" in out
    assert control.command("top")[1].splitlines()[1].split()[:3] == ["process", "pid", "state"]
    control.let_go()
    assert job.finish().status == 0
    assert control.entries() == []
    code, _, err = control.command("status")
    assert code == 125 and "no job of this user runs" in err


def test_stop_ends_the_job_and_waits_for_its_end(control):
    job = control.start("--nproc_per_node=2", "./wait.sh")
    code, out, err = control.command("stop")
    assert code == 0 and "has ended with exit status 143" in out
    assert job.finish().status == 143
    assert events_of(control.work)[-1]["type"] == "job_ended"


STUBBORN = "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.01; done\n"


@pytest.mark.parametrize("flag", ["--now", "--grace=0.1"])
def test_stop_need_not_wait_for_the_grace(control, flag):
    control.work.script("stubborn.sh", STUBBORN, 0o755)
    job = control.start("--grace=100", "./stubborn.sh")
    job.wait_for_log("workerlog.0", "up")
    assert control.command("stop", flag)[0] == 0
    assert job.finish().status == 143


def test_several_jobs_are_listed_and_nothing_is_done(control):
    first = control.start("--job_id=one", "--log_dir=a", "./wait.sh")
    second = control.start("--job_id=two", "--log_dir=b", "./wait.sh", jobs=2)
    for command in ("status", "stop", "attach", "top"):
        code, _, err = control.command(command)
        assert (code == 125 and "2 jobs run, and nothing was done" in err and "one (pod " in err
                and "two (pod " in err)
    code, out, _ = control.command("list")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["JOB", "one", "two"]
    code, out, _ = control.command("list", "--json")
    assert [json.loads(line)["job_id"] for line in out.splitlines()] == ["one", "two"]
    code, _, err = control.command("stop", "three")
    assert code == 125 and "no job is called three" in err
    assert control.status("two")["job_id"] == "two"
    assert control.status("b/workerlog.0")["job_id"] == "two"
    pod = control.status("a")["pod"]
    assert control.command("stop", pod)[0] == 0
    assert first.finish().status == 143
    control.let_go()
    assert second.finish().status == 0


def test_the_entry_of_a_killed_fleetrun_is_cleared(control):
    job = control.start("./wait.sh")
    job.process.kill()
    job.process.communicate()
    assert len(control.entries()) == 1
    code, _, err = control.command("status")
    assert code == 125 and "no job of this user runs" in err
    assert control.entries() == [] and list((control.runtime / "fleetrun").iterdir()) == []


def test_a_stopped_fleetrun_keeps_nobody_waiting_and_goes_on(control):
    job = control.start("./wait.sh")
    job.signal(signal.SIGSTOP)
    code, _, err = control.command("status")
    assert code == 125 and "has not answered within 5000 ms" in err and "SIGSTOP" in err
    job.signal(signal.SIGCONT)
    control.let_go()
    assert job.finish().status == 0


def test_status_while_a_job_restarts(control):
    control.work.script("fail.sh",
                        "#!/bin/sh\n[ -e go ] && exit 0\n[ $FLEETRUN_RANK = 1 ] && [ -e fail ] && rm fail && "
                        "exit 3\nexec ./wait.sh\n", 0o755)
    (control.work.directory / "fail").touch()
    job = control.start("--nproc_per_node=2", "--max_restart=2", "./fail.sh")
    status = wait_until(lambda: (s := control.status()) and s["attempt"] == 1 and s["phase"] == "running"
                        and s, "the second attempt")
    assert ([r["process"] for r in status["restarts"]] == ["trainer 1"]
            and status["restarts"][0]["kind"] == "crash")
    assert all(p["state"] == "running" and p["starts"] == 2 for p in status["processes"])
    assert "/1/workerlog." in status["processes"][0]["log"]
    control.let_go()
    assert job.finish().status == 0


def test_clients_that_misbehave_do_not_disturb(control):
    job = control.start("./wait.sh")
    path = str(next((control.runtime / "fleetrun").glob("*.sock")))
    idle = [socket.socket(socket.AF_UNIX) for _ in range(8)]
    for client in idle:
        client.connect(path)
    garbage = socket.socket(socket.AF_UNIX)
    garbage.connect(path)
    garbage.sendall(b"\x00\xff{[garbage\n" * 10)
    endless = socket.socket(socket.AF_UNIX)
    endless.connect(path)
    sent = 0
    with pytest.raises(OSError):
        while sent < 1 << 30:
            sent += endless.send(b"x" * 65536)
    assert sent < 1 << 24
    assert control.status()["phase"] == "running"
    control.let_go()
    assert job.finish().status == 0


def test_a_detached_job_is_left_and_come_back_to(control):
    mark = f"TEST_MARK=detached-{os.getpid()}-{time.monotonic_ns()}"
    control.environment.update([mark.split("=")])
    try:
        code, out, err = control.command("--detach", "--nproc_per_node=2", "./wait.sh")
        assert code == 0 and out.startswith("job default, pod ") and "fleetrun attach" in out, err
        pod = out.split("pod ")[1].split(",")[0]
        status = control.status(pod)
        assert [p["state"] for p in status["processes"]] == ["running", "running"]
        assert os.getsid(status["fleetrun_pid"]) == status["fleetrun_pid"]
        os.kill(status["fleetrun_pid"], signal.SIGHUP)  # a hangup means nothing to it
        attached = subprocess.Popen(
            [find_fleetrun(), "attach", pod], env=control.environment, cwd=control.work.directory,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert attached.stdout.readline() == b"up 0\n"
        control.let_go()
        out, err = attached.communicate(timeout=DEADLINE)
        assert attached.returncode == 0 and b"over\n" in out and b"Exit code 0" in err
        wait_until(lambda: not marked_pids(mark), "the end of everything")
        assert "Watching Pod" in (control.work.directory / "log" / pod / "launch.log").read_text()
        assert control.entries() == []
    finally:
        for pid in marked_pids(mark):
            os.kill(pid, signal.SIGKILL)


def test_attach_ends_with_the_status_of_the_job_and_ctrl_c_leaves_it_running(control):
    control.work.script("fail.sh", "#!/bin/sh\necho up\nwhile [ ! -e go ]; do sleep 0.01; done\nexit 7\n",
                        0o755)
    job = control.start("./fail.sh")
    job.wait_for_log("workerlog.0", "up")

    def attach():
        process = subprocess.Popen([find_fleetrun(), "attach"], env=control.environment,
                                   cwd=control.work.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"up\n"
        return process

    leaving, staying = attach(), attach()
    leaving.send_signal(signal.SIGINT)
    _, err = leaving.communicate(timeout=DEADLINE)
    assert leaving.returncode == 130 and b"goes on" in err
    assert job.process.poll() is None
    control.let_go()
    staying.communicate(timeout=DEADLINE)
    assert staying.returncode == 7
    assert job.finish().status == 7


def test_a_detached_job_that_cannot_start_shows_why(control):
    control.work.script("broken.sh", "#!/no/such/interpreter\n", 0o755)
    code, out, err = control.command("--detach", "./broken.sh")
    assert code in (126, 127) and out == "" and "could not be started" in err
    assert control.entries() == []


class Terminal:
    """A job on a terminal of its own, with a shell's job control done by hand."""

    def __init__(self, *arguments, environment, directory):
        self.pid, self.fd = terminals.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve(find_fleetrun(), [find_fleetrun(), *arguments], environment)
        self.shown = b""

    def read_until(self, text, seconds=DEADLINE):
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert select.select([self.fd], [], [], max(end - time.monotonic(), 0))[0], (text, self.shown)
            try:
                self.shown += os.read(self.fd, 65536)
            except OSError:
                raise AssertionError((text, self.shown))
        self.shown = self.shown.partition(text)[2]

    def status(self):
        """How it ended; what it still writes is taken meanwhile."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if self.fd is not None and select.select([self.fd], [], [], 0.01)[0]:
                try:
                    self.shown += os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("in vain: the end of fleetrun")

    def hang_up(self):
        os.close(self.fd)
        self.fd = None


@pytest.fixture
def terminal(control):
    opened = []

    def start(*arguments):
        opened.append(Terminal(*arguments, environment=control.environment, directory=control.work.directory))
        return opened[-1]

    yield start
    for one in opened:
        if one.fd is not None:
            one.hang_up()


def test_top_keeps_a_table_up_to_date_and_puts_the_terminal_back(control, terminal):
    job = control.start("./wait.sh")
    top = terminal("top")
    top.read_until(b"\x1b[?1049h")
    top.read_until(b"trainer 0")
    top.read_until(b"trainer 0")  # drawn again, unasked
    os.write(top.fd, b"q")
    top.read_until(b"\x1b[?1049l")
    assert top.status() == 0
    top = terminal("top")
    top.read_until(b"trainer 0")
    os.write(top.fd, b"\x03")
    top.read_until(b"\x1b[?1049l")
    assert top.status() == 0
    top = terminal("top")
    top.read_until(b"trainer 0")
    control.let_go()
    top.read_until(b"has ended with exit status 0")
    assert top.status() == 0 and job.finish().status == 0


def test_ctrl_c_on_a_terminal_names_whom_it_waits_for_and_twice_does_not_wait(control, terminal):
    control.work.script("stubborn.sh", "#!/bin/sh\ntrap '' TERM INT\necho deaf\n"
                                       "while :; do sleep 0.01; done\n", 0o755)
    job = terminal("--grace=100", "--nproc_per_node=2", "./stubborn.sh")
    job.read_until(b"status running")
    job.read_until(b"deaf")
    os.write(job.fd, b"\x03")
    job.read_until(b"waiting up to 100 s for trainer 0 (pid ")
    os.write(job.fd, b"\x03")
    assert job.status() == 130


def test_a_hangup_of_the_terminal_stops_the_job(control, terminal):
    job = terminal("./wait.sh")
    job.read_until(b"up 0")
    (entry,) = wait_until(control.entries, "the entry of the job")
    job.hang_up()
    assert job.status() == 129
    assert events_of(control.work)[-1]["exit_status"] == 129
    assert not os.path.exists(f"/proc/{entry['pid']}")


def test_a_storm_of_signals_does_no_harm(control):
    control.work.script("stubborn.sh", STUBBORN, 0o755)
    job = control.start("--grace=100", "--nproc_per_node=4", "./stubborn.sh")
    for i in range(4):
        job.wait_for_log(f"workerlog.{i}", "up")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1) * 25:
        try:
            job.signal(number)
        except ProcessLookupError:
            break
    job.finish()
    assert (job.status in (128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP)
            and not job.survivors())


def test_usr1_goes_to_every_process_and_the_job_goes_on(control):
    control.work.script("hear.sh",
                        "#!/bin/sh\ntrap 'echo heard' USR1\ntrap 'echo told' USR2\necho up\n"
                        "while [ ! -e go ]; do sleep 0.01; done\n", 0o755)
    job = control.start("--signal_map=USR2=USR1,HUP=ignore", "--nproc_per_node=2", "./hear.sh")
    for i in range(2):
        job.wait_for_log(f"workerlog.{i}", "up")
    job.signal(signal.SIGUSR2)
    job.signal(signal.SIGHUP)
    for i in range(2):
        job.wait_for_log(f"workerlog.{i}", "heard")
        assert "told" not in job.log(f"workerlog.{i}")
    control.let_go()
    assert job.finish().status == 0


def test_quit_stops_with_quit(control):
    control.work.script("quit.sh",
                        "#!/bin/sh\ntrap 'echo quitting; exit 0' QUIT\necho up\n"
                        "while :; do sleep 0.01; done\n", 0o755)
    job = control.start("./quit.sh")
    job.wait_for_log("workerlog.0", "up")
    job.signal(signal.SIGQUIT)
    assert job.finish().status == 131
    assert job.log("workerlog.0").endswith("quitting\n")


def test_a_lone_process_reads_from_the_terminal(control, terminal, python):
    job = terminal("--log_level=ERROR", "/bin/cat")
    os.write(job.fd, b"hello terminal\n")
    job.read_until(b"hello terminal\r\n")  # the terminal's echo
    job.read_until(b"hello terminal\r\n")  # cat's
    os.write(job.fd, b"\x04")
    assert job.status() == 0
    job = terminal("--log_level=ERROR", python, "-i", "-q")
    os.write(job.fd, b"print(6 * 7)\n")
    job.read_until(b"42")
    os.write(job.fd, b"\x04")
    assert job.status() == 0


def test_ctrl_z_stops_a_lone_process_with_fleetrun_and_fg_wakes_both(control, terminal):
    job = terminal("/bin/cat")
    (entry,) = wait_until(control.entries, "the entry of the job")
    pid = control.status()["processes"][0]["pid"]

    def state(of):
        with open(f"/proc/{of}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]

    # what the terminal sends for Ctrl-Z; a session leader alone is not stopped by it
    os.kill(job.pid, signal.SIGTSTP)
    wait_until(lambda: state(pid) == "T" and state(job.pid) == "T", "both to be stopped")
    os.kill(job.pid, signal.SIGCONT)
    wait_until(lambda: state(pid) == "S" and state(job.pid) == "S", "both to be awake")
    os.write(job.fd, b"\x04")
    assert job.status() == 0


def test_a_job_that_is_begun_in_the_background_of_a_terminal_does_not_take_its_input(control):
    """As by `fleetrun cat &` in a shell: cat finds /dev/null,
    and neither reading nor writing stops anything (tostop)."""
    pid, fd = terminals.fork()
    if pid == 0:
        attributes = termios.tcgetattr(0)
        attributes[3] |= termios.TOSTOP
        termios.tcsetattr(0, termios.TCSANOW, attributes)
        background = os.fork()
        if background == 0:
            os.setpgid(0, 0)
            os.execve(find_fleetrun(), [find_fleetrun(), f"--log_dir={control.work.directory}/log",
                                        "/bin/cat"], control.environment)
        _, status = os.waitpid(background, os.WUNTRACED)
        os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 99)
    os.write(fd, b"for the shell\n")
    shown = b""
    with pytest.raises(OSError):  # the terminal is closed when all have ended
        while True:
            assert select.select([fd], [], [], DEADLINE)[0], shown
            shown += os.read(fd, 65536)
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and b"Exit code 0" in shown
    assert (control.work.directory / "log" / "workerlog.0").read_text() == ""


def test_standard_input_goes_to_the_trainer_that_is_named(work):
    job = work.start("--stdin=1", "--nproc_per_node=2", "/bin/cat", stdin=subprocess.PIPE)
    job.process.stdin.write(b"for one\n")
    job.process.stdin.close()
    job.process.stdin = None
    job.finish()
    assert job.status == 0 and job.log("workerlog.0") == "" and job.log("workerlog.1") == "for one\n"


def test_metrics_are_served_when_asked_for(control):
    job = control.start("--metrics=:0", "./wait.sh")
    (entry,) = control.entries()
    host, _, port = entry["metrics"].partition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
    assert text.startswith("HTTP/1.1 200 OK") and 'fleetrun_process_up{role="trainer",rank="0"} 1' in text
    control.let_go()
    assert job.finish().status == 0


@pytest.mark.parametrize("address", ["nowhere", "unix:", "host:99999", "/no/such/directory/socket"])
def test_metrics_that_cannot_be_served_are_refused(control, address):
    code, _, err = control.command(f"--metrics={address}", "./wait.sh")
    assert code == 125 and "--metrics" in err and "Exit code" not in err


@pytest.mark.parametrize("command", [["logs", "-f"], ["attach"]])
def test_who_shows_a_job_ends_when_its_reader_has_left_and_the_job_goes_on(control, command):
    control.work.script("chat.sh", "#!/bin/sh\nwhile [ ! -e go ]; do echo line; sleep 0.01; done\n", 0o755)
    job = control.start("./chat.sh")
    with subprocess.Popen([find_fleetrun(), *command], env=control.environment, cwd=control.work.directory,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shows:
        assert shows.stdout.readline()
        shows.stdout.close()
        assert shows.wait(timeout=DEADLINE) == -signal.SIGPIPE
    control.let_go()
    assert job.finish().status == 0
