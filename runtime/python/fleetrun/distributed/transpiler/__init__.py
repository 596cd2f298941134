"""paddle.distributed.transpiler and fluid.transpiler: what scripts before fleet train on servers with, and
configuration of the older strategies."""

from fleetrun import _lazy
from fleetrun._arguments import warn_once

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
    {
        "details": "fluid._transpiled",
        **_lazy.names("distributed.fleet._program_transpiler", "DistributeTranspiler"),
        **_lazy.names("distributed.fleet._configs", "DistributeTranspilerConfig ServerRuntimeConfig"),
    },
)
