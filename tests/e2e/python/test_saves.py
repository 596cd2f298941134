"""What a job has saved comes back: in Paddle's format, past a newest save that is damaged;
never from two different ones."""

import itertools
import re
import subprocess
import sys

import flow
import pytest
from conftest import environment
from flow import LIMIT

MEAN = (
    "exe.infer_from_dataset(paddle.static.default_main_program(), dataset, "
        "fetch_list=[model.loss], print_period=0); print('mean', round(exe.last_pass.fetch_means[0], "
        "5), flush=True)")
PASS = "exe.train_from_dataset(paddle.static.default_main_program(), dataset, print_period=0)"


@pytest.fixture
def job(tmp_path, start):
    """job(passes, status=0, servers=1) runs train.py under fleetrun, one trainer; its output."""
    from fleetrun_job import find_fleetrun

    logs = (tmp_path / f"log{number}" for number in itertools.count())

    def run(passes, status=0, servers=1):
        log = next(logs)
        process = start([find_fleetrun(), f"--server_num={servers}", "--trainer_num=1", f"--log_dir={log}",
                         "--python",
                         sys.executable, "train.py", str(passes), "sync"])
        output, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == status, output
        # Each process's own words are in its own file.
        return output + "".join(path.read_text() for path in sorted(log.rglob("*log*")) if path.is_file())

    return run


def means(output):
    """The losses that were printed, without repetitions: a line is in the output and in a file."""
    return list(dict.fromkeys(re.findall(r"mean (\S+)", output)))


def rewrite(directory, *changes):
    """Changes train.py; each text that is to go has to be there."""
    path = directory / "train.py"
    text = path.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)


def test_what_is_saved_in_paddles_format_comes_back(tmp_path, job):
    save = "fleet.save_persistables(exe, 'model', format='paddle')"
    flow.write(tmp_path, after=f"{save}; {MEAN}")
    saved = means(job(3))
    assert len(saved) == 1 and float(saved[0]) < 0.55
    assert not list((tmp_path / "model").rglob("*.manifest*")), "this is Paddle's own layout, which has none"
    rewrite(tmp_path, (save, "fleet.load_model('model', mode=0)"))
    assert means(job(0)) == saved
    rewrite(tmp_path, ("fleet.load_model('model', mode=0)", "0"),
            ("fleet.init_server()", "fleet.init_server('model')"))
    assert means(job(0)) == saved


def test_servers_and_trainers_start_from_a_model_for_inference(tmp_path, job):
    save = ("fleet.save_inference_model(exe, 'model', ['dense_input', 'C1', 'C2', 'C3', 'label'], "
            "[model.loss])")
    flow.write(tmp_path, after=f"{save}; {MEAN}")
    saved = means(job(3))
    assert len(saved) == 1 and float(saved[0]) < 0.55
    rewrite(tmp_path, (save, "fleet.load_model('model', mode=0)"))
    assert means(job(0)) == saved
    rewrite(tmp_path, ("fleet.load_model('model', mode=0)", "0"),
            ("fleet.init_server()", "fleet.init_server('model')"))
    assert means(job(0, servers=2)) == saved


FED = """{"dense_input": numpy.ones([3, 4], "float32"), "label": numpy.array([[0], [1], [1]]),
            **{f"C{i}": numpy.array([[i], [2 * i], [7]]) for i in (1, 2, 3)}}"""
ALONE = f"""
import numpy
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor()
program, _, targets = paddle.static.load_inference_model("model/model", exe)
print("mean", float(exe.run(program, feed={FED}, fetch_list=targets)[0]))
"""


def test_a_model_of_each_mode_is_loaded_without_servers(tmp_path, job, start):
    """In mode geo the servers' tables have a rule of their own, and so has what they save."""
    flow.write(tmp_path, lines=40, after=f"""import numpy
    fleet.save_inference_model(exe, 'model', ['dense_input', 'C1', 'C2', 'C3', 'label'], [model.loss])
    print("mean", float(exe.run(paddle.static.default_main_program().clone(for_test=True), feed={FED},
                                fetch_list=[model.loss])[0]), flush=True)""")
    mode = "dist_strategy.a_sync = True\ndist_strategy.a_sync_configs = {'k_steps': int(sys.argv[1])}"
    rewrite(tmp_path, ("dist_strategy.a_sync = a_sync", mode))
    (tmp_path / "alone.py").write_text(ALONE)
    for k_steps in (0, 2):
        saved = means(job(k_steps, servers=2))
        alone = start([sys.executable, "alone.py"])
        assert means(alone.communicate(timeout=LIMIT)[0]) == saved and len(saved) == 1


