#!/usr/bin/env python3
"""usage: scripts/bench cluster [PART [OPTIONS]]

Measures what several hosts cost. Without a PART all of them, one after the other; with one, its own options.

  meeting      from launchers to a world: two real ones beside torchrun, thousands simulated
               (tests/bench/cluster/meeting.py)
  death        loss of a host to re-formed job, beside torchrun (tests/bench/cluster/node_death.py)
  hosts        500 hosts by an ssh that refuses first logins, the plan of 10,000
               (tests/bench/cluster/many_hosts.py)

scripts/bench cluster PART --help says more about each.
"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PARTS = {"meeting": ["meeting.py"], "death": ["node_death.py"], "hosts": ["many_hosts.py"]}


def command(part):
    program, *more = PARTS[part]
    return [sys.executable, str(HERE / program), *more]


def main():
    words = sys.argv[1:]
    if words and words[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if words and words[0] not in PARTS:
        print(f"bench: error: unknown part {words[0]}\n  hint: there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    status = 0
    for part in words[:1] or PARTS:
        print(f"== {part}", flush=True)
        status = subprocess.run([*command(part), *words[1:]]).returncode or status
    return status


if __name__ == "__main__":
    sys.exit(main())
