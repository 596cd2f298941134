#!/usr/bin/env python3
"""usage: tests/campaigns/python_hangs.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Runs jobs of four Python processes of which one hangs somewhere else than the others, each at a line and in a
way of its own, and asks that --hang_timeout names that rank, and the line, with nothing installed that reads
stacks. The interpreters are python3.8 to python3.14 and python3, those that are in PATH.
"""

import shutil
import subprocess

import campaign

COUNT = 4
LIMIT = 120  # seconds; a job takes some
PYTHONS = [path for name in ("python3", *(f"python3.{minor}" for minor in range(8, 15)))
           if (path := shutil.which(name))
           and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0]
HEAD = """import os, queue, socket, threading, time
rank = int(os.environ["FLEETRUN_RANK"])
def beat():  # all at once: the first one that is silent is asked for
    open(f"here.{rank}", "w").close()
    while not all(os.path.exists(f"here.{other}") for other in range(4)):
        time.sleep(0.001)
    os.write(int(os.environ["FLEETRUN_HEARTBEAT_FD"]), b"beat\\n")
def others():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
# How a process hangs, in one line.
WAYS = ["threading.Event().wait()", "queue.Queue().get()", "time.sleep(86400)", "sum(iter(int, 1))",
        "[pair[0].recv(1) for pair in [socket.socketpair()]]", "os.read(os.pipe()[0], 1)",
        "[lock.acquire() for lock in [threading.Lock()] * 2]", "threading.Barrier(2).wait()"]
used = {}


def script(turn):
    """(text, line at which the odd one hangs)"""
    lines = HEAD.splitlines()
    depth = turn.random.randrange(1, 30)
    lines += ["def odd(depth):"]
    lines += [f"    filler = {number}" for number in range(turn.random.randrange(60))]
    lines += ["    if depth:", "        return odd(depth - 1)", "    " + turn.random.choice(WAYS)]
    place = len(lines)
    lines += ["    return filler", "beat()"]
    if turn.random.random() < 0.5:  # a thread that is elsewhere than the main one
        lines += ["threading.Thread(target=time.sleep, args=(86400,), daemon=True).start()"]
    lines += [f"odd({depth}) if rank == {turn.number % COUNT} else others()"]
    return "\n".join(lines) + "\n", place


def run(turn):
    text, place = script(turn)
    (turn.directory / "job.py").write_text(text)
    python = PYTHONS[turn.number % len(PYTHONS)]
    used[python] = used.get(python, 0) + 1
    fleetrun = turn.start(f"--nproc_per_node={COUNT}", f"--python={python}", "--hang_timeout=3",
                          "--hang_by=heartbeat", "--grace=1", "job.py")
    try:
        status = fleetrun.wait(LIMIT)
    except subprocess.TimeoutExpired:
        fleetrun.kill()
        fleetrun.wait()
        return f"did not end in {LIMIT} s: {turn.said()[-500:]}"
    said = turn.said()
    report = said.partition("the job hangs: ")[2]
    name = f"trainer {turn.number % COUNT}"
    if status != 137 or not report.startswith(f"{name} ("):
        return f"{python}: ended with {status}, and not {name} is named: {said[-1500:]}"
    if f"(job.py:{place})" not in report.partition(f"{name}, not where the others are:")[2]:
        return f"{python}: line {place} is not shown of {name}: {report[:1500]}"
    return f"left behind: {turn.living()}" if turn.living() else None


def summary():
    return ", ".join(f"{python}: {count}" for python, count in used.items())


if __name__ == "__main__":
    campaign.main(__doc__, run, count=200, summary=summary)
