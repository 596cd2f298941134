"""fluid.contrib.layers: stacked recurrent layers of Paddle 1.x along padded sequences, and their units."""

from __future__ import annotations

import copy

from fleetrun import tensor
from fleetrun._types import Any, ParamLike, Variable
from fleetrun.fluid._cells import GRUCell, LSTMCell, _at, _kept
from fleetrun.nn import functional
from fleetrun.nn._layer import Layer
from fleetrun.static import loops
from fleetrun.static.sequence_lod import sequence_mask

__all__ = ["basic_gru", "basic_lstm", "BasicGRUUnit", "BasicLSTMUnit"]


class _Unit(Layer):
    """A step of a recurrent network. Units of a script that are made from it make their parameters in
    _build_once(), at the first call, and compute in forward()."""

    def __init__(self, scope: str, size: int, attr: Any, bias: Any, gate: Any, activation: Any, dtype: str):
        if not type(self).__module__.startswith("fleetrun."):  # the others' parameters are those of a cell
            super().__init__(f"{scope}/{type(self).__name__}", dtype)
        self._name, self._hiden_size, self._dtype = scope, size, dtype  # Paddle's names
        self._param_attr, self._bias_attr = attr, bias
        self._gate_activation = gate or functional.sigmoid
        self._activation = activation or tensor.tanh
        self._built = False

    def _build_once(self, *inputs: Any) -> None:
        """Nothing: the cell's parameters are made by itself."""

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._built:
            self._build_once(*inputs, **kwargs)
            self._built = True
        return self.forward(*inputs, **kwargs)


class BasicLSTMUnit(_Unit):
    """A step of long short-term memory: unit(input, hidden, cell) -> (hidden, cell)."""

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        gate_activation: Any = None,
        activation: Any = None,
        forget_bias: float = 1.0,
        dtype: str = "float32",
    ) -> None:
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        given = (param_attr, bias_attr, gate_activation, activation, forget_bias, dtype, name_scope)
        self._forget_bias, self._cell = forget_bias, LSTMCell(hidden_size, *given)

    def forward(self, input: Variable, pre_hidden: Variable, pre_cell: Variable) -> tuple[Any, Any]:
        """(hidden, cell) after this step."""
        _, (hidden, cell) = self._cell(input, [pre_hidden, pre_cell])
        return hidden, cell


class BasicGRUUnit(_Unit):
    """A step of a gated unit: unit(input, hidden) -> hidden."""

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        gate_activation: Any = None,
        activation: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        given = (param_attr, bias_attr, gate_activation, activation, dtype, name_scope)
        self._cell = GRUCell(hidden_size, *given)

    def forward(self, input: Variable, pre_hidden: Variable) -> Variable:
        """The hidden state after this step."""
        hidden: Variable = self._cell(input, pre_hidden)[0]
        return hidden


def basic_lstm(
    input: Variable,
    init_hidden: Variable | None,
    init_cell: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    gate_activation: Any = None,
    activation: Any = None,
    forget_bias: float = 1.0,
    dtype: str = "float32",
    name: str = "basic_lstm",
) -> tuple[Variable, Variable, Variable]:
    """(outputs of the last layer, last outputs of all layers, their last cells). Shape: input[n, steps, ..],
    [steps, n, ..] without batch_first -> the same, hidden_size per direction, and twice [layers * directions,
    n, hidden_size], which is that of init_hidden and init_cell. Dropout follows each layer."""

    def cell(scope, attr, bias):
        more = (attr, bias, gate_activation, activation, forget_bias, dtype, scope)
        return LSTMCell(hidden_size, *more)

    attrs = (param_attr, bias_attr, param_attr)
    first = None if init_hidden is None else [init_hidden, init_cell]
    shape = (hidden_size, num_layers, bidirectional, batch_first)
    outputs, (hidden, memory) = _stacked(
        cell, name, attrs, 2, input, first, shape, sequence_length, dropout_prob
    )
    return outputs, hidden, memory


