"""`fleetrun init`: a job file by flags, by answers, and what is refused."""

import os
import select

import terminals
from fleetrun_job import DEADLINE, clean_environment, find_fleetrun


def test_a_file_of_flags_runs(work, python):
    work.script("t.py", "import os; print(os.environ['TRAINING_ROLE'], flush=True)")
    made = work.run("init", "--script=t.py", "--servers=1", "--log_dir=logs")
    assert made.status == 0, made.err
    assert made.out.splitlines() == [
        "wrote job.toml, with defaults for what no flag says: trainers=2, max_restart=0",
        "run it: fleetrun job.toml"]
    job = work.run("--python", python, "job.toml")
    assert job.status == 0, job.err
    assert (work.directory / "logs" / "serverlog.0").read_text() == "PSERVER\n"
    assert (work.directory / "logs" / "workerlog.1").read_text() == "TRAINER\n"


def test_names_with_quotes_stay_whole(work):
    name = 'a "b" \\ 损失.py'
    (work.directory / name).write_text("")
    assert work.run("init", "--script", name, "x y.toml").out.endswith("run it: fleetrun 'x y.toml'\n")
    assert work.run("--dry_run", "x y.toml").out.count(name) >= 2


def test_what_cannot_be_is_refused_and_nothing_is_written(work):
    for arguments, words in (((), "add --script=FILE"),
                             (("--script=t.py", "--trainers=0"), "needs a trainer"),
                             (("--script=t.py", "--servers=-1"), "--servers is '-1': a whole number from 0"),
                             (("--script=t.py", "job.yaml"), "does not end with .toml"),
                             (("--script=\udcff.py",), ".py' is not UTF-8"),
                             (("--script=t.py", "a.toml", "b.toml"), "second file")):
        refused = work.run("init", *arguments)
        assert refused.status == 125 and words in refused.err, refused.err
    assert not list(work.directory.glob("*.toml"))
    assert work.run("init", "--script=t.py").status == 0
    again = work.run("init", "--script=other.py")
    assert again.status == 125 and "job.toml is there already" in again.err
    assert "t.py" in (work.directory / "job.toml").read_text()
    assert work.run("init", "--script=other.py", "--force").status == 0
    assert "other.py" in (work.directory / "job.toml").read_text()


def test_on_a_terminal_it_asks(work):
    pid, fd = terminals.fork()
    if pid == 0:
        os.chdir(work.directory)
        os.execve(find_fleetrun(), [find_fleetrun(), "init", "--log_dir=l"], clean_environment(TERM="xterm"))
    for question, answer in ((b"[train.py]: ", b"s.py"), (b"[0]: ", b"two"), (b"is needed\r\n", b""),
                             (b"[2]: ", b"3"), (b"this one): ", b"h1:2,h2:1"), (b"failure [0]: ", b"1")):
        read_to(fd, question)
        os.write(fd, answer + b"\n")
    read_to(fd, b"fleetrun job.toml\r\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fd)
    text = (work.directory / "job.toml").read_text()
    assert text.split("\n", 1)[1] == (
        'max_restart = 1\nlog_dir = "l"\nhosts = "h1:2,h2:1"\n\n'
        '[[roles]]\nname = "trainer"\nkind = "trainer"\ncount = 3\nscript = "s.py"\n')


def read_to(fd, words):
    shown = b""
    while words not in shown:
        assert select.select([fd], [], [], DEADLINE)[0], shown
        shown += os.read(fd, 4096)
