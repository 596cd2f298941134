"""--pty: a process that a person talks to has a terminal, and leaves the person's as it was."""

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import tty

import pytest

import terminals
from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until

TIOCGPTPEER = 0x5441  # of Linux, not among Python's

# A shell's part: a job in a process group of its own, in the foreground until it stops, then again.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
os.tcsetpgrp(0, os.getpgrp())
print("stopped", flush=True)
input()
os.tcsetpgrp(0, pid)
os.killpg(pid, signal.SIGCONT)
status = os.waitpid(pid, 0)[1]
os.tcsetpgrp(0, os.getpgrp())
os._exit(os.waitstatus_to_exitcode(status))
"""


class Person:
    """A person's terminal, held open beside the command that runs on it."""

    def __init__(self, work, command):
        self.pid, self.fd = terminals.fork()
        if self.pid == 0:
            os.chdir(work.directory)
            if os.read(0, 1) == b"\n":  # when the test has set the size, and has the other end
                environment = clean_environment(TERM="xterm")
                for name in ("LINES", "COLUMNS"):  # of pytest's own terminal
                    environment.pop(name, None)
                os.execve(command[0], command, environment)
        self.end = fcntl.ioctl(self.fd, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
        self.resize(33, 101)
        self.before = termios.tcgetattr(self.end)
        self.shown = b""
        self.type(b"\n")

    def resize(self, rows, columns):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys)

    def see(self, text):
        """Waits until `text` is shown, and forgets what came before it."""
        while text not in self.shown:
            assert select.select([self.fd], [], [], DEADLINE)[0], (text, self.shown)
            self.shown += os.read(self.fd, 65536)
        self.shown = self.shown.partition(text)[2]

    def is_raw(self):
        return termios.tcgetattr(self.end)[tty.LFLAG] & termios.ICANON == 0

    def finish(self):
        """The exit status; the terminal is as it was."""
        status = wait_until(self.status_if_ended, "the end of fleetrun")
        assert termios.tcgetattr(self.end) == self.before
        os.close(self.end)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status[1])

    def status_if_ended(self):
        if select.select([self.fd], [], [], 0)[0]:
            self.shown += os.read(self.fd, 65536)
        ended = os.waitpid(self.pid, os.WNOHANG)
        return ended[0] and ended


@pytest.fixture
def person(work):
    def start(script, *flags, shell=()):
        (work.directory / "train.py").write_text(script)
        return Person(work, [*shell, find_fleetrun(), "--pty", *flags, "train.py"])

    return start


def log(work, name="workerlog.0"):
    return (work.directory / "log" / name).read_bytes()


def test_a_session_of_the_debugger(person, work):
    someone = person("value = 6\nbreakpoint()\nvalue *= 7\nprint('value', value)\n")
    someone.see(b"(Pdb) ")
    wait_until(someone.is_raw, "keys as they are typed")
    someone.type(b"p value + 100\n")
    someone.see(b"106\r\n(Pdb) ")
    someone.type(b"c\n")
    someone.see(b"value 42\r\n")
    assert someone.finish() == 0
    assert b"106\n(Pdb) " in log(work) and b"value 42\n" in log(work) and b"\r\n" not in log(work)


def test_its_streams_are_a_terminal_of_the_size_of_ours(person):
    someone = person("""
import curses, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print([os.isatty(fd) for fd in range(3)], os.ttyname(0) == os.ttyname(2), os.tcgetpgrp(0) == os.getpgrp())
size = curses.wrapper(lambda screen: screen.getmaxyx())
print("curses", size, open("/dev/tty").isatty(), flush=True)
signal.sigwait([signal.SIGWINCH])
print("now", *os.get_terminal_size(), flush=True)
""")
    someone.see(b"[True, True, True] True True")
    someone.see(b"curses (33, 101) True")
    someone.resize(20, 70)
    someone.see(b"now 70 20")
    assert someone.finish() == 0


def test_control_c_is_the_processs_and_control_d_its_end_of_file(person):
    someone = person("""
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
for i in range(2):
    print("ask", i, flush=True)
    signal.sigwait([signal.SIGINT])
    print("interrupted", flush=True)
try:
    print("ask 2", flush=True)
    input()
except EOFError:
    print("end of file", flush=True)
    sys.exit(7)
""")
    for i in range(2):
        someone.see(b"ask %d" % i)
        wait_until(someone.is_raw, "keys as they are typed")
        someone.type(b"\x03")
        someone.see(b"interrupted")
    someone.see(b"ask 2")
    someone.type(b"\x04")
    someone.see(b"end of file")
    assert someone.finish() == 7


@pytest.mark.parametrize("end, status", [("os.abort()", 134), ("os.kill(os.getpid(), 9)", 137),
                                         ("tty.setraw(0); os._exit(5)", 5)])
def test_the_terminal_is_restored_when_the_process_dies(person, end, status):
    someone = person(f"import os, tty\nprint('here', flush=True)\ninput()\n{end}\n")
    someone.see(b"here")
    wait_until(someone.is_raw, "keys as they are typed")
    someone.type(b"\r")
    assert someone.finish() == status


def test_the_terminal_is_restored_when_the_job_is_stopped(person):
    someone = person("print('here', flush=True)\ninput()\n")
    someone.see(b"here")
    wait_until(someone.is_raw, "keys as they are typed")
    os.kill(someone.pid, signal.SIGTERM)
    assert someone.finish() == 143


def test_control_z_gives_the_terminal_back_until_the_job_goes_on(person):
    someone = person("print('here', flush=True)\nprint('got', input(), flush=True)\n",
                     shell=[sys.executable, "-c", SHELL])
    someone.see(b"here")
    wait_until(someone.is_raw, "keys as they are typed")
    someone.type(b"\x1a")
    someone.see(b"stopped")
    assert termios.tcgetattr(someone.end) == someone.before
    someone.type(b"\n")
    wait_until(someone.is_raw, "keys as they are typed")
    someone.type(b"words\n")
    someone.see(b"got words")
    assert someone.finish() == 0


def test_of_two_processes_the_one_that_is_named(person, work):
    # One text: of several each is written for itself, and the launcher's lines may come between.
    script = "import os\nprint(f'{os.isatty(0)} {os.isatty(1)}', flush=True)\n"
    someone = person(script, "--nproc_per_node=2", "--stdin=1")
    someone.see(b"True True")
    assert someone.finish() == 0
    assert log(work, "workerlog.1") == b"True True\n" and log(work) == b"False False\n"
    someone = person(script, "--nproc_per_node=2")
    someone.see(b"no process has standard input: the job has 2")
    someone.see(b"--stdin=RANK")
    assert someone.finish() == 125


def test_without_a_terminal_it_is_refused(work):
    (work.directory / "train.py").write_text("print('started')\n")
    result = subprocess.run([find_fleetrun(), "--pty", "train.py"], cwd=work.directory, timeout=DEADLINE,
                            check=False, env=clean_environment(), stdin=subprocess.DEVNULL,
                            capture_output=True)
    assert result.returncode == 125 and b"standard input is no terminal" in result.stderr
    assert b"started" not in result.stdout
