"""paddle.static.append_backward and gradients: gradients of a program without an optimizer."""

from __future__ import annotations

from fleetrun import _lazy, _native
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Parameter, Sequence, Variable
from fleetrun.framework import Program, default_startup_program
from fleetrun.optimizer.optimizers import SGD
from fleetrun.static.lookups import choices_of
from fleetrun.static.training import is_trained

__all__ = ["append_backward", "grad_var_name", "gradients"]


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient."""
    return var_name + "@GRAD"


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Any = None,
    callbacks: Any = None,
    checkpoints: Any = None,
    distop_context: Any = None,
) -> list[tuple[Parameter, Variable]]:
    """Appends what computes the gradients of `loss` (one value). Returns [(parameter, gradient)], of
    parameter_list where it is given. checkpoints, which save memory in Paddle: accepted.

    Throws: Error(config) after an optimizer's minimize(), and for tables of rows: they have no gradient of
    their own.
    """
    refuse(
        "paddle.static.append_backward", no_grad_set=(no_grad_set or None, None), callbacks=(callbacks, None)
    )
    program = loss.program
    _differentiate(program, loss)
    wanted = None
    if parameter_list is not None:
        wanted = {one if isinstance(one, str) else one.name for one in parameter_list}
    return [
        (parameter, program.var(grad_var_name(parameter.name)))
        for parameter in program.all_parameters()
        if program.has_var(grad_var_name(parameter.name)) and (wanted is None or parameter.name in wanted)
    ]


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Any = None,
    no_grad_set: Any = None,
) -> list[Variable | None]:
    """The gradients of the sum of all values of `targets` with respect to `inputs`; None for one that they do
    not depend on. The inputs need stop_gradient=False before what computes with them is built."""
    refuse(
        "paddle.static.gradients",
        target_gradients=(target_gradients, None),
        no_grad_set=(no_grad_set or None, None),
    )
    listed: list[Any] = list(targets) if isinstance(targets, (list, tuple)) else [targets]
    from fleetrun import tensor

    total = tensor.add_n([tensor.sum(one) for one in listed])
    program = total.program
    _differentiate(program, total)
    wanted: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = [grad_var_name(one.name) for one in wanted]
    return [program.var(name) if program.has_var(name) else None for name in names]


def _differentiate(program: Program, loss: Variable) -> None:
    if is_trained(program) or program.has_var(grad_var_name(loss.name)):
        raise Error(
            "config",
            f"the program has gradients already, and those of {loss.name} are asked for",
            "call minimize(), append_backward() or gradients() once for a program",
        )
    startup = default_startup_program()
    choices = choices_of(program, {}, "async")
    plan = _native.distribute(
        program.native, startup.native, loss.name, SGD(1.0)._native_config(program, ""), True, choices
    )
    rows = [entry.parameter for entry in plan.entries() if entry.table.sparse]
    if rows:
        raise Error(
            "config",
            f"append_backward: {rows[0]} is a table of rows, which has no gradient of its own",
            "train it with an optimizer's minimize(), or look it up with is_sparse=False",
        )


__getattr__, __dir__ = _lazy.attach(__name__)
