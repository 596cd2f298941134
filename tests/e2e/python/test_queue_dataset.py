"""QueueDataset from Python: every setting that it shares with Paddle's, and the ones that Paddle has not."""

import gzip
import json
import subprocess
import sys

import pytest
from conftest import environment
from fleetrun_job import find_fleetrun
from flow import LIMIT

# Runs the lines of case.json on a dataset of one slot of ids, s, and prints what it read.
SCRIPT = """
import json
import os
import fleetrun as paddle

case = json.load(open("case.json"))
paddle.enable_static()
s = paddle.static.data(name="s", shape=[None, 1], dtype="int64", lod_level=1)
result = paddle.sum(paddle.cast(s, "float32"))
dataset = paddle.distributed.QueueDataset()
dataset.set_use_var([s])
dataset.set_filelist(case["files"])
executor = paddle.static.Executor(paddle.CPUPlace())
executor.run(paddle.static.default_startup_program())

def read():
    executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
    return [executor.last_pass.examples, executor.last_pass.batches]

said = []
exec(case["lines"])
json.dump(said, open("said.json", "w"))
"""


@pytest.fixture
def run(tmp_path):
    """Runs `lines` over `files` (name to text); what they appended to `said`,
    and standard error; or the status."""

    def one(lines, files=None, status=0, **more):
        names = []
        for name, text in (files or {"a": "1 1\n1 2\n1 3\n", "b": "1 4\n1 5\n"}).items():
            path = tmp_path / name
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            names.append(str(path))
        (tmp_path / "case.json").write_text(json.dumps({"lines": lines, "files": names}))
        (tmp_path / "script.py").write_text(SCRIPT)
        ended = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env={**environment(), **more},
                               text=True,
                               capture_output=True, timeout=LIMIT, check=False)
        assert ended.returncode == status, ended.stderr
        return json.loads((tmp_path / "said.json").read_text()) if status == 0 else None, ended.stderr

    return one


def test_every_setting_of_paddles_has_its_setter_in_both_spellings(run):
    said, _ = run("""
for name, value in dict(batch_size=2, thread=1, pipe_command="cat", input_type=0, download_cmd="cat", use_var=[s]).items():
    getattr(dataset, "set_" + name)(value)
    getattr(dataset, "_set_" + name)(value)
dataset.set_hdfs_config("", "")
dataset._set_hdfs_config("", "")
said.append(read())
dataset.init(batch_size=3, thread_num=1, use_var=[s], pipe_command="sed p", input_type=0, fs_name="", fs_ugi="",
             download_cmd="cat")
said.append(read())
""")
    assert said == [[5, 3], [10, 4]]


@pytest.mark.parametrize("lines, parts", [
    ("dataset.init(no_such=1)", ["TypeError", "no_such"]),
    ("dataset.init(bad_line='skip')", ["bad_line='skip'", "skip:N"]),
    ("dataset.init(batch_size=0)", ["batch_size=0"]),
    ("dataset.init(thread_num=-1)", ["thread_num=-1"]),
    ("dataset.set_pipe_command([])", ["pipe_command=[]", "names no program"]),
    ("dataset.set_pipe_timeout(-1)", ["pipe_timeout=-1"]),
    ("dataset.local_shuffle()", ["does not shuffle", "InMemoryDataset"]),
    ("dataset.set_pipe_timeout(0.05); dataset.set_pipe_command('exec sleep 1000'); read()",
     ["the pipe command 'exec sleep 1000' has printed nothing for 50 ms"]),
    ("dataset.set_filelist(['s3://bucket/a']); read()", ["s3://bucket/a", "download_cmd"]),
    ("dataset.set_pipe_command(['no-such-program-here']); read()", ["cannot start no-such-program-here"]),
])
def test_what_is_refused_names_it(run, lines, parts):
    _, err = run(lines, status=1)
    for part in parts:
        assert part in err


