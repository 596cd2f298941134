"""A training process for tests of jobs on several hosts: writes down who it is, and does what it is told.

usage: cluster_worker.py FOLDER    a folder that all hosts share, beside their network

It writes FOLDER/started/…, one JSON object: its environment as far as it is a launcher's, host, pid, time.
Then it steps: FOLDER/steps/HOST.WHO.RUN.PID holds the times of its first and its last step, and its epoch.
Meanwhile it obeys orders, files in FOLDER/orders named after itself: `all`, `host-h1`, `rank-0`, `server-0`,
each also with `.EPOCH` at the end. An order is a word and a value: `exit 3`, `kill 9`, `raise TEXT`,
`linger 2` (it steps on for so many seconds after a SIGTERM); FOLDER/obeyed holds the names of those that were
read.
"""

import json
import os
import pathlib
import signal
import socket
import struct
import sys
import time

PREFIXES = ("PADDLE_", "FLEETRUN_", "TORCHELASTIC_", "POD_", "TRAINING_", "GROUP_", "LOCAL_", "ROLE_",
            "MASTER_", "WORLD_",
            "RANK", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "TEST_")


def write(path, text):
    """The whole file appears at once."""
    unfinished = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.rename(path)


def obey(who, order, value):
    print(f"{who}: {order} {value}", flush=True)
    if order == "exit":
        sys.exit(int(value))
    elif order == "kill":
        os.kill(os.getpid(), int(value))
        signal.pause()
    elif order == "raise":
        raise RuntimeError(value)
    elif order == "linger":
        signal.signal(signal.SIGTERM, lambda *_: signal.setitimer(signal.ITIMER_REAL, float(value)))


def main():
    folder = pathlib.Path(sys.argv[1])
    values = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    host, epoch = os.uname().nodename, values.get("FLEETRUN_EPOCH", "0")
    server = values.get("TRAINING_ROLE") == "PSERVER"
    if server:
        endpoint = f"{values['POD_IP']}:{values['PADDLE_PORT']}"
        who = f"server-{values['PADDLE_PSERVERS_IP_PORT_LIST'].split(',').index(endpoint)}"
        # the launcher waits for it
        listener = socket.create_server((values["POD_IP"], int(values["PADDLE_PORT"])))
    else:
        who, listener = f"rank-{values.get('PADDLE_TRAINER_ID', values.get('RANK', '?'))}", None
    names = [f"{name}{end}" for name in ("all", f"host-{host}", who) for end in ("", f".{epoch}")]
    record = {"who": who, "host": host, "epoch": int(epoch), "pid": os.getpid(), "at": time.time(),
              "environment": values,
              "argv": sys.argv[2:], "directory": os.getcwd(), "listens": listener is not None}
    write(folder / "started" / f"{host}.{epoch}.{who}.{os.getpid()}.{time.monotonic_ns()}",
          json.dumps(record))
    print(f"{who} of epoch {epoch} on {host} started", flush=True)
    own = f"{host}.{who}.{values.get('FLEETRUN_RUN', 'none')}.{os.getpid()}-{time.monotonic_ns()}"
    steps = os.open(folder / "steps" / own, os.O_WRONLY | os.O_CREAT, 0o644)
    orders, seen, first = folder / "orders", 0, time.time()
    while True:
        os.pwrite(steps, struct.pack("=ddq", first, time.time(), int(epoch)), 0)
        changed = os.stat(orders).st_mtime_ns
        # A change just now may be followed by another one with the same time.
        if changed != seen or time.time_ns() - changed < 100_000_000:
            seen = changed
            for name in names:
                try:
                    order, _, value = (orders / name).read_text().partition(" ")
                except OSError:
                    continue
                write(folder / "obeyed" / name, order)
                obey(who, order, value)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
