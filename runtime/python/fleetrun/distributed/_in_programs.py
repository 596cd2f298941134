"""Collective calls on variables: operators of a program, which every rank runs in the same order."""

from __future__ import annotations

import functools
import inspect
import sys

from fleetrun._arguments import as_list
from fleetrun._types import Any, Callable, Variable

__all__ = ["calls_ranks", "in_programs"]


def calls_ranks(program: Any) -> bool:
    """Whether it has such an operator: two threads that run it at once would make the calls of one rank in an
    order of their own."""
    return any(op.type == "call" and op.has_attr("ranks") for op in program.native.operators())


def in_programs(filled: str, gradient: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Lets a call on arrays take variables, too: the program makes it on their values. filled: the parameter
    whose array it sets, or whose list it fills. gradient(arguments, gradients): what stands for the gradient
    of the variable that is read; None where there is none, as in Paddle."""

    def decorate(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def either(*given: Any, **named: Any) -> Any:
            values = [*given, *named.values()]
            if not any(_is_variable(one) for value in values for one in as_list(value)):
                return call(*given, **named)
            bound = inspect.signature(call).bind(*given, **named)
            bound.apply_defaults()
            _append(call, bound.arguments, filled, gradient)
            return sys.modules[call.__module__].Task()

        return either

    return decorate


def _is_variable(value: Any) -> bool:
    """Without importing the engine where nobody has."""
    graph = sys.modules.get("fleetrun._variable")
    return graph is not None and isinstance(value, graph.Variable)


def _append(call, arguments, filled, gradient):
    import numpy

    from fleetrun import framework, tensor
    from fleetrun.distributed._world import the_world
    from fleetrun.static.calls import append_call

    read = [one for value in arguments.values() for one in as_list(value) if _is_variable(one)]
    targets = arguments[filled]
    fills = isinstance(targets, list) and not targets
    arguments = {**arguments, "sync_op": True, filled: [] if fills else targets}
    group = arguments["group"] or the_world.default_group

    def run(*values):
        left = iter(values)

        def put(one):
            return numpy.array(next(left)) if _is_variable(one) else one

        given = {
            name: [put(one) for one in value] if isinstance(value, (list, tuple)) else put(value)
            for name, value in arguments.items()
        }
        call(**given)
        return given[filled]

    block = framework.default_main_program().current_block()
    models = [read[0]] * group.nranks if fills else as_list(targets)
    made: list[Variable] = [
        block.create_var(
            framework.temporaries(call.__name__, 1)[0], model.shape, model.dtype, lod_level=model.lod_level
        )
        for model in models
    ]
    backward = None if gradient is None else gradient(arguments, group)
    append_call(run, read, made, backward, [*read, *made] if backward is not None else None, ranks=True)
    if fills:
        targets.extend(made)
        return
    for one, target in zip(made, as_list(targets)):
        tensor.assign(one, output=target)
