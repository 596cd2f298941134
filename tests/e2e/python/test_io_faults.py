"""DataLoader when something goes wrong: exceptions, dead workers and parents, Ctrl-C, refusals.
Nothing is left running."""

import os
import select
import signal
import subprocess
import sys

import pytest
from conftest import environment
from flow import LIMIT
from test_io_loader import HEAD

CAUGHT = HEAD + """
import signal, sys, time
def caught(loader, kind=paddle.Error):
    batches = []
    try:
        for batch in loader:
            batches.append(plain(batch))
    except kind as error:
        return error, len(batches)
    raise SystemExit(f"no error in {batches}")
class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_comes_out_with_its_place(run, workers):
    run(CAUGHT + f"workers = {workers}" + """
def example(i):
    if i == 7:
        raise KeyError("seven")
    return i
error, batches = caught(DataLoader(Examples(example, 20), batch_size=2, num_workers=workers), KeyError)
assert error.args == ("seven",) and batches == 3
text = str(error.__cause__) if workers else error.__notes__[0]
assert "example 7" in text, text
if workers:
    assert text.startswith("in worker 1 of 2 (process ") and ", batch 3, example 7:" in text and 'raise KeyError("seven")' in text
def odd(i):
    raise Odd("a", "b") if i else StopIteration("early")
