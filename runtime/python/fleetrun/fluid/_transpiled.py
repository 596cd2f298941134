"""paddle.fluid.transpiler.details: what scripts print programs with."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._types import Any, Program

__all__ = ["op_to_code", "program_to_code"]


def op_to_code(op: Any, skip_op_callstack: bool = True) -> str:
    """An operator as text."""
    return f"{{{', '.join(op.outputs)}}} = {op.type}({', '.join(op.inputs)})"


def program_to_code(
    prog: Program, fout: Any = None, skip_op_callstack: bool = True, rankid: int | None = None
) -> None:
    """Prints a program, or writes it to a file that is open."""
    print(prog, file=fout)


__getattr__, __dir__ = _lazy.attach(__name__, {"program_utils": "fluid._transpiled"})
