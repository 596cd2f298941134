"""Gradients in a program: which are there, and which of them have looked-up rows alone."""

from __future__ import annotations

from collections.abc import Container

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Mapping, Parameter, Program, Sequence, Variable
from fleetrun.static.training import training_of

__all__ = ["differentiate", "expect_rows", "grad_var_name", "gradient_name", "KEYS", "pairs"]

# The parameters that were looked up with is_sparse, where append_backward() gave them gradients of all rows.
_SPARSE: SideTable[set[str]] = SideTable("sparse_parameters", set)
# {gradient of rows: the variable with their keys}.
KEYS: SideTable[dict[str, str]] = SideTable("gradient_keys", dict)


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient."""
    return var_name + "@GRAD"


def differentiate(
    program: Program,
    loss: Variable,
    optimizer: _native.OptimizerConfig | None = None,
    asked: Sequence[Variable] = (),
) -> dict[str, Variable]:
    """append_backward() with another result, {variable: its gradient}; with an optimizer gradients are of
    rows where it can take them. asked: of these variables alone, whatever they are computed from; then the
    loss may depend on none. Throws: as append_backward()."""
    training = training_of(program)
    if training is not None and training.main is program:
        raise Error(
            "config",
            f"the program has an optimizer already, and the gradients of {loss.name} are asked for",
            "call append_backward() or gradients() before minimize()",
        )
    if optimizer is None:
        _SPARSE.of(program).update(
            op.inputs[0] for op in program.ops if op.type == "embedding" and op.attributes.get("is_sparse")
        )
    before = {each.name for each in program.list_vars()}
    more = {one.name for one in asked if not one.stop_gradient}
    made = _native.append_backward(program.native, loss.name, optimizer, more)
    KEYS.of(program).update({gradient: keys for _, gradient, keys in made if keys})
    return {name: program.var(new) for name in before if program.has_var(new := gradient_name(name, before))}


def gradient_name(name: str, taken: Container[str]) -> str:
    """What the gradient of a variable is called where these names are taken, by earlier gradients too."""
    gradient, k = grad_var_name(name), 0
    while gradient in taken:
        k += 1
        gradient = f"{grad_var_name(name)}@{k}"
    return gradient


def reaches_parameter(program: Program, loss: Variable) -> bool:
    """Whether the loss is computed from a trainable parameter."""
    needed = {loss.name}
    for op in reversed(program.ops):
        if needed.intersection(op.outputs):
            needed.update(op.inputs)
            needed.update(str(value) for value in op.attributes.values() if isinstance(value, str))
    return any(parameter.trainable and parameter.name in needed for parameter in program.all_parameters())


def pairs(program: Program, gradients: Mapping[str, Variable]) -> list[tuple[Parameter, Variable]]:
    """[(parameter, gradient)] of what differentiate() gave, of parameters that are trainable."""
    return [
        (parameter, gradients[parameter.name])
        for parameter in program.all_parameters()
        if parameter.trainable and parameter.name in gradients
    ]


def expect_rows(main: Program, parameters: Sequence[str], optimizer: str, kind: str) -> None:
    """Throws: Error(config) where the rows of these parameters would move otherwise than they should, or
    their gradient is computed with."""
    dense = sorted(_SPARSE.of(main) & set(parameters))
    if dense and kind not in ("sgd", "adagrad"):
        raise Error(
            "config",
            f"apply_gradients: {optimizer} moves looked-up rows of {dense[0]} otherwise than all, and "
            "append_backward() gives a gradient of all",
            "take the gradients from the optimizer's own backward(loss), or is_sparse=False",
        )
    read = {name for op in main.ops if not op.attributes.get("role") for name in op.inputs}
    for gradient in sorted(read & set(KEYS.of(main))):
        raise Error(
            "config",
            f"apply_gradients: the script computes with {gradient}, which has looked-up rows alone",
            "make the embedding with is_sparse=False",
        )