def basic_gru(
    input: Variable,
    init_hidden: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    gate_activation: Any = None,
    activation: Any = None,
    dtype: str = "float32",
    name: str = "basic_gru",
) -> tuple[Variable, Variable]:
    """(outputs of the last layer, last outputs of all layers), as basic_lstm."""

    def cell(scope, attr, bias):
        return GRUCell(hidden_size, attr, bias, gate_activation, activation, dtype, scope)

    attrs = (param_attr, bias_attr, bias_attr)
    first = None if init_hidden is None else [init_hidden]
    shape = (hidden_size, num_layers, bidirectional, batch_first)
    outputs, (hidden,) = _stacked(cell, name, attrs, 1, input, first, shape, sequence_length, dropout_prob)
    return outputs, hidden


def _named(attr, suffix):
    if not getattr(attr, "name", None):
        return attr
    attr = copy.copy(attr)
    attr.name += suffix
    return attr


def _stacked(make, name, attrs, kinds, input, first, shape, lengths, dropout):
    """(outputs, the last states of each of the `kinds`). attrs: of weights, of biases, and what those of the
    way back have in their place where biases have no name."""
    hidden, layers, both, batch_first = shape
    x = tensor.transpose(input, [1, 0, 2]) if batch_first else input
    count = tensor.shape(x)[0]
    mask: Any = None
    if lengths is not None:
        mask = tensor.transpose(sequence_mask(lengths, count, "float32"), [1, 0])
    ways = 2 if both else 1
    outputs, ended = [], []
    for way in range(ways):
        scope, short = (name + "_reverse_layers_", "_bw") if way else (name + "_layers_", "_fw")
        weight, bias, instead = attrs
        bias = instead if way and not getattr(bias, "name", None) else bias
        cells = [
            make(scope + str(i), _named(weight, f"{short}_w_{i}"), _named(bias, f"{short}_b_{i}"))
            for i in range(layers)
        ]
        begin = _begin(x, first, hidden, layers, ways, way, kinds)
        made, states = _along(cells, x, begin, mask, count, kinds, dropout, bool(way))
        outputs.append(made)
        ended.append(states)
    joined = outputs[0] if not both else tensor.concat(outputs, 2)
    if batch_first:
        joined = tensor.transpose(joined, [1, 0, 2])
    last = [
        tensor.stack([ended[way][layer * kinds + kind] for layer in range(layers) for way in range(ways)], 0)
        for kind in range(kinds)
    ]
    return joined, last


def _begin(x, first, hidden, layers, ways, way, kinds):
    """The states of each layer one behind the other, `kinds` of each."""
    if first is None:
        zero = tensor.full([tensor.shape(x)[1], hidden], 0.0, "float32")
        return [zero] * (layers * kinds)
    parted = [tensor.reshape(one, [layers * ways, -1, hidden]) for one in first]
    return [
        tensor.squeeze(tensor.slice(one, [0], [layer * ways + way], [layer * ways + way + 1]), 0)
        for layer in range(layers)
        for one in parted
    ]


def _along(cells, x, begin, mask, count, kinds, dropout, back):
    def step(index, *states):
        place = tensor.cast(count, "int64") - 1 - index if back else index
        row = _at(x, place)
        goes_on = None if mask is None else _at(mask, place)
        following = []
        for i, cell in enumerate(cells):
            before = list(states[i * kinds : (i + 1) * kinds])
            _, after = cell(row, before if kinds > 1 else before[0])
            after = list(after) if kinds > 1 else [after]
            if goes_on is not None:
                after = [_kept(was, now, goes_on) for was, now in zip(before, after)]
            following += after
            row = after[0]
            if dropout:
                row = functional.dropout(row, dropout)
        return following, [row]

    states, (outputs,) = loops.scan(step, begin, count, x.shape[0])
    return (tensor.flip(outputs, [0]) if back else outputs), states
