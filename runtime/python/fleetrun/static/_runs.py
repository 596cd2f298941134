"""How each program is run: kept beside the programs, for the executor and for what it asks."""

import threading

from fleetrun._graph import SideTable


class Run:
    """The native runner of a program with its key and scope, None before the first run; whose turn it is, one thread at a
    time; and after(native scope), called when the program has run, None for nothing."""

    def __init__(self):
        self.runner = None
        self.turn = threading.RLock()
        self.after = None


RUNS = SideTable("run", Run)
# The DataLoaders that are asked for what is not fed (io/generator_loader.py).
LOADERS = SideTable("loaders", list, copied=list)
