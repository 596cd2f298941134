"""What a script fetches: variables of the program that it runs."""

from __future__ import annotations

from typing import Any

from fleetrun._check import package
from fleetrun._check.values import UNKNOWN, Bound, Made, items_of


def missing(function: Any, args: list[Any], keywords: dict[str, Any]) -> str:
    """The variable that Executor.run() is told to fetch and its program has not, nor a scope; "" where there
    is none, and for programs that are not known."""
    from fleetrun import framework
    from fleetrun._graph import Program

    if not isinstance(function, Bound) or (function.owner.cls.__name__, function.name) != ("Executor", "run"):
        return ""
    program = args[0] if args else keywords.get("program")
    program = framework.default_main_program() if program is None else getattr(program, "real", None)
    fetched = items_of(args[2] if len(args) > 2 else keywords.get("fetch_list", UNKNOWN))
    if not isinstance(program, Program) or fetched is None:
        return ""
    names = {each.name for each in program.list_vars()}
    for each in fetched:
        variable = each.real if isinstance(each, Made) and package.is_variable(each) else None
        if variable is not None and not variable.persistable and variable.name not in names:
            return str(variable.name)
    return ""
