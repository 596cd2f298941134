"""paddle.static.append_backward and gradients: gradients of a program without an optimizer."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._arguments import as_list, refuse
from fleetrun._types import Any, Sequence, Variable
from fleetrun.optimizer._parameters import moving, named
from fleetrun.static.differentiated import differentiate, grad_var_name, pairs

__all__ = ["append_backward", "calc_gradient", "grad_var_name", "gradients"]


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Any = None,
    callbacks: Any = None,
    checkpoints: Any = None,
    distop_context: Any = None,
) -> list[tuple[Any, Variable]]:
    """Appends what computes the gradients of `loss` (one value). Returns [(parameter, gradient)], of
    parameter_list where it is given, which may have other variables than parameters, too; an empty list where
    nothing is left that could have a gradient. checkpoints, which save memory in Paddle: accepted.

    An embedding with is_sparse has a gradient of all its rows here. Throws: Error(config) after an
    optimizer's minimize(), and for tables of rows (sparse_embedding): they have no gradient of their own.
    """
    function = "paddle.static.append_backward"
    refuse(function, callbacks=(callbacks, None))
    program = loss.program
    chosen, left_out = named(function, parameter_list), named(function, no_grad_set) or set()
    with moving(program, chosen, left_out, function, may_be_none=True):
        if chosen and not chosen <= {each.name for each in program.all_parameters()}:
            listed = [each if isinstance(each, str) else each.name for each in parameter_list or ()]
            made = differentiate(program, loss, None, [program.var(name) for name in listed])
            return [(program.var(name), made[name]) for name in listed if name in made]
        made_of_nothing = _made_of_nothing(program)
        if not made_of_nothing and not _has_gradients(program):
            return []
        asked = [*made_of_nothing, *_sources(program)] if made_of_nothing else []
        return pairs(program, differentiate(program, loss, None, asked))


def _made_of_nothing(program):
    """Constants and the like, of which the script says that they have gradients."""
    names = [name for op in program.ops if not op.inputs for name in op.outputs]
    return [one for one in map(program.var, names) if not one.stop_gradient]


def _sources(program):
    """What has gradients in any case."""
    data = [each for each in program.list_vars() if each.is_data]
    return [*data, *(each for each in program.all_parameters() if each.trainable)]


def _has_gradients(program):
    """Whether anything of the program, which a loss could depend on, is to have a gradient."""
    data = (each for each in program.list_vars() if each.is_data)
    return any(each.trainable for each in program.all_parameters()) or not all(
        each.stop_gradient for each in data
    )


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Any = None,
    no_grad_set: Any = None,
) -> list[Variable | None]:
    """The gradients of the sum of all values of `targets` with respect to `inputs`; None for one that they do
    not depend on, and no list entry, as in Paddle, where it is the only one. target_gradients: by what each
    value counts in the sum, 1 where it is None. The inputs need stop_gradient=False before what computes with
    them is built. What is made of the gradients can be a loss, or be differentiated again."""
    refuse("paddle.static.gradients", no_grad_set=(no_grad_set or None, None))
    from fleetrun import tensor

    listed = as_list(targets)
    counted = [None] * len(listed) if target_gradients is None else as_list(target_gradients)
    total = tensor.add_n(
        [tensor.sum(one if by is None else one * _fixed(by)) for one, by in zip(listed, counted, strict=True)]
    )
    wanted = as_list(inputs)
    if all(one.stop_gradient for one in wanted):
        return [None] * len(wanted) if len(wanted) > 1 else []
    made = differentiate(total.program, total, None, wanted)
    found = [made.get(one.name) for one in wanted]
    return [] if found == [None] else found


def calc_gradient(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Any = None,
    no_grad_set: Any = None,
) -> Any:
    """gradients(), as 1.x had it: the gradient itself for one input, or None."""
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found if len(found) > 1 else next(iter(found), None)


def _fixed(x):
    """x, through which no gradient flows."""
    from fleetrun import tensor

    still = tensor.assign(x)
    still.stop_gradient = True
    return still


__getattr__, __dir__ = _lazy.attach(__name__)
