"""`python -m fleetrun.launch_ps [FLAGS] SCRIPT [ARGUMENTS]`: a parameter-server job by the flags of Paddle
1.x.

Two servers and two trainers unless --server_num, --worker_num or --endpoints (the servers') say otherwise;
logs in ./logs. --node_ip is this host's address, --cluster_node_ips those of all hosts, --print_config is
read and has no effect. Every other flag is fleetrun's own.
"""

import os
import sys
from collections.abc import Sequence

from fleetrun import launch

__all__ = ["is_next", "main", "OLD", "STANDARD", "translated"]

# Paddle 1.x's flag → fleetrun's; None: read and left out.
OLD = {"endpoints": "servers", "node_ip": "host", "cluster_node_ips": "ips", "print_config": None}
STANDARD = {"server_num": "2", "worker_num": "2", "log_dir": "logs"}


def is_next(word: str) -> bool:
    """Whether the word behind a flag that launch_ps does not know is another flag or the script, not its
    value."""
    return word.startswith("-") or word.endswith(".py") or os.path.exists(word)


def translated(words: Sequence[str]) -> list[str]:
    """fleetrun's words for those of launch_ps."""
    flags, given = [], set()
    rest = list(words)
    while rest and rest[0].startswith("--") and rest[0] != "--":
        name, equals, value = rest.pop(0)[2:].partition("=")
        name = name.replace("-", "_")
        if name in ("help", "version"):
            return ["--" + name]
        known = name in OLD or name in STANDARD
        if not equals and rest and (known or not is_next(rest[0])):
            value, equals = rest.pop(0), "="
        spelled = OLD.get(name, name)
        if spelled is not None:
            flags.append(f"--{spelled}{equals}{value}")
            given.add(spelled)
    if "servers" in given:
        given.add("server_num")
    flags += [f"--{name}={value}" for name, value in STANDARD.items() if name not in given]
    return flags + rest


def main() -> int:
    return launch.main(translated(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
