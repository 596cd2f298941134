"""What a process writes reaches a terminal as text and colours, never as commands to it."""

import os
import re
import select
import subprocess
import sys

import pytest

import terminals
from fleetrun_job import DEADLINE, ROOT, clean_environment, find_fleetrun

ATTACKS = (b"\x1b]0;title\x07", b"\x1b]52;c;cm0gLXJmIH4=\x1b\\", b"\x1b[2J\x1b[3J\x1b[H",
           b"\x9b2J\x9d0;t\x9c", b"\xc2\x9b2J\xc2\x9d0;t\xc2\x9c", b"\x1bc",
           b"\x1b[8m\x1b[5n\x1bP$q\x1b\\", b"a\x08b\x0b\x0c", b"\xe2\x80\xaereversed")
FORGED = b"LAUNCH INFO 2026-01-01 00:00:00,000 Exit code 0"
WORKER = """#!/bin/sh
cat attacks
printf '\\033[32mgreen\\033[0m plain\\n'
printf '10%%\\r20%%\\r100%%\\n'
cat forged
exit $1
"""
# Colours, the one erasing of a line that a repainted bar needs, and what the launcher itself writes.
ALLOWED = re.compile(rb"\x1b\[[0-9;:]*m|\r\x1b\[K|[\t\r\n -~]|[\xc3-\xdf][\x80-\xbf]|\xc2[\xa0-\xbf]|"
                     rb"(?!\xe2\x80[\xaa-\xae])[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def on_terminal(work, *arguments, **variables):
    """What fleetrun with these arguments writes to a terminal of its own, and its exit status."""
    pid, fd = terminals.fork()
    if pid == 0:
        os.chdir(work.directory)
        environment = clean_environment(TERM="xterm", **variables)
        os.execve(find_fleetrun(), [find_fleetrun(), *arguments], environment)
    shown = b""
    try:
        while True:
            assert select.select([fd], [], [], DEADLINE)[0], shown
            shown += os.read(fd, 65536)
    except OSError:  # the terminal is closed when all have ended
        pass
    os.close(fd)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def hostile(work):
    worker = work.directory / "worker"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    (work.directory / "attacks").write_bytes(b"".join(attack + b"\n" for attack in ATTACKS))
    (work.directory / "forged").write_bytes(FORGED + b"\n" + b" " * 80 + FORGED + b"\r\n")
    return work


def check(shown):
    rest = ALLOWED.sub(b"", shown)
    assert rest == b"", (rest, shown)
    forged = [line for line in re.split(rb"[\r\n]|\x1b\[K| {80,}", shown) if line.startswith(FORGED)]
    assert forged == [], shown
    for text in (b"^[]0;title^G", b"^[[2J", b"\\x9b2J", b"\\xc2\\x9b2J"):
        assert text in shown, (text, shown)


@pytest.mark.parametrize("arguments", [["--nproc_per_node=1"], ["--nproc_per_node=2"],
                                       ["--nproc_per_node=2", "--show=all"]])
def test_a_job_on_a_terminal(hostile, arguments):
    shown, status = on_terminal(hostile, *arguments, "./worker", "0")
    check(shown)
    assert status == 0 and b"\x1b[32mgreen\x1b[0m plain" in shown, shown
    assert b"100%" in shown and b" | " + FORGED in shown, shown
    log = (hostile.directory / "log" / "workerlog.0").read_bytes()
    assert all(attack in log for attack in ATTACKS)  # files have the bytes as they are


def test_the_screen_of_a_failure(hostile):
    shown, status = on_terminal(hostile, "./worker", "3")
    assert status == 3 and b"ERROR LOG DETAIL" in shown
    check(shown)


@pytest.mark.parametrize("status", ["0", "3"])
@pytest.mark.parametrize("show", ["first", "all"])
def test_other_hosts(hostile, show, status):
    """The head's terminal shows what a host passes on, and the screen of its failure."""
    (hostile.directory / "fake").mkdir()
    (hostile.directory / "fake" / "config.json").write_text("{}")
    fake = f"{os.path.realpath(sys.executable)} -IS {ROOT}/tests/support/fake_ssh.py"
    shown, ended = on_terminal(hostile, "--ssh", fake, "--hosts=h1,h2", f"--show={show}", "./worker", status,
                               FAKE_SSH=str(hostile.directory / "fake"))
    check(shown)
    assert ended == int(status)


@pytest.mark.parametrize("processes", [1, 2])
def test_logs_of_the_past(hostile, processes):
    result = hostile.run(f"--nproc_per_node={processes}", "./worker", "0")
    assert result.status == 0
    shown, status = on_terminal(hostile, "logs")
    assert status == 0
    check(shown)


def test_a_file_or_a_pipe_gets_the_bytes_as_they_are(hostile):
    shown = subprocess.run([find_fleetrun(), "./worker", "0"], cwd=hostile.directory, timeout=DEADLINE,
                           env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert shown.stdout == (hostile.directory / "log" / "workerlog.0").read_bytes()
    assert all(attack in shown.stdout for attack in ATTACKS)
