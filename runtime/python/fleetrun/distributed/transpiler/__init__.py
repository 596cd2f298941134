"""paddle.distributed.transpiler and fluid.transpiler: configuration of the older strategies. Programs are not
transpiled: fleet gives trainers and servers their parts."""

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._error import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "DistributeTranspiler",
    "HashName",
    "memory_optimize",
    "PSDispatcher",
    "release_memory",
    "RoundRobin",
]


class DistributeTranspiler:
    """Refused: a program is not taken apart after minimize(). Throws: Error(config)."""

    def __init__(self, config: "Any" = None) -> None:
        raise Error(
            "config",
            "fluid.DistributeTranspiler: a program is not taken apart after minimize()",
            "use fleet: fleet.init(role), fleet.distributed_optimizer(optimizer).minimize(loss), then "
            "fleet.init_server() and run_server() on servers, fleet.init_worker() on trainers",
        )


class PSDispatcher:
    """Which server a parameter goes to. Here all go by a hash of their number, whatever is chosen."""

    def __init__(self, pserver_endpoints: "list[str]") -> None:
        self.eps = list(pserver_endpoints)


class HashName(PSDispatcher):
    """By a hash of the name."""


class RoundRobin(PSDispatcher):
    """One after the other."""


def memory_optimize(input_program: "Any", *args: "Any", **kwargs: "Any") -> None:
    """Accepted: memory is kept from run to run."""
    warn_once("memory_optimize", "fluid.memory_optimize() has no effect: memory is kept from run to run")


release_memory = memory_optimize

__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.names("distributed.fleet._configs", "DistributeTranspilerConfig ServerRuntimeConfig"),
)
