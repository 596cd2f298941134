#!/usr/bin/env python3
"""usage: tests/campaigns/replays.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Lets jobs fail in ways that differ from each other, packs each into a report, and goes through it again in
an empty directory with an empty environment: the same decisions, verdict and screen have to come out, and
batches that could not be trained on have to fail as they did. A
secret that stands in the environment, the arguments and the log of each job must not be in its report.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time

import campaign

LIMIT = 60  # seconds for one job
SECRET = "never-to-be-told-1234"

# What rank LAST does once all ranks run.
DEATHS = {
    "exit 3": "sys.exit(3)",
    "exit 75": "sys.exit(75)",
    "traceback": "raise ValueError('it is 7 instead of 8')",
    "chained traceback": "\ntry: {}['a']\nexcept KeyError as e: raise RuntimeError('no a') from e",
    "syntax error": "exec('def')",
    "import error": "import not_there_at_all",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
    "SIGABRT": "os.abort()",
    "SIGPIPE": "signal.signal(signal.SIGPIPE, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGPIPE)",
    "no exec": "os.execv('/not/there', ['x'])",
    "silent": "time.sleep(60)",
    "full of errors": "print('Error: x\\n' * 300); sys.exit(9)",
    "bytes that are no text": "os.write(2, bytes(range(256)) * 4); sys.exit(4)",
}
# What the job is told beside.
WAYS = {
    "collective": ["--nproc_per_node=3"],
    "servers": ["--server_num=1", "--trainer_num=2"],
    "restarts": ["--nproc_per_node=2", "--max_restart=2"],
    "one process is restarted": ["--server_num=1", "--trainer_num=2", "--max_restart=1",
                                 "--restart=trainer=process"],
    "torchrun": ["torchrun", "--log-dir=out", "--nproc-per-node=2"],
}
DATA = """
import numpy as np, os, fleetrun as paddle, fleetrun.nn.functional as F
from fleetrun import static
paddle.enable_static()
rng = np.random.default_rng(3)
x, y = static.data("x", [None, 5]), static.data("y", [None, 1], "int64")
ids = static.data("ids", [None, 1], "int64")
exe = static.Executor()
def train(loss, rate=0.1):
    paddle.optimizer.SGD(rate).minimize(loss)
    exe.run(static.default_startup_program())
def step(**feed):
    fed = {"x": rng.normal(size=(4, 5)).astype("float32"), "y": np.zeros((4, 1), "int64"),
           "ids": np.ones((4, 1), "int64")} | feed
    exe.run(feed={name: value for name, value in fed.items() if value is not None}, fetch_list=[loss])
def epoch(*lines, **variables):
    open("part", "wb").write(b"".join(lines))
    data = paddle.distributed.QueueDataset()
    data.init(use_var=[x, y, ids], batch_size=2, thread_num=1)
    data.set_filelist(["part"])
    exe.train_from_dataset(dataset=data, fetch_list=[loss], print_period=0)
GOOD = b"5 1 2 3 4 5 1 0 1 7\\n"
loss = paddle.mean(F.cross_entropy(static.nn.fc(x, 3), y))
"""
LOOKS = 'import os; os.environ["FLAGS_check_nan_inf"] = "1"\n' + DATA
# What a trainer cannot train on.
BATCHES = {
    "a word in a line": DATA + "train(loss); epoch(GOOD * 5, b'5 1 2 three 4 5 1 0 1 7\\n')",
    "NaN": LOOKS + "loss = paddle.mean(paddle.log(static.nn.fc(x, 3) - 100.0)); train(loss); step()",
    "a shape": DATA + "train(loss); step(); step(x=np.ones((4, 6), 'float32'))",
    "an infinity in an epoch": LOOKS + """
far = GOOD.replace(b"3", b"3e38")
train(loss)
epoch(GOOD * 4, (far + far.replace(b" 0", b" 1")) * 5)
""",
    "an infinity that an update made": LOOKS + """
loss = paddle.mean(static.nn.fc(x, 3)); train(loss, 3e38); step(x=np.full((4, 5), 9, 'float32'))
""",
    "rows of a server": LOOKS + """
import fleetrun.distributed.fleet as fleet
fleet.init(is_collective=False)
rows = static.nn.sparse_embedding(ids, [100, 4])
loss = paddle.mean(paddle.log(static.nn.fc(rows, 2) - 100.0))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), fleet.DistributedStrategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe.run(static.default_startup_program())
    fleet.init_worker()
    step()
