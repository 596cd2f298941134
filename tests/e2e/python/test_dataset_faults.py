"""Bad input to datasets, as a table: each is one clear error that names the place, ends the script, leaves
nothing running and takes no memory that the data is not worth."""

import gzip
import json
import os
import re
import select
import shutil
import subprocess
import sys

import pytest
from conftest import environment
from fleetrun_job import find_fleetrun
from flow import LIMIT

# Reads the files of case.json once, and says how many examples there were;
# at its end, whatever it is, its peak memory.
SCRIPT = """
import atexit
import json
import fleetrun as paddle

def tell_peak():
    with open("/proc/self/status") as status, open("peak", "w") as peak:
        peak.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))

atexit.register(tell_peak)

case = json.load(open("case.json"))
paddle.enable_static()
slots = [paddle.static.data(name=name, shape=[None, width or 1], dtype=dtype, lod_level=int(width == 0))
         for name, dtype, width in case["slots"]]
result = paddle.mean(paddle.cast(slots[0], "float32"))
dataset = getattr(paddle.distributed, case["dataset"])()
dataset.init(use_var=slots, pipe_command=case["command"], batch_size=2, thread_num=case["threads"],
             **case["settings"])
dataset.set_filelist(case["files"])
if case["dataset"] == "InMemoryDataset":
    dataset.load_into_memory()
executor = paddle.static.Executor(paddle.CPUPlace())
executor.run(paddle.static.default_startup_program())
executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
print(executor.last_pass.examples, "examples")
"""
IDS = [("s", "int64", 0)]
FLOATS = [("g", "float32", 0)]
THREE = [("f", "float32", 2), ("s", "int64", 0), ("y", "int64", 1)]
MEMORY = 300  # MiB: the interpreter with the package, and a line of the greatest length


def session_of(pid):
    """Pids of the processes of the session that `pid` leads."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == pid and fields[0] != "Z" and int(name) != pid:
            found.append(int(name))
    return found


def all_end(pids):
    """Whether all of them end; they may still be about to."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = select.select([process], [], [], LIMIT)[0]
        os.close(process)
        if not ended:
            return False
    return True


@pytest.fixture
def read(tmp_path):
    """read(text, …): (exit status, standard output, standard error,
    peak MiB) of reading a file of this text."""

    def run(text, slots=IDS, command="cat", name="data.txt", dataset="QueueDataset", files=None,
            meanwhile=None,
            **settings):
        if text is not None:
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
        (tmp_path / "case.json").write_text(json.dumps({
            "slots": slots, "command": command, "files": files or [str(tmp_path / name)], "dataset": dataset,
            "threads": len(files or [1]), "settings": settings}))
        with open(tmp_path / "out", "w+") as out, open(tmp_path / "err", "w+") as err:
            process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=environment(),
                                       stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                if meanwhile:
                    meanwhile(process)
                process.wait(LIMIT)
            finally:
                if process.returncode is None:
                    process.kill()
                    process.wait()
            assert all_end(session_of(process.pid)), "something is left running"
            out.seek(0), err.seek(0)
            return process.returncode, out.read(), err.read(), int((tmp_path / "peak").read_text()) >> 10

    return run


def check_refused(result, *parts):
    status, out, err, peak = result
    assert status == 1, err
    assert "examples" not in out
    errors = [line for line in err.splitlines() if "Error" in line]
    assert len(errors) == 1, err
    for part in parts:
        assert part in err, err
    assert peak < MEMORY, f"{peak} MiB"


