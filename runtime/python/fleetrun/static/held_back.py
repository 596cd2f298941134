"""Updates that count only in some runs of a program."""

from __future__ import annotations

import contextlib

from fleetrun import framework, tensor
from fleetrun._graph import appending_updates
from fleetrun._types import Iterator, Program, Variable
from fleetrun.static.averages import choose

__all__ = ["only_where"]


@contextlib.contextmanager
def only_where(condition: Variable, main: Program, startup: Program) -> Iterator[None]:
    """Within `with`, the operators that `main` gets count in runs where the condition, [1], holds: in others
    they are computed too, and what they have written to kept variables is put back."""
    begin = len(main.ops)
    yield
    written = {name: main.var(name) for op in main.ops[begin:] for name in op.outputs if name}
    kept = [each for each in written.values() if each.persistable]
    with framework.program_guard(main, startup), appending_updates():
        before = len(main.ops)
        copies = [tensor.assign(each) for each in kept]
        main.native.move_last(len(main.ops) - before, begin)
        for each, copy in zip(kept, copies):
            tensor.assign(choose(condition, each, copy), each)
