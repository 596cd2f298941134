"""fleetrun trace and fleetrun plot: jobs of every kind,
joined into one timeline however they end, and their curves."""

import collections
import json
import os
import signal

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import wait_until

# argv: "ps" or "collective", then what happens in the second pass.
TRAIN = """
import os, signal, sys
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

kind, ending = sys.argv[1:3]
paddle.enable_static()
paddle.seed(1)
fleet.init(is_collective=kind == "collective")
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
y = paddle.static.data("y", [None, 1])
if kind == "ps":
    rows = paddle.static.nn.sparse_embedding(ids, [50, 4])
else:
    rows = paddle.static.nn.embedding(ids, [50, 4], is_sparse=True)
out = paddle.nn.Linear(4, 1)(paddle.static.nn.sequence_pool(rows, "sum"))
loss = paddle.mean(paddle.square(out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.SGD(0.01), strategy).minimize(loss)
if kind == "ps" and fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
main = paddle.static.default_main_program()
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
if kind == "ps":
    fleet.init_worker()
rank = fleet.worker_index()
with open(f"data-{rank}", "w") as file:
    for i in range(48):
        file.write(f"2 {1 + i % 7} {1 + i % 11} 1 {'nan' if ending == 'nan' and rank == 1 and i == 30 else i % 2}" + chr(10))
for number in range(2 if ending == "steps" else 0):
    # Without a dataset.
    import numpy
    from fleetrun.base import create_lod_tensor
    keys = create_lod_tensor(numpy.array([[1], [2], [3]], "int64"), [[2, 1]], paddle.CPUPlace())
    exe.run(main, feed={"ids": keys, "y": numpy.ones((2, 1), "float32")}, fetch_list=[loss])
for number in range(0 if ending == "steps" else 2):
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=[ids, y], pipe_command="cat", batch_size=4, thread_num=1)
    if number == 1 and ending == "hold":
        dataset.set_pipe_command("cat; cat hold")
    dataset.set_filelist([f"data-{rank}"])
    if number == 1 and ending == "die":
        fleet.barrier_worker()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    exe.train_from_dataset(main, dataset, fetch_list=[loss], fetch_info=["loss"], print_period=4, debug=ending == "debug")
if kind == "ps":
    fleet.stop_worker()
"""

PS = ("--server_num=1", "--trainer_num=2")
COLLECTIVE = ("--nproc_per_node=2",)


@pytest.fixture
def place(work):
    work.script("train.py", TRAIN)
    return work


def traced(place, *arguments, **variables):
    return place.run("trace", *arguments, environment=environment(**variables), seconds=LIMIT)


class Timeline:
    """What a merged file has, as readers of the trace event format see it."""

    def __init__(self, path):
        events = json.loads(path.read_text())["traceEvents"]
        named = {(e["name"], e["pid"], e.get("tid")): e["args"] for e in events if e["ph"] == "M"}
        self.processes = {pid: args["name"] for (name, pid, _), args in named.items()
                          if name == "process_name"}
        lanes = {(pid, tid): args["name"] for (name, pid, tid), args in named.items()
                 if name == "thread_name"}
        self.bars = [e for e in events if e["ph"] == "X"]
        assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in self.bars)
        for bar in self.bars:
            bar["process"], bar["lane"] = self.processes[bar["pid"]], lanes[bar["pid"], bar["tid"]]
        self.count = collections.Counter((bar["process"], bar["lane"], bar["name"]) for bar in self.bars)

    def of(self, process, name):
        return [bar for bar in self.bars if bar["process"] == process and bar["name"] == name]


def check_nested(bars):
    """Bars of a lane lie beside or within each other."""
    lanes = collections.defaultdict(list)
    for bar in bars:
        lanes[bar["process"], bar["lane"]].append((bar["ts"], -bar["dur"]))
    for lane, places in lanes.items():
        ends = []
        for start, minus in sorted(places):
            while ends and ends[-1] <= start + 0.002:
                ends.pop()
            assert not ends or start - minus <= ends[-1] + 0.002, lane
            ends.append(start - minus)


