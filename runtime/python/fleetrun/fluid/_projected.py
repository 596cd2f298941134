"""fluid.layers.dynamic_lstmp: long short-term memory whose states are projected, step by step."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._types import Any, DTypeLike, ParamLike, Variable
from fleetrun.fluid._dynamic_rnn import DynamicRNN
from fleetrun.nn import functional
from fleetrun.static.sequence_lod import sequence_reverse
from fleetrun.static.sequences import in_sequences

__all__ = ["dynamic_lstmp"]


def _activation(name: str) -> Any:
    known = {"sigmoid": functional.sigmoid, "tanh": functional.tanh, "relu": functional.relu}
    if name != "identity" and name not in known:
        raise ValueError(f"fluid.layers.dynamic_lstmp: {name!r} is not sigmoid, tanh, relu or identity")
    return known.get(name, tensor.assign)


def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    dtype: DTypeLike = "float32",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """(projected states [total, proj_size], cells [total, size / 4]) of dynamic_lstm whose state of each step
    is a product with a second weight; h_0[n, proj_size], c_0[n, size / 4]. As in Paddle no gradient flows
    through the cells."""
    input = in_sequences(input, "dynamic_lstmp")
    layer, hidden = name or framework.unique_name("lstmp"), size // 4
    weight = framework.make_parameter(
        layer, [proj_size, size], "float32", param_attr, False, None, named=True
    )
    second = framework.make_parameter(
        layer, [hidden, proj_size], "float32", param_attr, False, None, named=True
    )
    width = (7 if use_peepholes else 4) * hidden
    bias = framework.make_parameter(layer, [1, width], "float32", bias_attr, True, None, named=True)
    parts = [tensor.slice(bias, [1], [k * hidden], [(k + 1) * hidden]) for k in range(width // hidden)]
    gate, squash = _activation(gate_activation), _activation(cell_activation)
    candidate, project = _activation(candidate_activation), _activation(proj_activation)

    def projected(state: Variable) -> Variable:
        made = project(tensor.matmul(state, second))
        return tensor.clip(made, -proj_clip, proj_clip) if proj_clip else made

    rows = sequence_reverse(input) if is_reverse else input
    steps = DynamicRNN()
    with steps.block():
        row = steps.step_input(rows)
        before = steps.memory(h_0, [proj_size], need_reorder=True)
        cell = steps.memory(c_0, [hidden], need_reorder=True)
        gates = tensor.split(row + tensor.matmul(before, weight), 4, 1)
        fresh, enters, stays, leaves = (one + part for one, part in zip(gates, parts))
        if use_peepholes:
            enters, stays = enters + cell * parts[4], stays + cell * parts[5]
        now = gate(stays) * cell + gate(enters) * candidate(fresh)
        now = tensor.clip(now, -cell_clip, cell_clip) if cell_clip else now
        leaves = gate(leaves + now * parts[6] if use_peepholes else leaves)
        state = projected(leaves * squash(now))
        steps.update_memory(before, state)
        steps.update_memory(cell, now)
        steps.output(state, now)
    made = steps()
    states, cells = (sequence_reverse(one) for one in made) if is_reverse else made
    cells.stop_gradient = True
    return states, cells
