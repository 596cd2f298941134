"""Pipe programs that share their work among several processes:
the text of one, its errors, and nothing left behind."""

import os
import select
import signal
import subprocess
import sys

import pytest

LIMIT = 120  # seconds that any one process may take; nothing waits for less

READER = """
import os, sys
import fleetrun.distributed.fleet as fleet

class Reader(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            i, x = line.split()
            i, x = int(i), float(x)
            {body}
            yield [("id", [i]), ("x", [x])]
        return samples
{more}
reader = Reader()
{before}
reader.run_from_stdin({arguments})
{after}
"""
ROWS = 60_000  # three blocks, the last one short
LINES = "".join(f"{i} {i * 7919 % 100003 / 8}\n" for i in range(ROWS))
TEXT = "".join(f"1 {i} 1 {i * 7919 % 100003 / 8}\n" for i in range(ROWS))


@pytest.fixture
def script(tmp_path):
    def write(body="", more="", before="", arguments="processes=2", after=""):
        path = tmp_path / "reader.py"
        path.write_text(READER.format(body=body, more=more, before=before, arguments=arguments, after=after),
                        encoding="utf-8")
        return [sys.executable, str(path)]

    return write


@pytest.fixture
def environment(package):
    return {**os.environ, "PYTHONPATH": os.path.dirname(package), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def finish(environment):
    def run_to_its_end(argv, text=LINES, **variables):
        return subprocess.run(argv, input=text, text=True, capture_output=True, timeout=LIMIT,
                              env={**environment, **variables})

    return run_to_its_end


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_the_text_and_the_slots_are_those_of_one_process(script, finish, processes):
    done = finish(script(arguments=f"processes={processes}", after="print(reader._proto_info)"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == TEXT + "[('id', 'uint64'), ('x', 'float')]\n"


def test_the_variable_says_how_many_and_all_of_them_work(script, finish, tmp_path):
    body = (f'open(os.path.join({str(tmp_path)!r}, f"pid.{{os.getpid()}}"), '
            '"a").close() if i % 1000 == 0 else None')
    done = finish(script(body=body, arguments=""), FLEETRUN_READER_PROCESSES="3")
    assert done.stdout == TEXT
    assert len(list(tmp_path.glob("pid.*"))) == 3


@pytest.mark.parametrize("value", ["0", "two", "-1", ""])
def test_a_variable_that_is_no_number_of_processes_is_refused(script, finish, value):
    done = finish(script(arguments=""), FLEETRUN_READER_PROCESSES=value)
    assert done.returncode == 1
    assert f"FLEETRUN_READER_PROCESSES={value} is not a number of processes" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("text, expected",
                         [("", ""), ("1 2", "1 1 1 2.0\n"), ("1 2\r\n3 4\r\n", "1 1 1 2.0\n1 3 1 4.0\n")])
def test_short_inputs(script, finish, text, expected):
    assert finish(script(), text).stdout == expected


def test_a_line_that_was_read_before_stays_read(script, finish):
    done = finish(script(before="assert next(sys.stdin) == 'a header\\n'"), "a header\n" + LINES)
    assert done.stdout == TEXT


REVERSING = """
    def generate_batch(self, samples):
        return lambda: reversed(samples)
"""


def test_generate_batch_gets_the_groups_of_one_process(script, finish):
    before = "reader.set_batch(7)"
    one = finish(script(more=REVERSING, before=before, arguments="processes=1"))
    three = finish(script(more=REVERSING, before=before, arguments="processes=3"))
    assert one.stdout.startswith("1 6 ") and one.returncode == 0
    assert three.stdout == one.stdout


def test_generate_batch_is_refused_groups_that_one_process_would_not_make(script, finish):
    done = finish(script(more=REVERSING, body="if i == 3: return"))
    assert done.returncode == 1
    assert ("ValueError: generate_batch() would get samples in other groups than with one process" in
            done.stderr)


def test_a_failure_is_shown_where_it_happened_after_the_text_before_it(script, finish):
    one = finish(script(body="if i == 50_000: raise KeyError('here')", arguments="processes=1"))
    two = finish(script(body="if i == 50_000: raise KeyError('here')"))
    assert two.returncode == 1
    assert two.stderr.startswith("Traceback") and two.stderr.splitlines()[-1] == "KeyError: 'here'"
    assert "reader.py" in two.stderr and "in samples" in two.stderr
    assert (two.stdout == one.stdout
            and two.stdout.endswith("1 49983 1 " + str(49983 * 7919 % 100003 / 8) + "\n"))


def test_other_slots_in_a_later_block_are_refused(script, finish):
    done = finish(script(body="if i > 50_000: yield [('id', [i])]; return"))
    assert done.returncode == 1
    assert "ValueError: the complete field set of two given line are inconsistent." in done.stderr
    assert TEXT.startswith(done.stdout)


def test_an_exit_status_of_the_script_is_kept(script, finish):
    assert finish(script(body="if i == 50_000: sys.exit(7)")).returncode == 7


def test_bytes_that_are_no_text_are_refused(script, environment):
    done = subprocess.run(script(), input=LINES.encode() + b"\xff 1\n", capture_output=True, timeout=LIMIT,
                          env={**environment, "PYTHONIOENCODING": "utf-8:strict"})
    assert done.returncode == 1
    assert b"UnicodeDecodeError" in done.stderr.splitlines()[-1]


def test_a_process_that_is_killed_is_named(script, finish):
    done = finish(script(body="if i == 50_000: os.kill(os.getpid(), 9)"))
    assert done.returncode == 1
    assert "which made samples for this one, was ended by signal 9 (Killed)" in done.stderr


@pytest.fixture
def lines_file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text(LINES * 5, encoding="utf-8")
    with open(path) as file:
        yield file


@pytest.fixture
def family(script, environment, lines_file):
    """A reader in several processes that nobody takes text from, and a pidfd of each of its children."""
    process = subprocess.Popen(script(), stdin=lines_file, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment)
    assert process.stdout.read(100) == TEXT.encode()[:100]
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        children = [os.pidfd_open(int(pid)) for pid in file.read().split()]
    assert len(children) == 3
    yield process, children
    for descriptor in children:
        os.close(descriptor)
    for stream in (process.stdout, process.stderr):
        stream.close()
    if process.poll() is None:
        process.kill()
    process.wait()


def wait_for_all(children):
    for descriptor in children:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(LIMIT * 1000), "a process was left behind"


def test_nobody_outlives_a_reader_that_is_killed(family):
    process, children = family
    process.send_signal(signal.SIGKILL)
    wait_for_all(children)


def test_a_closed_pipe_ends_all_of_them_quietly(family):
    process, children = family
    process.stdout.close()
    wait_for_all(children)
    assert process.stderr.read() == b""
    assert process.wait(LIMIT) == 141
