#!/usr/bin/env python3
"""usage: tests/campaigns/cascade.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Runs jobs of eight processes of which one raises an exception. The others lose their connection to it and die
of that, in shuffled order, 5 to 500 ms later. Asks that fleetrun names the one that raised, every time.

The one that raises may be the first to die, or it may be slower than the others: it closes its connections
while it unwinds, and takes its time to write its traceback or to exit after it. The others die of a reset
connection, of a closed pipe (with an exception, or of SIGPIPE without a word),
of an end of file, or of a wait in vain.
"""

import json
import subprocess
import sys

import campaign

SIZE = 8
LIMIT = 30  # seconds; a job takes about one
MANNERS = ("at once", "unwinds slowly", "exits slowly")  # of the one that raises
named = {manner: 0 for manner in MANNERS}

WORKER = """
import atexit, json, os, signal, socket, sys, time

rank = int(os.environ["PADDLE_TRAINER_ID"])
job = json.load(open("job.json"))
others = [r for r in range(job["size"]) if r != job["culprit"]]


def fail():
    peers = [listener.accept()[0] for _ in others]
    for peer in peers:
        peer.send(b"x")
    if job["manner"] == "at once":
        raise ValueError(f"bad batch {rank}")
    if job["manner"] == "exits slowly":
        atexit.register(time.sleep, job["slowness"])
    try:
        raise ValueError(f"bad batch {rank}")
    finally:
        for peer in peers:
            peer.close()
        if job["manner"] == "unwinds slowly":
            time.sleep(job["slowness"])


def follow():
    peer = socket.socket(socket.AF_UNIX)
    while True:
        try:
            peer.connect("hub")
            break
        except OSError:
            time.sleep(0.005)
    peer.recv(1)
    peer.recv(1)  # until the other end is gone
    time.sleep(job["delays"][str(rank)])
    manner = job["deaths"][str(rank)]
    if manner == "pipe signal":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if manner in ("pipe", "pipe signal"):
        while True:
            peer.send(b"x")
    if manner == "reset":
        raise ConnectionResetError(104, "Connection reset by peer")
    if manner == "end":
        raise EOFError
    if manner == "wrapped":
        try:
            raise ConnectionResetError(104, "Connection reset by peer")
        except OSError as error:
            raise RuntimeError(f"step 17 of rank {rank} failed") from error
    if manner == "wait":
        raise TimeoutError("timed out")
    print("gloo: Connection closed by peer [127.0.0.1]:4711", file=sys.stderr)
    sys.exit(4)


if rank == job["culprit"]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("hub.new")
    listener.listen(job["size"])
    os.rename("hub.new", "hub")
    fail()
follow()
"""

DEATHS = ("pipe", "pipe signal", "reset", "end", "wrapped", "wait", "message")


def draw_job(random):
    culprit = random.randrange(SIZE)
    others = [rank for rank in range(SIZE) if rank != culprit]
    random.shuffle(others)
    manner = random.choice(MANNERS)
    slowness = random.uniform(0, 0.05) if manner == "unwinds slowly" else random.uniform(0, 0.6)
    return {
        "size": SIZE,
        "culprit": culprit,
        "manner": manner,
        "slowness": slowness,
        "delays": {rank: delay for rank, delay in zip(others,
                                                      sorted(random.uniform(0.005, 0.5) for _ in others))},
        "deaths": {rank: random.choice(DEATHS) for rank in others},
    }


def run(turn):
    job = draw_job(turn.random)
    (turn.directory / "job.json").write_text(json.dumps(job))
    (turn.directory / "worker.py").write_text(WORKER)
    fleetrun = turn.start(f"--nproc_per_node={SIZE}", "--python", sys.executable, "worker.py")
    try:
        status = fleetrun.wait(LIMIT)
    except subprocess.TimeoutExpired:
        fleetrun.kill()
        fleetrun.wait()
        return f"hung for {LIMIT} s: {turn.said()[-500:]}"
    verdict = json.loads((turn.directory / "log" / "verdict.json").read_text())
    first = verdict["first_failure"]
    wanted = f"trainer {job['culprit']}"
    if first["name"] != wanted or not first["text"].endswith(f"ValueError: bad batch {job['culprit']}"):
        return f"blamed {first['name']} ({first['text']}) for {wanted}, which {job['manner']}: {job}"
    if f"first failure: {wanted} " not in turn.said():
        return f"the screen does not name it: {turn.said()[-1000:]}"
    if status == 0 or status != verdict["exit_status"]:
        return f"ended with {status}, and the verdict says {verdict['exit_status']}"
    named[job["manner"]] += 1
    return None


def summary():
    return "named right: " + ", ".join(f"{count} that {manner}" for manner, count in named.items())


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=100, summary=summary))