""",
    "a line that ends early": DATA + "train(loss); epoch(GOOD * 3, b'5 1 2 3 4 5 1\\n')",
    "an empty line": DATA + "train(loss); epoch(GOOD, b'\\n', GOOD)",
    "what gzip made": DATA + "import gzip; train(loss); epoch(gzip.compress(GOOD))",
    "a type": DATA + "train(loss); step(y=np.zeros((4, 1), 'float32'))",
    "nothing": DATA + "train(loss); step(x=None)",
    "a class that is not there": DATA + "train(loss); step(y=np.full((4, 1), 7))",
    "a class that is not there, in an epoch":
        DATA + "train(loss); epoch(GOOD * 4, GOOD.replace(b' 0', b' 9'))",
    "a row that is not there": DATA + """
loss = paddle.mean(static.nn.fc(static.nn.embedding(ids, [50, 4]), 1))
train(loss); step(); step(ids=np.full((4, 1), 50))
""",
    "dropout before a NaN": LOOKS + """
loss = paddle.mean(paddle.log(F.dropout(static.nn.fc(x, 3), 0.5) - 100.0)); train(loss); step()
""",
}
CASES = [(batch, "batch") for batch in BATCHES] + [
    (death, way) for way, death in itertools.product(WAYS, DEATHS)]
SCRIPT = """
import os, pathlib, signal, socket, sys, time
print("token:", os.environ["HIDDEN_TOKEN"], sys.argv[1:], flush=True)
rank = int(os.environ.get("RANK", os.environ.get("PADDLE_TRAINER_ID", "0")))
last = int(os.environ.get("WORLD_SIZE", os.environ.get("PADDLE_TRAINERS_NUM", "1"))) - 1
if os.environ.get("TRAINING_ROLE") == "PSERVER":
    listener = socket.create_server(("127.0.0.1", int(os.environ["PADDLE_PORT"])))
    time.sleep(60)
pathlib.Path(f"up.{rank}").touch()
while rank == last and any(not pathlib.Path(f"up.{n}").exists() for n in range(last)):
    time.sleep(0.005)
if rank == last:
    %s
time.sleep(60)
"""


def replayed(turn, report):
    empty = turn.directory / "elsewhere"
    empty.mkdir()
    done = subprocess.run([turn.options.fleetrun, "replay", report], cwd=empty, env={"PATH": os.defpath},
                          capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return f"replay ended with {done.returncode}: {done.stdout}{done.stderr}"


def run(turn):
    death, way = CASES[turn.number % len(CASES)]
    (turn.directory / "t.py").write_text(BATCHES[death] if way == "batch" else SCRIPT % DEATHS[death])
    os.environ["HIDDEN_TOKEN"] = SECRET
    if way == "batch":
        flags = ["--server_num=1", "--trainer_num=1"] if "server" in death else []
    else:
        flags = list(WAYS[way])
    if death == "silent" and way != "torchrun":
        flags.append(turn.random.choice(["--timeout=1", "--hang_timeout=1"]))
    fleetrun = turn.start(*flags, "t.py", f"--api-key={SECRET}", stdout=subprocess.DEVNULL)
    if death == "silent" and way == "torchrun":
        while fleetrun.poll() is None and not (turn.directory / "up.1").exists():
            time.sleep(0.01)
        fleetrun.send_signal(signal.SIGTERM)
    status = fleetrun.wait(LIMIT)
    if status == 0:
        return f"{death}, {way}: the job ended with 0"
    logs = [f"--log_dir={path}" for path in turn.directory.glob("out/*/.fleetrun")]
    report = turn.directory / "report.json"
    made = subprocess.run([turn.options.fleetrun, "report", "-o", report, *logs], cwd=turn.directory,
                          env=turn.environment(), capture_output=True, text=True)
    if made.returncode != 0:
        return f"{death}, {way}: report ended with {made.returncode}: {made.stderr}"
    text = report.read_text()
    if SECRET in text:
        return f"{death}, {way}: the secret is in the report: {text[text.index(SECRET) - 200:][:400]}"
    if way != "torchrun" and json.loads(text)["verdict"]["exit_status"] != status:
        return f"{death}, {way}: the job ended with {status}, its verdict says {json.loads(text)['verdict']}"
    if way == "batch" and list(json.loads(text)["batches"]) != ["trainer 0"]:
        return f"{death}: the batch is not in the report: {turn.said()}"
    wrong = replayed(turn, report)
    return f"{death}, {way}: {wrong}" if wrong else None


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=len(CASES)))
