"""LayerHelper.append_op: operators of Paddle that layers and metrics of scripts append by their types."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._types import Any, Mapping
from fleetrun.fluid import _by_type
from fleetrun.fluid._operator import Operator

__all__ = ["append_op"]


def append_op(
    type: str,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> None:
    """Computes an operator of Paddle into its outputs. inputs, outputs: variables, or lists of them, by slot;
    outputs that nothing but a gradient operator of Paddle reads (XShape, Mask) are left as they are.
    Throws: Error(config) naming an operator that is not known here."""
    known = _by_type.types()
    if type not in known:
        raise Error(
            "config",
            f"append_op(type={type!r}): there is no such operator here to append by its type",
            "use the function of paddle that computes it; by type there are " + ", ".join(sorted(known)),
        )
    given = {slot: as_list(value) for slot, value in (inputs or {}).items() if value is not None}
    wanted = {slot: as_list(targets) for slot, targets in (outputs or {}).items()}
    if not any(slot in wanted for slot in known[type][1]):
        raise Error(
            "config",
            f"append_op(type={type!r}) of 0 outputs",
            f"give it outputs={{{known[type][1][0]!r}: variable}}",
        )
    made = _by_type.compute(Operator(type, given, attrs or {}))
    for slot, targets in wanted.items():
        results = made.get(slot, targets)  # what Paddle's gradient alone reads stays as it is
        if len(results) != len(targets):
            raise Error(
                "config",
                f"append_op(type={type!r}, outputs={{{slot!r}: {len(targets)} variables}}): it makes "
                f"{len(results)} of this slot",
            )
        for target, result in zip(targets, made.get(slot, ())):
            tensor.assign(result, target)