def test_a_program_without_a_shell_packed_files_and_files_from_afar(run, tmp_path):
    files = {"a": "1 1\n1 2\n", "b.gz": gzip.compress(b"1 3\n") + gzip.compress(b"1 4\n")}
    said, _ = run(f"""
said.append(read())
dataset.set_pipe_command(["sed", "p"])
said.append(read())
dataset.set_filelist(["hdfs:/x/a", "hdfs:/x/b.gz"])
dataset.set_download_cmd("sh -c 'cat {tmp_path}/${{1##*/}}' fetch")
said.append(read())
""", files)
    assert [examples for examples, _ in said] == [4, 8, 8]


def test_drop_last_leaves_the_short_batch_out(run):
    said, _ = run("dataset.init(batch_size=2, use_var=[s], drop_last=True); said.append(read())")
    assert said == [[4, 2]]


BAD = {"a": "1 1\nx\n1 2\n", "b": "\n1 3\n0\n1 4\n"}


def test_bad_lines_are_skipped_counted_and_told_of(run, tmp_path):
    said, err = run("""
said.append(dataset.bad_lines())
dataset.set_bad_line("skip:3")
said.append(read()[0])
said.append(dataset.bad_lines())
""", BAD)
    places = [f"{tmp_path}/a:2:1: slot 's': 'x' is not a count of values",
              f"{tmp_path}/b:1:1: the line is empty",
              f"{tmp_path}/b:3:1: slot 's': a count of 0; an example needs at least 1 value in each slot"]
    assert said == [{"count": 0, "places": []}, 4, {"count": 3, "places": places}]
    warnings = [line for line in err.splitlines() if "bad line" in line]
    assert len(warnings) == 1
    assert warnings[0].endswith("3 bad lines were skipped: " + "; ".join(places))


def test_one_bad_line_too_many_ends_the_pass(run, tmp_path):
    _, err = run("read()", BAD, status=1, FLEETRUN_BAD_LINE="skip:2")
    assert f"{tmp_path}/b:3:1: slot 's': a count of 0" in err
    assert "after 2 bad lines were skipped" in err


def test_the_environment_says_what_a_script_leaves_open(run):
    said, _ = run("said.append(read()[0])", BAD, FLEETRUN_BAD_LINE="skip:3")
    assert said == [4]
    run("dataset.init(use_var=[s], bad_line='fail'); read()", BAD, status=1, FLEETRUN_BAD_LINE="skip:3")
    _, err = run("read()", BAD, status=1, FLEETRUN_BAD_LINE="never")
    assert "bad_line='never'" in err


def test_the_launcher_hands_the_choice_to_the_trainers(tmp_path):
    for given, heard in (["--bad_line=skip:7"], "skip:7"), (["--bad-line", "fail"], "fail"), ([], "None"):
        ended = subprocess.run([find_fleetrun(), *given, "--log_dir", tmp_path / "log", "--no_python",
                                "python3", "-c",
                                "import os; print(os.environ.get('FLEETRUN_BAD_LINE'))"],
                               cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LIMIT,
                               check=False)
        assert ended.returncode == 0, ended.stderr
        assert heard in (tmp_path / "log" / "workerlog.0").read_text().split()
    refused = subprocess.run([find_fleetrun(), "--bad_line=skip:0", "script.py"], cwd=tmp_path,
                             env=environment(),
                             capture_output=True, text=True, timeout=LIMIT, check=False)
    assert refused.returncode == 125
    assert "--bad_line" in refused.stderr and "skip:N" in refused.stderr


def test_a_dataset_in_memory_loads_with_the_same_settings(run):
    said, err = run("""
memory = paddle.distributed.InMemoryDataset()
memory.init(use_var=[s], bad_line="skip:3", pipe_command=["sed", "p"], pipe_timeout=60)
memory.set_filelist(case["files"][:1])
memory.load_into_memory()
said.append([memory.get_memory_data_size(), memory.bad_lines()["count"]])
""", BAD)
    assert said == [[4, 2]]
    assert "2 bad lines were skipped" in err
