#!/usr/bin/env python3
"""usage: tests/campaigns/trainer_kills.py [--resize] [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a job in mode sync, async or geo of one or two parameter servers and two trainers, of one or two
threads each, that keeps checkpoints (--ps_checkpoint). The trainers go over their files three times, through
a QueueDataset of text or columnar files, an InMemoryDataset, or over files that they share
(get_dynamic_files). Each trainer is killed with SIGKILL once or twice at random times, and in half of the
runs each server once; fleetrun starts each again alone. With --resize there are three servers, and
`fleetrun ps resize` moves them between one to three processes while trainers and servers are killed; in half
of the runs they have standbys (--ps_replicas=1).

Every example is a row of its own key, whose table counts how often a key was pushed: in the end each count
has to be the number of passes. In mode geo it is the value that counts, in one pass: each trainer sends half
of what it changes. In mode sync with one server the values have to have the bits of a job in which nobody is
killed. Asks besides that the job ends with 0, and that nothing of it is left.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import campaign

LIMIT = 150
PASSES, FILES, EXAMPLES = 3, 5, 60
TRAINER = """
import json, os, sys, time
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

MODE, DATASET = sys.argv[1:3]
THREADS, PASSES, KEYS = map(int, sys.argv[3:])
paddle.enable_static()
paddle.seed(1)
fleet.init(is_collective=False)
key = paddle.static.data(name="key", shape=[None, 1], dtype="int64", lod_level=1)
y, show, click = (paddle.static.data(name=name, shape=[None, 1], dtype="float32") for name in ("y", "show", "click"))
counts = {} if MODE == "geo" else {"entry": paddle.distributed.ShowClickEntry("show", "click")}
attr = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(0.0)) if MODE == "geo" else None
row = paddle.static.nn.sequence_pool(
    paddle.static.nn.sparse_embedding(key, [KEYS, 2], param_attr=attr, **counts), "sum")
out = paddle.nn.Linear(2, 1)(row)
loss = paddle.sum(row) if MODE == "geo" else paddle.mean((out - y) * (out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = MODE != "sync"
if MODE == "geo":
    strategy.a_sync_configs = {"k_steps": 4}
optimizer = paddle.optimizer.SGD(1.0) if MODE == "geo" else paddle.optimizer.Adam(learning_rate=0.01)
fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
class Slow:
    def write(self, text):
        time.sleep(0.006)
        sys.stderr.write(text)

    def flush(self):
        pass


sys.stdout = Slow()
ends = ".frc" if DATASET == "columnar" else ".txt"
files = sorted(name for name in os.listdir() if name.startswith("part-") and name.endswith(ends))
dataset = (paddle.distributed.InMemoryDataset if DATASET == "memory" else paddle.distributed.QueueDataset)()
dataset.init(batch_size=3, thread_num=THREADS, use_var=[key, y, show, click], pipe_command="cat")
dataset.set_filelist(fleet.util.get_file_shard(files))
if DATASET == "memory":
    dataset.load_into_memory()


def train():
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], fetch_info=["loss"],
                           print_period=1)


for number in range(PASSES):
    if DATASET == "memory":
        dataset.local_shuffle()
    if DATASET != "shared":
        train()
    for file in fleet.util.get_dynamic_files(files) if DATASET == "shared" else ():
        dataset.set_filelist([file])
        train()
    ranks = fleet.util.all_gather(number + fleet.worker_index())
    assert ranks == [number, number + 1], ranks
fleet.barrier_worker()
if fleet.is_first_worker():
    from fleetrun import _native
    from fleetrun.distributed.fleet._fleet import the_fleet
    table = next(entry.table for entry in the_fleet.training.plan.entries() if entry.table.sparse)
    client = the_fleet.training.client
    found, values, statistics = _native.ps_get(client, table.id, np.arange(KEYS, dtype=np.uint64))
    with open("result.new", "w") as file:
        values = np.asarray(values)
        shows = (-2 * values[:, 0]).tolist() if MODE == "geo" else [one[3] for one in statistics]
        json.dump({"shows": shows, "values": values.tobytes().hex()}, file)
    os.replace("result.new", "result")
fleet.barrier_worker()
fleet.stop_worker()
"""
calm = {}  # the values of a job in which nobody was killed, by its settings
state = {"servers": 0, "trainers": 0, "resizes": 0, "examples": 0}


def passes_in(mode):
    return 1 if mode == "geo" else PASSES


def processes_of(turn):
    """The pids of the job's servers and trainers that live, by role and rank."""
    found = {}
    for pid, line in turn.living().items():
        if "train.py" not in line:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = dict(part.split(b"=", 1) for part in file.read().split(b"\0") if b"=" in part)
        except OSError:
            continue
        role = {b"PSERVER": "servers", b"TRAINER": "trainers"}.get(environment.get(b"TRAINING_ROLE"))
        if role and b"FLEETRUN_PS_CHECKPOINT" in environment:
            found[role, int(environment[b"FLEETRUN_RANK"])] = pid
    return found


