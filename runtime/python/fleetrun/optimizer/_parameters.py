"""Which parameters an optimizer moves, and what some of them have of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fleetrun._error import Error
from fleetrun._graph import unique_name

if TYPE_CHECKING:
    from fleetrun._graph import Program

__all__ = ["moving", "named", "state_numbers", "without_decay"]

# The first word of the names that optimizers give a parameter's state, by their kind.
_STATES = {
    "adagrad": "moment", "adam": "moment1", "adamax": "moment", "decayed_adagrad": "moment",
    "lamb": "moment1", "lars_momentum": "velocity", "momentum": "velocity",
}  # fmt: skip


def named(function: str, parameters: Any) -> set[str] | None:
    """The names of parameters that are given as such or by name; None where none are. Throws: Error(config)
    for Paddle's groups, which its static programs do not take either."""
    given = [parameters] if isinstance(parameters, str) else list(parameters or ())
    for each in given:
        if isinstance(each, dict):
            raise Error(
                "config",
                f"{function}(parameters=[{{{', '.join(map(repr, each))}}}, …]): a program has no groups of "
                "parameters",
                "give the parameters, and what is another for some of them by their ParamAttr",
            )
    return {each if isinstance(each, str) else each.name for each in given} or None


@contextlib.contextmanager
def moving(
    main: Program, chosen: set[str] | None, left_out: set[str], function: str, may_be_none: bool = False
) -> Iterator[None]:
    """Within it only parameters of `chosen` (None: all), and none of `left_out` or with stop_gradient, are
    trainable, and no gradient flows through other variables of `left_out`. Throws: Error(config) for names
    that there are not, and where nothing is left to move unless may_be_none."""
    trained = [each for each in main.all_parameters() if each.trainable]
    parameters = {each.name for each in main.all_parameters()}
    unknown = sorted(name for name in left_out | (chosen or set()) if not main.has_var(name))
    if unknown:
        raise Error(
            "config", f"{function}: the program has no variable {unknown[0]}", "name those that it has"
        )
    frozen = [
        each
        for each in trained
        if each.stop_gradient or each.name in left_out or (chosen and each.name not in chosen)
    ]
    if trained and len(frozen) == len(trained) and not may_be_none:
        raise Error(
            "config",
            f"{function}: none of the program's trainable parameters is left to move",
            f"it has {', '.join(each.name for each in trained[:5])}",
        )
    stopped = [main.var(name) for name in sorted(left_out - parameters)]
    stopped = [each for each in stopped if not each.stop_gradient]
    try:
        for each in frozen:
            main.native.set_trainable(each.name, False)
        for variable in stopped:
            variable.stop_gradient = True
        yield
    finally:
        for each in frozen:
            main.native.set_trainable(each.name, True)
        for variable in stopped:
            variable.stop_gradient = False


def state_numbers(kind: str, parameters: list[str]) -> dict[str, int]:
    """By parameter, what the names of its state end with: as in Paddle it counts from 0 the programs that an
    optimizer was given to, so that those that share the parameter do not share its state."""
    word = _STATES.get(kind, kind)
    return {name: int(unique_name(f"{name}_{word}").rpartition("_")[2]) for name in parameters}


def without_decay(config: Any, main: Any, decays: Callable[[str], bool] | None) -> Any:
    """`config` without the decay of parameters that `decays`, a function of their name, is False for."""
    if decays is not None:
        config.undecayed = {
            parameter.name for parameter in main.all_parameters() if not decays(parameter.name)
        }
    return config