def test_a_server_starts_with_the_rows_of_some_tables(tmp_path):
    from fleetrun_job import find_fleetrun

    command = [find_fleetrun(), "--server_num=2", "--trainer_num=1", f"--python={sys.executable}", "train.py"]
    (tmp_path / "train.py").write_text("""
import sys
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
paddle.seed(1)
fleet.init()
ids = paddle.static.data("ids", [None, 1], "int64")
rows = [paddle.static.nn.sparse_embedding(ids, [100, 1], param_attr=paddle.ParamAttr(name=name))
        for name in ("first", "second")]
predicted = paddle.static.nn.fc(paddle.concat([paddle.reshape(row, [-1, 1]) for row in rows], axis=1), 1)
loss = paddle.mean((predicted - 3) * (predicted - 3))
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server(*eval(sys.argv[1]))
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
feed = {"ids": np.arange(10).reshape(-1, 1)}
values = exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[*rows, "fc_0.w_0"])
print("BEGAN", *[float(value.sum()).hex() for value in values])
exe.run(paddle.static.default_main_program(), feed=feed)
fleet.save_persistables(exe, "saved") if len(sys.argv) > 2 else None
fleet.stop_worker()
""")

    def begins(arguments, *more, status=0):
        done = subprocess.run([*command, arguments, *more], cwd=tmp_path, env=environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        assert done.returncode == status, done.stdout + done.stderr
        began = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("BEGAN")]
        return began[0] if status == 0 else done.stderr

    fresh = begins("()", "save")
    saved = begins("['saved']")
    assert all(one != other for one, other in zip(fresh, saved))
    assert begins("['saved', ['second']]") == [fresh[0], saved[1], fresh[2]]
    assert begins("['saved', []]") == fresh
    said = begins("['saved', ['third']]", status=1)
    assert "no sparse table is called 'third'" in said and "there are: first, second" in said, said


def test_paddles_format_is_written_by_one_server_only(tmp_path, job):
    flow.write(tmp_path, after="fleet.save_persistables(exe, 'model', format='paddle')")
    output = job(1, status=1, servers=2)
    assert "2 servers" in output and "format" in output, output


def damage_newest(model):
    """Flips a bit in a table of the newest save: pieces are numbered by save."""
    piece = max(model.glob("part-*"), key=lambda path: path.name)
    content = bytearray(piece.read_bytes())
    content[len(content) // 2] ^= 1
    piece.write_bytes(content)


def test_a_server_starts_from_the_save_before_a_damaged_one_and_says_so(tmp_path, job):
    save = "fleet.save_persistables(exe, 'model')"
    flow.write(tmp_path, after=f"{save}; {MEAN}; {PASS}; {save}; {MEAN}")
    first, second = means(job(1))
    assert float(second) < float(first)
    damage_newest(tmp_path / "model")
    rewrite(tmp_path, (f"{save}; {MEAN}; {PASS}; {save}; {MEAN}", MEAN),
            ("fleet.init_server()", "fleet.init_server('model')"))
    output = job(0)
    assert means(output) == [first]
    assert "RuntimeWarning" in output and "the one before it is loaded" in output, output


def test_servers_that_start_from_different_saves_are_refused(tmp_path, job):
    save = "fleet.save_persistables(exe, 'model')"
    flow.write(tmp_path, after=f"{save}; {PASS}; fleet.save_persistables(exe, 'other'); {MEAN}")
    last = means(job(1, servers=2))
    rewrite(tmp_path, (f"{save}; {PASS}; fleet.save_persistables(exe, 'other'); {MEAN}", MEAN),
            ("fleet.init_server()", "fleet.init_server(['model', 'other'][fleet.server_index()])"))
    output = job(0, status=1, servers=2)
    assert "was started from another save than the servers before it" in output, output
    assert "copy one save to all of them" in output
    rewrite(tmp_path, ("['model', 'other'][fleet.server_index()]", "'other'"))
    assert means(job(0, servers=2)) == last


def test_trainers_that_save_and_load_at_once_leave_a_whole_model(tmp_path, start):
    from fleetrun_job import find_fleetrun

    (tmp_path / "train.py").write_text("""
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
fleet.init()
x = paddle.static.data("x", [None, 4])
ids = paddle.static.data("ids", [None, 1], "int64")
y = paddle.static.nn.fc(x, 1) + paddle.static.nn.sparse_embedding(ids, [100, 1])
loss = paddle.mean(y * y)
test = paddle.static.default_main_program().clone(for_test=True)
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), fleet.DistributedStrategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    feed = {"x": np.ones((2, 4), "float32"), "ids": np.array([[1], [7]])}
    for number in range(4):
        exe.run(feed={"x": np.ones((2, 4), "float32"), "ids": np.array([[number], [7]])})
        fleet.barrier_worker()
        fleet.save_inference_model(exe, "model", ["x", "ids"], y)
        fleet.save_persistables(exe, "all")
    fleet.barrier_worker()
    fleet.load_model("all") if fleet.is_first_worker() else None
    fleet.barrier_worker()
    whole = exe.run(test, feed=feed, fetch_list=[y])[0]
    for _ in range(6):
        fleet.load_model("all")
        fleet.load_inference_model("model")
    fleet.barrier_worker()
    assert np.array_equal(exe.run(test, feed=feed, fetch_list=[y])[0], whole)
    fleet.stop_worker()
""", encoding="utf-8")
    job = start([find_fleetrun(), "--server_num=2", "--trainer_num=3", "--python", sys.executable,
                 "train.py"])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    assert not list(tmp_path.rglob("*.new")), "nothing is left over"
    assert (tmp_path / "model" / "model.pdiparams").is_file() and (tmp_path / "model" / "tables").is_dir()