def kill_some(turn, job, plan):
    """Kills the processes of the plan at random times, and resizes; how many of each role it were."""
    killed, deadline = [], time.monotonic() + LIMIT
    for process in plan:
        time.sleep(turn.random.uniform(0.0, 1.2))
        if process[0] == "resizes":
            resize(turn, process[1])
            continue
        while time.monotonic() < deadline and job.poll() is None and not (turn.directory / "result").exists():
            pid = processes_of(turn).get(process)
            if pid is not None and pid not in [before for _, before in killed]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.append((process[0], pid))
                break
            time.sleep(0.005)
    return {role: sum(1 for killed_role, _ in killed if killed_role == role)
            for role in ("servers", "trainers")}


def job_id(turn):
    return turn.mark.replace("CAMPAIGN_MARK=", "campaign-")


def resize(turn, processes):
    """Begins to move servers to so many processes, and does not wait for that."""
    words = [turn.options.fleetrun, "ps", "resize", str(processes), f"--job={job_id(turn)}"]
    with open(turn.directory / "resized", "ab") as said:
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=turn.environment())


def count_resizes(turn):
    """Those that were done before the job ended."""
    said = turn.directory / "resized"
    return said.read_text(errors="replace").count("done in ") if said.exists() else 0


def write_files(directory):
    """Every example has a key of its own; a batch takes a while, so that kills come within passes."""
    (directory / "train.py").write_text(TRAINER)
    for number in range(FILES):
        lines = [f"1 {number * EXAMPLES + i} 1 {(i * 7 + number) % 11 / 11:.3f} 1 1 1 0\n"
                 for i in range(EXAMPLES)]
        (directory / f"part-{number}.txt").write_text("".join(lines))


def convert(turn):
    """The files as columns."""
    files = [f"part-{number}.txt" for number in range(FILES)]
    slots = "--slots=key:int64,y:float32[1],show:float32[1],click:float32[1]"
    subprocess.run([turn.options.fleetrun, "data", "convert", *files, slots, "--out=."], cwd=turn.directory,
                   check=True, capture_output=True)


def train(turn, servers, mode, dataset, threads, plan):
    """(what went wrong or None, the result, the killed)"""
    replicas = ["--ps_replicas=1"] if turn.options.resize and turn.random.random() < 0.5 else []
    job = turn.start(f"--server_num={servers}", "--trainer_num=2", f"--job_id={job_id(turn)}",
                     "--ps_checkpoint=kept", "--max_restart=20",
                     "--restart_backoff=0", "--restart=trainer=process",
                     f"--ps_checkpoint_interval={turn.random.choice([1, 60])}", *replicas,
                     "train.py", mode, dataset, threads, passes_in(mode), FILES * EXAMPLES)
    killed = kill_some(turn, job, plan)
    if wrong := turn.wait_for_end(job, LIMIT, 900):
        return wrong, None, killed
    if turn.wait_until_gone(10) is None:
        return "something is left", None, killed
    result = json.loads((turn.directory / "result").read_text())
    (turn.directory / "result").unlink()
    return None, result, killed


def run(turn):
    write_files(turn.directory)
    moves = turn.options.resize
    mode = turn.random.choice(["sync", "async"] if moves else ["sync", "async", "geo"])
    dataset = turn.random.choice(["queue", "memory", "columnar", *([] if mode == "sync" else ["shared"])])
    if dataset == "columnar":
        convert(turn)
    servers = f"{turn.random.choice([1, 2, 3])}:3" if moves else turn.random.choice([1, 1, 2])
    settings = (servers, mode, dataset, turn.random.choice([1, 2]))
    plan = [("trainers", rank) for rank in (0, 1)] + [("trainers", turn.random.choice([0, 1]))]
    if moves:
        plan += [("servers", 0), ("servers", 0)]
        plan += [("resizes", turn.random.choice([1, 2, 3])) for _ in range(3)]
    elif turn.random.random() < 0.5:
        plan += [("servers", rank) for rank in range(settings[0])]
    turn.random.shuffle(plan)
    if settings[0] == 1 and mode == "sync" and settings not in calm:
        wrong, result, _ = train(turn, *settings, [])
        if wrong:
            return f"{settings}, nobody killed: {wrong}"
        calm[settings] = result
        for path in (turn.directory / "kept").rglob("*"):
            if path.is_file():
                path.unlink()
    wrong, result, killed = train(turn, *settings, plan)
    if wrong:
        return f"{settings}: {wrong}"
    for role, count in killed.items():
        state[role] += count
    state["resizes"] += count_resizes(turn)
    state["examples"] += int(sum(result["shows"]))
    miscounted = sum(1 for shows in result["shows"] if shows != passes_in(mode))
    if miscounted:
        return f"{settings}: {miscounted} examples did not count {passes_in(mode)} times"
    if settings in calm and result != calm[settings]:
        return f"{settings}: other values than without kills"
    return None


def summary():
    return (f"{state['trainers']} trainers and {state['servers']} servers killed, "
            f"{state['resizes']} resizes, {state['examples']} examples counted")


def more_options(parser):
    parser.add_argument("--resize", action="store_true",
                        help="move three servers between one to three processes meanwhile")


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=40, summary=summary, more_options=more_options))