def test_a_job_with_servers_is_one_timeline_and_a_summary(place):
    job = traced(place, "-o", "out.json", "--", *PS, "train.py", "ps", "well")
    assert job.status == 0, job.err
    timeline = Timeline(place.directory / "out.json")
    assert list(timeline.processes.values()) == ["trainer 0", "trainer 1", "server 0"]
    for rank in (0, 1):
        process = f"trainer {rank}"
        for stage in ("read", "pull", "compute", "push"):
            assert timeline.count[process, "thread 0", stage] >= 24, (stage, timeline.count)
        assert timeline.count[process, "thread 0", "mean"] == 24
        assert timeline.count[process, "thread 0", "wait"] >= 24
        for name in ("read", "parse"):
            assert timeline.count[process, "reader 0", name] >= 2
        assert timeline.count[process, "exchange 0", "pull"] >= 24
        assert timeline.count[process, "exchange 0", "push"] >= 24
    served = [bar for bar in timeline.bars if bar["process"] == "server 0"]
    assert {bar["lane"].split()[0] for bar in served} == {"requests"}
    assert collections.Counter(bar["name"] for bar in served)["push"] >= 48
    check_nested(timeline.bars)
    assert "3 processes, " in job.out and "operator " in job.out
    assert "out.json is the timeline: open it at https://ui.perfetto.dev" in job.out
    assert sorted(os.listdir(place.directory)) == ["data-0", "data-1", "log", "out.json", "train.py"]


def test_the_clocks_of_ranks_agree(place):
    """A step's average begins on no rank after it has ended on the other."""
    job = traced(place, *COLLECTIVE, "train.py", "collective", "well")
    assert job.status == 0, job.err
    timeline = Timeline(place.directory / "trace.json")
    one, other = (sorted((bar["ts"], bar["ts"] + bar["dur"])
                         for bar in timeline.of(f"trainer {rank}", "average"))
                  for rank in (0, 1))
    assert len(one) == len(other) == 26  # 12 batches a pass, and the step in which nobody has one
    for (begin, end), (its_begin, its_end) in zip(one, other):
        assert begin < its_end and its_begin < end
    for rank in (0, 1):
        for stage in ("read", "compute", "exchange"):
            assert timeline.count[f"trainer {rank}", "thread 0", stage] >= 24
        assert timeline.count[f"trainer {rank}", "thread 0", "sgd"] >= 24
        assert timeline.count[f"trainer {rank}", "reader 0", "parse"] >= 2
    check_nested(timeline.bars)
    assert "bound by " in job.out


@pytest.mark.parametrize("kind, flags, stages", [("ps", PS, {"pull", "compute", "push"}),
                                                 ("collective", COLLECTIVE, {"compute", "exchange"})])
def test_steps_of_a_loop_of_ones_own_are_drawn_too(place, kind, flags, stages):
    job = traced(place, *flags, "train.py", kind, "steps")
    assert job.status == 0, job.err
    timeline = Timeline(place.directory / "trace.json")
    for rank in (0, 1):
        assert timeline.count[f"trainer {rank}", "thread 0", "mean"] == 2
        for stage in stages:
            assert timeline.count[f"trainer {rank}", "thread 0", stage] >= 2
    check_nested(timeline.bars)
    assert "it was killed" not in job.out


def test_a_job_that_fails_leaves_what_it_did(place):
    job = traced(place, *PS, "train.py", "ps", "die")
    assert job.status == 128 + signal.SIGKILL
    timeline = Timeline(place.directory / "trace.json")
    assert timeline.count["trainer 1", "thread 0", "mean"] == 12
    assert timeline.count["trainer 0", "thread 0", "mean"] >= 12


def test_ctrl_c_leaves_what_there_is(place):
    os.mkfifo(place.directory / "hold")
    job = place.start("trace", *COLLECTIVE, "train.py", "collective", "hold", environment=environment())
    for rank in (0, 1):
        # The batches of the second pass too, which then waits for a pipe command that says no more.
        log = place.directory / "log" / f"workerlog.{rank}"
        wait_until(lambda log=log: log.exists() and log.read_text().count("batch: [12]") == 2,
                   f"24 batches in {log}", LIMIT)
    parts = [name for name in os.listdir(place.directory) if name.startswith("trace.json.parts-")]
    assert len(parts) == 1
    job.signal(signal.SIGINT)
    job.finish(LIMIT)
    assert job.status == 130, job.err
    timeline = Timeline(place.directory / "trace.json")
    for rank in (0, 1):
        assert timeline.count[f"trainer {rank}", "thread 0", "mean"] == 24
    assert not job.survivors()
    assert not [name for name in os.listdir(place.directory) if "parts" in name]