BAD_LINES = [
    ("an empty line", IDS, "", "2:1: the line is empty"),
    ("a line of blanks", IDS, " \t ", "the line is empty"),
    ("a count of 0", IDS, "0", "2:1: slot 's': a count of 0"),
    ("a negative count", IDS, "-1 5", "2:1: slot 's': '-1' is not a count of values"),
    ("a count alone", IDS, "1", "slot 's': 1 value announced, the line ends after 0"),
    ("too few values", IDS, "2 7", "slot 's': 2 values announced, the line ends after 1"),
    ("too many values", IDS, "1 7 8", "2:5: the line goes on with '8' after the last slot, 's'"),
    ("a count of 2^31-1", IDS, "2147483647 1",
     "slot 's': 2147483647 values announced, the line ends after 1"),
    ("a count of 2^32+1", IDS, "4294967297 1",
     "slot 's': 4294967297 values announced, the line ends after 1"),
    ("a count of 2^64-1", IDS, "18446744073709551615 1", "the line ends after 1"),
    ("a count beyond 64 bits", IDS, "99999999999999999999 1",
     "the count '99999999999999999999' does not fit 64 bits"),
    ("a count with a plus", IDS, "+1 7", "'+1' is not a count of values"),
    ("an id of 2^64", IDS, "1 18446744073709551616",
     "2:3: slot 's': '18446744073709551616' does not fit 64 bits"),
    ("a hexadecimal id", IDS, "1 0x10", "'0x10' is not a whole number"),
    ("a float as id", IDS, "1 7.9", "'7.9' is not a whole number"),
    ("a comma", FLOATS, "1 1,5", "2:3: slot 'g': '1,5' is not a number"),
    ("an underscore", FLOATS, "1 1_0", "'1_0' is not a number"),
    ("a float too large", FLOATS, "1 1e400", "'1e400' is too large for float32"),
    ("a word", FLOATS, "1 none", "'none' is not a number"),
    ("a no-break space", IDS, "1\u00a07", r"'1\xC2\xA07' is not a count of values"),
    ("carriage returns only", IDS, "1 5\r1 6\r", "the line goes on with '1' after the last slot"),
    ("a NUL", IDS, "1 5\0", r"'5\x00' is not a whole number"),
    ("a byte 0xFF", IDS, b"1 \xff", r"'\xFF' is not a whole number"),
    ("a byte order mark", IDS, "\ufeff1 5", r"'\xEF\xBB\xBF1' is not a count of values"),
    ("a slot too few", THREE, "2 1 1 1 5", "slot 'y': the line ends before it"),
    ("a slot too many", THREE, "2 1 1 1 5 1 0 1 7", "the line goes on with '1' after the last slot, 'y'"),
    ("a dense slot of another width", THREE, "3 1 1 1 1 5 1 0", "slot 'f': 3 values where its width is 2"),
]
GOOD = {"s": "1 5", "g": "1 5", "f": "2 1 1 1 5 1 0"}


@pytest.mark.parametrize("slots, line, message", [row[1:] for row in BAD_LINES],
                         ids=[row[0] for row in BAD_LINES])
def test_a_bad_line_is_named_with_file_line_and_slot(read, tmp_path, slots, line, message):
    line = line.encode() if isinstance(line, str) else line
    good = GOOD[slots[0][0]].encode() + b"\n"
    check_refused(read(good + line + b"\n" + good, slots), f"{tmp_path}/data.txt:2:", message)


@pytest.mark.parametrize("slots, line", [
    (IDS, "1 -1"), (IDS, "1\t7"), (IDS, "1\v7"), (IDS, " 1  7 "), (IDS, "1 7\r"),
    (IDS, "1 18446744073709551615"),
    (FLOATS, "1 nan"), (FLOATS, "1 0x10"), (FLOATS, "1 inf"), (FLOATS, "1 1e-400")], ids=repr)
def test_what_looks_odd_and_is_right_is_read(read, slots, line):
    status, out, err, _ = read(GOOD[slots[0][0]] + "\n" + line, slots)
    assert (status, out.splitlines()[-1:]) == (0, ["2 examples"]), err


def test_a_million_empty_lines_are_one_error(read, tmp_path):
    check_refused(read("\n" * 1_000_000), f"{tmp_path}/data.txt:1:1: the line is empty")


@pytest.mark.parametrize("text", ["1 " + "7" * (64 << 20), "1 " + "7 " * (32 << 20), " " * (64 << 20)],
                         ids=["one number", "many numbers", "blanks"])
def test_a_line_of_64_megabytes_is_refused_at_16(read, tmp_path, text):
    check_refused(read("1 5\n" + text), f"{tmp_path}/data.txt:2:", "the line is longer than 16777216 bytes")


def test_gzip_bytes_under_a_name_of_text(read, tmp_path):
    check_refused(read(gzip.compress(b"1 5\n" * 1000)),
                  f"{tmp_path}/data.txt:1:1: gzip bytes where text should be", "hint: ")


def test_text_under_a_name_of_gzip(read, tmp_path):
    check_refused(read("1 5\n", name="data.gz"), f"{tmp_path}/data.gz: ", "not in gzip format", "hint: ")


