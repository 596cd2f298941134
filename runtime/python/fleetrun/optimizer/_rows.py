"""What is said of the rows of embeddings: which are trained densely, and which decay only in some steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetrun._arguments import warn_once

if TYPE_CHECKING:
    from fleetrun._graph import Program

# Paddle has no update of rows by these, and fails in the first batch.
_DENSE = ("AdamW", "Adamax", "Adadelta", "DecayedAdagrad", "LarsMomentum")


def say_what_is_dense(optimizer: Any, main: Program) -> None:
    """Warns once where an optimizer moves every row in every step, whatever is_sparse says."""
    kind = type(optimizer).__name__.removesuffix("Optimizer")
    if kind not in _DENSE:
        return
    for op in main.global_block().ops:
        if op.type == "embedding" and op.attributes.get("is_sparse"):
            warn_once(
                f"dense rows {op.inputs[0]}",
                f"embedding(is_sparse=True) of {op.inputs[0]} is trained densely by {kind}, which moves "
                "every row in every step; use Adam(lazy_mode=True) or SGD to move a batch's rows alone",
            )


def say_what_decays(plan: Any) -> None:
    """Warns once for each table of rows that decays: only the rows of a batch do."""
    for entry in plan.entries():
        decays = {name: factor for name, factor in entry.table.decays.items() if factor}
        if not entry.table.sparse or not decays:
            continue
        by = " and ".join(f"{name}({factor:g})" for name, factor in decays.items())
        warn_once(
            f"decaying rows {entry.parameter}",
            f"rows of table {entry.parameter} decay by {by} in steps whose batches have them; Paddle 1.8 "
            "lets all rows decay in each step",
        )