error, batches = caught(DataLoader(Examples(odd), batch_sampler=[[1]], num_workers=workers), Exception)
assert "a and b" in str(error) and batches == 0
assert isinstance(error, paddle.Error if workers else Odd), "an exception that cannot be sent comes as the package's own"
error, batches = caught(DataLoader(Examples(odd), num_workers=workers), Exception)
assert "early" in str(error.__cause__ or error), "a StopIteration in a data set is not an end"
error, _ = caught(DataLoader(Examples(lambda i: np.zeros(i + 1)), batch_size=2, num_workers=workers))
assert error.what == "example 1 of a batch has the shape [2], example 0 [1]"
error, _ = caught(DataLoader(Examples(lambda i: [0] * i), batch_size=3, num_workers=workers))
assert error.what == "examples of one batch have 0 and 2 parts"
error, _ = caught(DataLoader(Examples(lambda i: object()), num_workers=workers))
assert "type object, which makes no batch" in error.what
error, batches = caught(DataLoader(Examples(lambda i: i), num_workers=workers, collate_fn=lambda batch: 1 // (3 - batch[0])),
                        ZeroDivisionError)
assert batches == 3 and "batch" in str(error.__cause__ or error.__notes__)
if workers:
    error, _ = caught(DataLoader(Examples(lambda i: i), num_workers=1, collate_fn=lambda batch: lambda: 1), Exception)
    assert "the batch" in str(error.__cause__) and "local" in str(error)
assert multiprocessing.active_children() == []
""")


def test_an_exception_in_worker_init_fn_or_iter(run):
    run(CAUGHT + """
def init(number):
    if number == 1:
        raise ValueError("no camera")
error, batches = caught(DataLoader(Examples(lambda i: i), num_workers=2, worker_init_fn=init), ValueError)
assert batches == 1 and "worker 1 of 2" in str(error.__cause__) and ", worker_init_fn:" in str(error.__cause__)
class Broken(IterableDataset):
    def __iter__(self):
        raise OSError(5, "no disk")
error, _ = caught(DataLoader(Broken(), num_workers=1), OSError)
assert error.errno == 5 and "no disk" in str(error.__cause__)
loader = DataLoader(Examples(lambda i: 1 // i), num_workers=1, persistent_workers=True)
assert caught(loader, ZeroDivisionError)[1] == 0 and caught(loader, ZeroDivisionError)[1] == 0
assert len(multiprocessing.active_children()) == 1, "workers that are kept outlive an exception"
""")


@pytest.mark.parametrize("end, what", [
    ("os.kill(os.getpid(), signal.SIGKILL)",
     "was killed by SIGKILL, while batch 3 was awaited\n  hint: the kernel kills so when"),
    ("os.kill(os.getpid(), signal.SIGSEGV)",
     "was killed by SIGSEGV, while batch 3 was awaited\n  hint: its native code crashed"),
    ("os._exit(3)", "ended with status 3, while batch 3 was awaited"),
    ("sys.exit(4)", "ended with status 4, while batch 3 was awaited"),
])
def test_a_worker_that_dies_is_an_error_that_says_how(run, end, what):
    done = run(CAUGHT + f"""
def example(i):
    if i == 7:
        {end}
    return i
for keep in False, True:
    loader = DataLoader(Examples(example, 20), batch_size=2, num_workers=1, prefetch_factor=1, persistent_workers=keep)
    error, batches = caught(loader)
    assert error.kind == "host" and batches == 3
    print(error)
assert caught(loader)[1] == 3, "new workers are made"
loader.close()
assert multiprocessing.active_children() == []
""")
    assert done.stdout.count(what) == 2 and "worker 0 of 1 (process " in done.stdout


def test_the_death_of_another_worker_is_noticed_too(run):
    run(CAUGHT + """
ready = os.pipe()
def example(i):
    if i == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    os.read(ready[0], 1)
    return i
error, batches = caught(DataLoader(Examples(example, 20), num_workers=2))
assert batches == 0 and "worker 1 of 2" in str(error) and "SIGKILL" in str(error)
""")


def test_the_timeout_is_kept(run):
    run(CAUGHT + """
ready = os.pipe()
def example(i):
    return i if i < 2 else os.read(ready[0], 1)
error, batches = caught(DataLoader(Examples(example), num_workers=1, timeout=0.2, prefetch_factor=1))
assert error.kind == "timeout" and batches == 2 and "no batch 2 within 0.2 s" in str(error), error
""")


WAITING = HEAD + """
never = os.pipe()
def example(i):
    if i >= 2:
        os.write(1, b"%d\\n" % os.getpid())
        os.read(never[0], 1)
    return i
def read():
    for batch in DataLoader(Examples(example, 8), num_workers=2, prefetch_factor=2):
        pass
"""


def handles(process, count):
    """Descriptors of the processes whose ids `process` prints."""
    return [os.pidfd_open(int(process.stdout.readline())) for _ in range(count)]


def await_end(found):
    """Returns when all of them have ended."""
    for handle in found:
        assert select.select([handle], [], [], LIMIT)[0], "a worker is left"
        os.close(handle)


@pytest.mark.parametrize("how", ["read()", "threading.Thread(target=read).start()"])
def test_workers_end_with_a_parent_that_is_killed(start, tmp_path, how):
    (tmp_path / "script.py").write_text(WAITING + how)
    process = start([sys.executable, "script.py"])
    found = handles(process, 2)
    process.kill()
    await_end(found)


def test_workers_outlive_the_thread_that_made_them(run):
    run(HEAD + """
import queue
made = queue.Queue()
thread = threading.Thread(target=lambda: made.put(iter(DataLoader(Examples(lambda i: i, 100), num_workers=2))))
thread.start()
thread.join()
assert [plain(batch)[0] for batch in made.get()] == list(range(100))
""")


def test_ctrl_c_ends_all_of_it(tmp_path):
    (tmp_path / "script.py").write_text(
        WAITING + "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nread()")
    # A session of its own, so that the signal goes to the script and its workers as a terminal would send it.
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=environment(), text=True,
                          start_new_session=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL) as process:
        found = handles(process, 2)
        os.killpg(process.pid, signal.SIGINT)
        await_end(found)
        _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode == -signal.SIGINT and errors.count("Traceback") == 1
            and errors.endswith("KeyboardInterrupt\n")), errors


def test_a_script_that_ends_within_a_pass_ends(run):
    done = run(HEAD + """
batches = iter(DataLoader(Examples(lambda i: i, 10**6), num_workers=2))
kept = next(batches)
reading = iter(DataLoader(Examples(lambda i: i, 10**6)))
print(plain(kept), plain(next(reading)))
""")
    assert done.stdout == "[0] [0]\n" and done.stderr == ""


def test_a_fork_of_the_script_does_not_end_its_workers(run):
    run(HEAD + """
loader = DataLoader(Examples(lambda i: i, 50), num_workers=2, persistent_workers=True)
batches = iter(loader)
next(batches)
child = os.fork()
if child == 0:
    batches.close()
    loader.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert [plain(batch)[0] for batch in batches] == list(range(1, 50))
""")


def test_a_sampler_that_fails_leaves_no_workers(run):
    run(CAUGHT + """
class Failing:
    def __init__(self, good): self.good = good
    def __len__(self): return 9
    def __iter__(self):
        yield from [[0]] * self.good
        raise ValueError("no order")
for good in 0, 1, 7:
    error, batches = caught(DataLoader(Examples(lambda i: i), batch_sampler=Failing(good), num_workers=2), ValueError)
    assert str(error) == "no order" and batches == max(0, good - 4)
    del error  # its traceback holds what was running
    assert multiprocessing.active_children() == []
""")


def test_kept_workers_serve_one_pass_at_a_time(run):
    run(CAUGHT + """
loader = DataLoader(Examples(lambda i: i, 50), num_workers=2, persistent_workers=True)
first = iter(loader)
next(first)
second = iter(loader)
error, batches = caught(first)
assert batches == 0 and "another epoch over the DataLoader began" in str(error)
assert [plain(batch)[0] for batch in second] == list(range(50))
third = iter(loader)
next(third)
loader.close()
assert "closed within a pass" in str(caught(third)[0])
""")


@pytest.mark.parametrize("code, what", [
    ("DataLoader(range(3), num_workers=-1)", "num_workers=-1"),
    ("DataLoader(range(3), batch_size=0)", "batch_size=0"),
    ("DataLoader(range(3), prefetch_factor=0)", "prefetch_factor=0"),
    ("DataLoader(range(3), timeout=-1)", "timeout=-1"),
    ("DataLoader(range(3), to='jax')", "to='jax'\n  hint: it is \"numpy\" or \"torch\""),
    ("DataLoader(range(3), return_list=False)", "return_list=False without feed_list"),
    ("DataLoader(range(3), batch_sampler=[[0]], shuffle=True)",
     "a batch_sampler, and batch_size, shuffle or drop_last"),
    ("DataLoader(Stream(3), shuffle=True)", "Stream is an IterableDataset, whose order is its own"),
    ("DataLoader(range(3), places=[])", "0 places"),
    ("list(DataLoader(range(3), feed_list=['x', 'y'], return_list=False))",
     "a batch has 1 parts, feed_list has 2: x, y"),
])
def test_what_the_loader_refuses(run, code, what):
    done = run(HEAD + f"""
try:
    {code}
except paddle.Error as error:
    print(error)
""")
    assert what in done.stdout
