#!/usr/bin/env python3
"""usage: tests/campaigns/replays.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Lets jobs fail in ways that differ from each other, packs each into a report, and goes through it again in
an empty directory with an empty environment: the same decisions, verdict and screen have to come out. A
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
CASES = [(death, way) for way, death in itertools.product(WAYS, DEATHS)]
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
    (turn.directory / "t.py").write_text(SCRIPT % DEATHS[death])
    os.environ["HIDDEN_TOKEN"] = SECRET
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
    wrong = replayed(turn, report)
    return f"{death}, {way}: {wrong}" if wrong else None


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=len(CASES)))