def test_a_gzip_file_that_was_cut(read, tmp_path):
    whole = gzip.compress("".join(f"1 {i * i}\n" for i in range(100_000)).encode())
    check_refused(read(whole[:len(whole) // 2], name="data.gz"), f"{tmp_path}/data.gz: ",
                  "ends in the middle of its gzip data, at byte ")


@pytest.mark.parametrize("make, message", [
    (lambda path: None, "No such file"), (lambda path: path.mkdir(), "is a directory"),
    (lambda path: os.mkfifo(path), "is not a regular file")], ids=["missing", "folder", "fifo"])
def test_a_file_that_is_none(read, tmp_path, make, message):
    make(tmp_path / "other")
    check_refused(read(None, files=[str(tmp_path / "other")]), f"{tmp_path}/other", message)


COMMANDS = [
    ("fails after all its output", "cat; exit 3", "exited with 3"),
    ("fails before any", "exit 1", "exited with 1"),
    ("is killed", "cat; kill -KILL $$", "was killed by SIGKILL"),
    ("fails in the midst of a line", "printf '1 5\\n2 '; exit 9", "exited with 9"),
    ("ends in the midst of a line", "printf '1 5\\n2 6'", "2 values announced, the line ends after 1"),
    ("is not found", "no-such-command", "exited with 127"),
    ("hides a failure in a pipeline", "(cat; exit 4) | cat", "exited with 4"),
    ("floods standard error and fails", "head -c 100000000 /dev/zero | tr '\\0' '\\n' >&2; exit 5",
     "exited with 5"),
    ("floods with one line and fails", "head -c 30000000 /dev/zero | tr '\\0' x >&2; exit 5",
     "exited with 5"),
    ("writes no end of a line", "tr '\\0' 7 < /dev/zero", "the line is longer than 16777216 bytes"),
    ("writes bad lines for ever", "yes '1 x'", ":1:3: slot 's': 'x' is not a whole number"),
    ("leaves a child that holds the output", "cat; sleep 1000 &",
     "a background process that it left kept its output open"),
]


@pytest.mark.parametrize("command, message", [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_a_pipe_command_that(read, tmp_path, command, message):
    result = read("1 5\n", command=command)
    if "floods" in os.environ.get("PYTEST_CURRENT_TEST", ""):
        assert result[0] == 1 and message in result[2][-4000:], result[2][-4000:]
        assert result[3] < MEMORY
    else:
        check_refused(result, f"{tmp_path}/data.txt", message)


def test_a_child_that_does_not_hold_the_output_is_ended(read):
    status, out, err, _ = read("1 5\n", command="cat; sleep 1000 > /dev/null 2>&1 &")
    assert (status, out.splitlines()[-1:]) == (0, ["1 examples"]), err


def test_a_command_that_never_ends_is_ended_with_the_script(read, tmp_path):
    os.mkfifo(tmp_path / "started")

    def interrupt(process):
        with open(tmp_path / "started") as started:
            started.read()
        process.send_signal(2)

    status, _, err, _ = read("1 5\n", command="echo go > started; trap '' TERM; sleep 1000 | cat",
                             meanwhile=interrupt)
    assert status in (1, 130, -2) and "KeyboardInterrupt" in err, err


def test_an_error_of_one_file_ends_the_commands_of_the_others(read, tmp_path):
    for name, text in (("a", "good\n"), ("b", "bad\n")):
        (tmp_path / name).write_text(text)
    os.mkfifo(tmp_path / "started")
    command = ("read word; if [ $word = bad ]; then read go < started; exit 5; fi; echo go > started; "
               "exec sleep 1000")
    check_refused(read(None, command=command, files=[str(tmp_path / name) for name in "ab"]), f"{tmp_path}/b",
                  "exited with 5")


SHRINKING = """
import os
import fleetrun as paddle
from fleetrun import _native

paddle.enable_static()
slot = paddle.static.data(name="s", shape=[None, 1], dtype="int64", lod_level=1)
dataset = paddle.distributed.QueueDataset()
dataset.init(use_var=[slot], pipe_command={command!r}, batch_size=1000)
dataset.set_filelist(["data.txt"])
source = dataset.native()
_native.start_reading(source, True)
_native.read_batch(source, 0)
os.truncate("data.txt", os.path.getsize("data.txt") // 2)
while _native.read_batch(source, 0) is not None:
    pass
"""


@pytest.mark.parametrize("command", ["cat", "cat -u"])
def test_a_file_that_shrinks_while_it_is_read(run, tmp_path, command):
    # More than a reader, a pipe and a queue of batches hold,
    # so that the end of the file is not read when it is cut.
    (tmp_path / "data.txt").write_text("1 5\n" * 4_000_000)
    done = run(SHRINKING.format(command=command), expect=1)
    assert "data.txt: had 16000000 bytes when it was opened and has 8000000 now" in done.stderr, done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize("command", ["", "cat"])
@pytest.mark.parametrize("error, says", [("ESTALE", "Stale file handle"), ("EIO", "Input/output error")])
def test_a_file_that_cannot_be_read_any_more(tmp_path, command, error, says):
    """As one of a network file system that another host has replaced."""
    if not shutil.which("strace"):
        pytest.skip("there is no strace")
    (tmp_path / "data.txt").write_text(("2000" + " 5" * 2000 + "\n") * 1000)  # more than two reads
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "case.json").write_text(json.dumps({
        "slots": IDS, "dataset": "QueueDataset", "command": command, "threads": 1, "settings": {},
        "files": ["data.txt"]}))
    done = subprocess.run(
        ["strace", "-f", "-o", "calls", "-P", "data.txt", "-e", "trace=read", "-e",
         f"inject=read:error={error}:when=3", sys.executable, "script.py"], cwd=tmp_path, env=environment(),
        capture_output=True, text=True, timeout=LIMIT)
    if "INJECTED" not in (tmp_path / "calls").read_text():
        pytest.skip(f"nothing can be traced here: {done.stderr}")
    assert done.returncode == 1 and "examples" not in done.stdout
    assert re.search(rf"Error: data.txt: read failed after \d+ bytes: {says}", done.stderr), done.stderr


def test_a_command_that_says_nothing_for_too_long(read, tmp_path):
    check_refused(read("1 5\n", command="cat; exec sleep 1000", pipe_timeout=0.1), f"{tmp_path}/data.txt",
                  "sleep 1000",
                  "has printed nothing for 100 ms", "pipe_timeout")


def test_good_lines_are_read_and_bad_ones_counted(read, tmp_path):
    lines = ["1 5"] * 1000
    for number in (1, 500, 501, 1000):
        lines[number - 1] = "0"
    status, out, err, _ = read("\n".join(lines), bad_line="skip:4")
    assert (status, out.splitlines()[-1:]) == (0, ["996 examples"]), err
    assert "4 bad lines were skipped" in err and f"{tmp_path}/data.txt:501:1: slot 's': a count of 0" in err
    check_refused(read("\n".join(lines), bad_line="skip:3"),
                  f"{tmp_path}/data.txt:1000:1: slot 's': a count of 0")


def test_a_line_of_64_megabytes_can_be_skipped(read):
    status, out, err, peak = read("1 5\n1 " + "7" * (64 << 20) + "\n1 6\n", bad_line="skip:1")
    assert (status, out.splitlines()[-1:]) == (0, ["2 examples"]), err
    assert peak < MEMORY


def test_a_million_empty_lines_are_not_skipped_by_a_few(read, tmp_path):
    check_refused(read("\n" * 1_000_000, bad_line="skip:100"),
                  f"{tmp_path}/data.txt:101:1: the line is empty")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_trainer_of_several_may_have_no_file(tmp_path, start, mode):
    """Three trainers, two files: get_file_shard gives one of them none, as Paddle's does. With a shuffle it
    has its share of the examples."""
    (tmp_path / "train.py").write_text("""
import sys
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
fleet.init()
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
loss = paddle.mean(paddle.static.nn.sparse_embedding(ids, [100, 2]))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] == "async"
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    for kind in (paddle.distributed.QueueDataset, paddle.distributed.InMemoryDataset):
        dataset = kind()
        dataset.init(batch_size=4, thread_num=2, use_var=[ids])
        dataset.set_filelist(fleet.util.get_file_shard(["a", "b"]))
        if kind is paddle.distributed.InMemoryDataset:
            dataset.load_into_memory()
            dataset.global_shuffle(fleet)
        exe.train_from_dataset(paddle.static.default_main_program(), dataset, print_period=1000)
        own = exe.last_pass.examples
        print(kind.__name__, own, int(fleet.util.all_reduce(own)))
    fleet.stop_worker()
""")
    for name in "ab":
        (tmp_path / name).write_text("".join(f"1 {i}\n" for i in range(60)))
    process = start([find_fleetrun(), "--server_num=1", "--trainer_num=3", "--log_dir=log", "--python",
                     sys.executable, "train.py", mode])
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, output
    said = [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(3)]
    assert ["QueueDataset 60 120" in text for text in said] == [True, True, False], said
    assert "QueueDataset 0 120" in said[2] and "the dataset gave no example out of no file" in said[2]
    assert all(re.search(r"InMemoryDataset [1-9]\d* 120", text) for text in said), said


@pytest.mark.parametrize("dataset", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("variables,refused", [
    ({}, True), ({"FLEETRUN_EMPTY_DATASET": "allow"}, False), ({"PADDLE_TRAINERS_NUM": "2"}, False)])
def test_a_dataset_without_an_example_is_refused_unless_allowed(tmp_path, dataset, variables, refused):
    (tmp_path / "script.py").write_text(SCRIPT)
    for name in ("a", "b"):
        (tmp_path / name).write_text("")
    (tmp_path / "case.json").write_text(json.dumps({
        "slots": IDS, "command": "cat", "files": ["a", "b"], "dataset": dataset, "threads": 1,
        "settings": {}}))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment(**variables),
                          capture_output=True, text=True, timeout=LIMIT)
    said = "Executor.infer_from_dataset: the dataset gave no example out of 2 files (a, …)"
    assert said in done.stderr and ("warning: " + said in done.stderr) != refused
    assert done.returncode == int(refused) and ("0 examples" in done.stdout) != refused