def test_timelines_that_were_written_before_are_joined(place):
    job = place.run(*PS, "train.py", "ps", "well",
                    environment=environment(FLEETRUN_TRACE=place.directory / "traces"), seconds=LIMIT)
    assert job.status == 0, job.err
    names = {f"trainer-{rank}.pass-{number}.json" for rank in (0, 1)
             for number in (1, 2)} | {"server-0.run-1.json"}
    assert set(os.listdir(place.directory / "traces")) == names
    for name in names:
        json.loads((place.directory / "traces" / name).read_text())
    merged = place.run("trace", "merge", "traces", "-o", "all.json")
    assert merged.status == 0, merged.err
    assert len(Timeline(place.directory / "all.json").processes) == 3
    # Without its last line, and a part of the one before, as of a process that was killed.
    cut = place.directory / "traces" / "trainer-1.pass-2.json"
    cut.write_text(cut.read_text()[:-30])
    merged = place.run("trace", "merge", "traces", "-o", "all.json")
    assert merged.status == 0, merged.err
    assert "it was killed" in merged.out


@pytest.mark.parametrize("arguments, told", [
    (["trace", "merge", "nowhere"], "the folder nowhere cannot be read: No such file or directory"),
    (["trace", "merge", "empty"], "no timeline is in empty"),
    (["trace", "merge"], "the folder with the timelines is not named"),
    (["trace", "merge", "empty", "--wide"], "trace merge has no flag --wide"),
    (["trace", "merge", "empty", "more"], "takes one folder, and there are empty and more"),
    (["trace", "-o", "nowhere/out.json", "train.py"],
     "no timeline can be written to nowhere/out.json: No such file or directory"),
    (["trace", "-o", "out.json"], "no script is given"),
    (["trace", "--hosts", "h1,h2", "train.py"], "--hosts names others"),
    (["trace", "--detach", "train.py"], "waits for the job's end, and --detach does not"),
    (["trace", "--frobnicate", "train.py"], "--frobnicate"),
    (["trace", "quiet.py"], "no process of the job wrote a timeline"),
    (["plot", "nowhere"], "nowhere cannot be read: No such file or directory"),
    (["plot", "empty"], "no event file (*.jsonl) is in empty"),
    (["plot", "quiet.py"], "quiet.py has no fetched values"),
    (["plot", "--width=10", "empty"], "--width=10 is not a whole number from 300 on"),
    (["plot", "--wide"], "plot has no flag --wide"),
])
def test_what_cannot_be_done_is_one_clear_error(place, arguments, told):
    place.script("quiet.py", "print('no training here')\n")
    (place.directory / "empty").mkdir()
    job = place.run(*arguments, environment=environment(), seconds=LIMIT)
    assert job.status == 125
    assert told in job.err
    assert job.err.count("error: ") == 1
    assert not [name for name in os.listdir(place.directory) if "json" in name]


def test_a_collective_pass_has_the_table_and_the_search_for_nan(place):
    job = place.run(*COLLECTIVE, "train.py", "collective", "debug", environment=environment(), seconds=LIMIT)
    assert job.status == 0, job.err
    assert "operator " in job.out and "bound by " in job.out
    assert " of the threads' time; " in job.out and "exchange " in job.out
    job = place.run(*COLLECTIVE, "train.py", "collective", "nan",
                    environment=environment(FLAGS_check_nan_inf=1), seconds=LIMIT)
    assert job.status == 1
    for rank in (0, 1):
        assert " made NaN in '" in job.log(f"workerlog.{rank}")
    assert "in batch 8 of thread 0" in job.log("workerlog.1")
    assert not job.survivors()


def test_a_curve_for_each_trainer_from_events_and_from_logs(place):
    job = place.run(*PS, "train.py", "ps", "well",
                    environment=environment(FLEETRUN_EVENTS=place.directory / "events"), seconds=LIMIT)
    assert job.status == 0, job.err
    for rank in (0, 1):
        lines = (place.directory / "events" / f"trainer-{rank}.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        assert [(event["batch"], event["batches"], event["examples"])
                for event in events] == [(4, 4, 16), (8, 4, 16), (12, 4, 16)] * 2
        assert all(event["values"]["loss"] > 0 for event in events)
        assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    for arguments, name in ((["events"], "curve.png"),
                            (["log/workerlog.0", "log/workerlog.1", "-o", "log.png"], "log.png")):
        drawn = place.run("plot", *arguments)
        assert drawn.status == 0, drawn.err
        assert drawn.out == f"{name} has the curves\n"
        assert (place.directory / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
