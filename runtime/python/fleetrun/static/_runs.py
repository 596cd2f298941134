"""How each program is run: kept beside the programs, for the executor and for what it asks."""

import threading

from fleetrun import _native
from fleetrun._graph import SideTable
from fleetrun._types import Any, Callable, Program


class Run:
    """The native runner of a program with its key and scope, None before the first run; whose turn it is, one
    thread at a time; and after(native scope), called when the program has run, None for nothing."""

    def __init__(self) -> None:
        self.runner: tuple[Any, Any, Any] | None = None
        self.turn = threading.RLock()
        self.after: Callable[[_native.Scope], None] | None = None


RUNS = SideTable("run", Run)
# The DataLoaders that are asked for what is not fed (io/generator_loader.py).
LOADERS: SideTable[list[Any]] = SideTable("loaders", list, copied=list)


def unwritten(program: Program, names: set[str]) -> set[str]:
    """Those of `names` that no operator of the program writes to."""
    return names and names.difference(*(op.outputs for op in program.ops))
