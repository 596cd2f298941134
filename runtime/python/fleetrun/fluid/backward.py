"""paddle.static.append_backward and gradients: gradients of a program without an optimizer."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._arguments import refuse
from fleetrun._types import Any, Parameter, Sequence, Variable
from fleetrun.optimizer._parameters import moving, named
from fleetrun.static.differentiated import differentiate, grad_var_name, pairs

__all__ = ["append_backward", "grad_var_name", "gradients"]


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

    An embedding with is_sparse has a gradient of all its rows here. Throws: Error(config) after an
    optimizer's minimize(), and for tables of rows (sparse_embedding): they have no gradient of their own.
    """
    function = "paddle.static.append_backward"
    refuse(function, callbacks=(callbacks, None))
    program = loss.program
    with moving(program, named(function, parameter_list), named(function, no_grad_set) or set(), function):
        differentiate(program, loss)
        return pairs(program)


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
    differentiate(program, total)
    wanted: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = [grad_var_name(one.name) for one in wanted]
    return [program.var(name) if program.has_var(name) else None for name in names]


__getattr__, __dir__ = _lazy.attach(__name__)
