"""Programs that train by turns over the same servers: a parameter is one table, whichever of them it is in.

Servers have the tables of all programs that were minimized before they started. What a program only reads of
another's dense parameters it pulls in each step, as its own; rows that it only looks up it takes from the
table where another trains them.
"""

from __future__ import annotations

from fleetrun._error import Error
from fleetrun._types import Program, Sequence
from fleetrun.static.lookups import follow
from fleetrun.static.training import Training

__all__ = ["join", "look_up_in"]


def look_up_in(program: Program, others: Sequence[Training]) -> None:
    """Before the program is minimized: lookups of parameters that it does not move go to the tables that the
    others train."""
    fixed = {each.name for each in program.all_parameters() if not each.trainable}
    for other in others:
        if chosen := fixed & _rows_of(other) & _looked_up(program):
            follow(program, other.main, chosen)


def join(training: Training, others: Sequence[Training]) -> None:
    """Makes `training` one of the `others` that are to share its servers. One whose program was minimized
    anew, whose mode or tables are others than this one's, or that is connected already, is left out, and says
    so when it trains.

    Throws: Error(config) where one of them looks up rows in a variable of its own that this one trains in a
    table.
    """
    kept = [
        each
        for each in others
        if each.main is not training.main and each.mode == training.mode and not each.connected
    ]
    try:
        training.plan.number_beside([each.plan for each in kept])
    except Error as error:
        training.plan.number_beside([])
        for each in kept:
            each.left_out = str(error).splitlines()[0]
        kept = []
    rows = _rows_of(training)
    for each in kept:
        for name in sorted(rows & _looked_up(each.main)):
            raise Error(
                "config",
                f"a program that was minimized before looks up {name} in a variable, and this one trains its "
                "rows in a table",
                "minimize the program that trains it first",
            )
        each.plan.read(training.plan, each.main.native)
        training.plan.read(each.plan, training.main.native)
    together = [*kept, training]
    for each in together:
        each.companions = together


def _rows_of(training):
    return {entry.parameter for entry in training.plan.entries() if entry.table.sparse}


def _looked_up(program):
    """Parameters that are looked up in variables."""
    return {op.inputs[0] for op in program.ops if op.type == "embedding"}
