"""fluid.layers: recurrent layers of Paddle 1.x over sequences, and their single steps
(runtime/engine/operators/sequence_recurrent_operators.cc)."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, ParamLike, Variable
from fleetrun.nn import functional
from fleetrun.static import nn
from fleetrun.static.sequences import in_sequences

__all__ = ["dynamic_gru", "dynamic_lstm", "gru_unit", "lstm_unit"]


def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """The states of gated units over each sequence, which are [total, size]: input[total, 3 * size] is the
    product for update gate, reset gate and candidate, h_0[n, size] the first states."""
    input = in_sequences(input, "dynamic_gru")
    layer = framework.unique_name("gru")
    weight = framework.make_parameter(layer, [size, 3 * size], "float32", param_attr, False, None, named=True)
    attributes = {
        "is_reverse": bool(is_reverse),
        "origin_mode": bool(origin_mode),
        "gate_activation": gate_activation,
        "activation": candidate_activation,
    }
    inputs = [input, h_0, weight, _bias(layer, 3 * size, bias_attr)]
    return framework.append("gru", "sequence_gru", inputs, attributes, framework.temporaries(layer, 2))[0]


def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: DTypeLike = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """(states, cells) of long short-term memory over each sequence, each [total, size / 4]: input[total,
    size] is the product for candidate, input gate, forget gate and output gate; h_0, c_0[n, size / 4]."""
    input = in_sequences(input, "dynamic_lstm")
    if bias_attr is False:
        raise Error(
            "config", "fluid.layers.dynamic_lstm(bias_attr=False)", "leave bias_attr out: peepholes are in it"
        )
    layer, hidden = name or framework.unique_name("lstm"), size // 4
    weight = framework.make_parameter(
        layer, [hidden, 4 * hidden], "float32", param_attr, False, None, named=True
    )
    attributes = {
        "use_peepholes": bool(use_peepholes),
        "is_reverse": bool(is_reverse),
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    bias = _bias(layer, (7 if use_peepholes else 4) * hidden, bias_attr)
    outputs = framework.temporaries(layer, 3)
    states, cells, _ = framework.append(
        "lstm", "sequence_lstm", [input, h_0, c_0, weight, bias], attributes, outputs
    )
    # As in Paddle, whose operator has no gradient of its cells.
    cells.stop_gradient = True
    return states, cells


def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """(new state, reset state, gates) of one step of dynamic_gru: input[n, size], hidden[n, size / 3]. As in
    Paddle 1.8 the gates are sigmoid and the candidate tanh, whatever the two names say, and the state alone
    is differentiated."""
    layer, width = framework.unique_name("gru_unit"), size // 3
    weight = framework.make_parameter(
        layer, [width, 3 * width], "float32", param_attr, False, None, named=True
    )
    bias = _bias(layer, 3 * width, bias_attr)
    inputs = input if bias is None else input + bias
    flat = tensor.reshape(weight, [-1])
    of_gates = tensor.reshape(tensor.slice(flat, [0], [0], [2 * width * width]), [width, 2 * width])
    of_candidate = tensor.reshape(
        tensor.slice(flat, [0], [2 * width * width], [3 * width * width]), [width, width]
    )
    product = tensor.slice(inputs, [1], [0], [2 * width]) + tensor.matmul(hidden, of_gates)
    update, reset = tensor.split(functional.sigmoid(product), 2, 1)
    kept = reset * hidden
    candidate = functional.tanh(
        tensor.slice(inputs, [1], [2 * width], [3 * width]) + tensor.matmul(kept, of_candidate)
    )
    first, second = (hidden, candidate) if origin_mode else (candidate, hidden)
    state = second + update * (first - second)
    shown = tensor.assign(kept), tensor.concat([update, reset, candidate], 1)
    for variable in shown:
        variable.stop_gradient = True
    return state, *shown


def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """(new state, new cell) of one step: the products of x_t[n, width] and hidden_t_prev[n, size] are input
    gate, forget gate (plus forget_bias), output gate and candidate."""
    size = cell_t_prev.shape[1]
    both: Any = tensor.concat([x_t, hidden_t_prev], 1)
    gates = nn.fc(both, 4 * size, weight_attr=param_attr, bias_attr=bias_attr)
    enters, stays, leaves, candidate = tensor.split(gates, 4, 1)
    kept = functional.sigmoid(tensor.scale(stays, 1.0, float(forget_bias))) * cell_t_prev
    cell = kept + functional.sigmoid(enters) * functional.tanh(candidate)
    return functional.sigmoid(leaves) * functional.tanh(cell), cell


def _bias(layer: str, width: int, attr: ParamLike) -> Variable | None:
    """A parameter [1, width]; None where the attribute is False."""
    if attr is False:
        return None
    return framework.make_parameter(layer, [1, width], "float32", attr, True, None, named=True)
