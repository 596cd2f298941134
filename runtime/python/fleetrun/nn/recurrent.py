"""Recurrent layers. One operator runs one direction of one layer over all steps
(runtime/engine/operators/recurrent_operators.cc).

The parameters of a cell are weight_ih[gates * hidden, input], weight_hh[gates * hidden, hidden], bias_ih and
bias_hh[gates * hidden], uniform within ±1 / sqrt(hidden); an attribute False: weights stay 1, biases 0.
Gates: GRU reset, update, candidate; LSTM input, forget, cell, output.
"""

import math

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr
from fleetrun._types import Any, ParamLike, Variable
from fleetrun.nn import functional, initializer
from fleetrun.nn._layer import Layer
from fleetrun.nn.containers import LayerList

__all__ = [
    "BiRNN", "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCellBase", "run", "SimpleRNN",
    "SimpleRNNCell",
]  # fmt: skip


class RNNCellBase(Layer):
    """A step of a recurrence: cell(inputs[batch, input], states) -> (outputs, new states), states[batch,
    hidden]."""

    _gates = 1
    _has_cell = False

    def _make(self, input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr):
        if hidden_size <= 0:
            raise Error(
                "config", f"paddle.nn.{type(self).__name__}(hidden_size={hidden_size}) is not above 0"
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        gates = self._gates * hidden_size
        self.weight_ih = self._parameter([gates, input_size], weight_ih_attr, False)
        self.weight_hh = self._parameter([gates, hidden_size], weight_hh_attr, False)
        self.bias_ih = self._parameter([gates], bias_ih_attr, True)
        self.bias_hh = self._parameter([gates], bias_hh_attr, True)

    def _parameter(self, shape, attr, is_bias):
        if attr is False:
            constant = initializer.Constant(0.0 if is_bias else 1.0)
            return self.create_parameter(
                shape, attr=ParamAttr(initializer=constant, trainable=False), is_bias=is_bias
            )
        limit = 1.0 / math.sqrt(self.hidden_size)
        return self.create_parameter(
            shape, attr=attr, is_bias=is_bias, default_initializer=initializer.Uniform(-limit, limit)
        )

    mode: Any = None  # the operator's name of what the cell computes

    @property
    def state_shape(self) -> Any:
        """The sizes of a state behind the batch's."""
        return ((self.hidden_size,), (self.hidden_size,)) if self._has_cell else (self.hidden_size,)

    def forward(self, inputs: Variable, states: Any = None) -> Any:
        first = (None,) if states is None else states if self._has_cell else (states,)
        outputs, last = run(self, tensor.unsqueeze(inputs, 1), first)
        return tensor.squeeze(outputs, 1), last if self._has_cell else last[0]


class SimpleRNNCell(RNNCellBase):
    """tanh, or relu, of W_ih x + b_ih + W_hh h + b_hh."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: ParamLike = None,
        weight_hh_attr: ParamLike = None,
        bias_ih_attr: ParamLike = None,
        bias_hh_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if activation not in ("tanh", "relu"):
            raise Error(
                "config",
                f'paddle.nn.SimpleRNNCell(activation="{activation}"): there is no such activation',
                'use "tanh" or "relu"',
            )
        self.activation = activation
        self._make(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

    @property
    def mode(self) -> str:
        return "RNN_" + self.activation.upper()


class GRUCell(RNNCellBase):
    """z h + (1 - z) tanh(W x + b + r (U h + c)) with gates r and z."""

    _gates = 3
    mode = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: ParamLike = None,
        weight_hh_attr: ParamLike = None,
        bias_ih_attr: ParamLike = None,
        bias_hh_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)


class LSTMCell(RNNCellBase):
    """c' = f c + i tanh(g), h' = o tanh(c'); its states are (h, c)."""

    _gates = 4
    _has_cell = True
    mode = "LSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: ParamLike = None,
        weight_hh_attr: ParamLike = None,
        bias_ih_attr: ParamLike = None,
        bias_hh_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)


def run(
    cell: RNNCellBase,
    inputs: Variable,
    first: Any = (None,),
    lengths: Variable | None = None,
    reverse: bool = False,
    time_major: bool = False,
    zero_padding: bool = True,
) -> Any:
    """(outputs, (last h,) or (last h, last c)) of a cell over inputs[batch, steps, input]; `first` is like
    the latter."""
    first_h, first_c = (*first, None)[:2]
    prefix = framework.unique_name("recurrent") + ".tmp"
    outputs = [framework.unique_name(prefix) for _ in range(4)]
    out, last_h, last_c, _ = framework.append(
        "recurrent",
        "recurrent",
        [inputs, first_h, first_c, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, lengths],
        {
            "mode": cell.mode,
            "reverse": bool(reverse),
            "time_major": bool(time_major),
            "zero_padding": bool(zero_padding),
        },
        outputs,
    )
    return out, (last_h, last_c) if cell._has_cell else (last_h,)


class RNN(Layer):
    """A cell over the steps of inputs[batch, steps, input]: (outputs, final states). Shorter sequences keep
    their state behind their sequence_length."""

    def __init__(self, cell: RNNCellBase, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        if not isinstance(cell, RNNCellBase):
            raise Error(
                "config",
                f"paddle.nn.RNN({type(cell).__name__}) is not supported",
                "use a SimpleRNNCell, a GRUCell or an LSTMCell",
            )
        self.cell = cell
        self.is_reverse = is_reverse
        self.time_major = time_major

    def forward(
        self, inputs: Variable, initial_states: Any = None, sequence_length: Variable | None = None
    ) -> Any:
        single = not self.cell._has_cell
        first = (None,) if initial_states is None else (initial_states,) if single else tuple(initial_states)
        outputs, last = run(
            self.cell, inputs, first, sequence_length, self.is_reverse, self.time_major, zero_padding=False
        )
        return outputs, last[0] if single else last


class BiRNN(Layer):
    """Two cells, one forwards and one backwards: (their outputs side by side, (states forwards, states
    backwards))."""

    def __init__(self, cell_fw: RNNCellBase, cell_bw: RNNCellBase, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw = cell_fw, cell_bw
        self._forward = RNN(cell_fw, False, time_major)
        self._backward = RNN(cell_bw, True, time_major)

    def forward(
        self, inputs: Variable, initial_states: Any = None, sequence_length: Variable | None = None
    ) -> Any:
        first = (None, None) if initial_states is None else initial_states
        ahead, last_ahead = self._forward(inputs, first[0], sequence_length)
        back, last_back = self._backward(inputs, first[1], sequence_length)
        return tensor.concat([ahead, back], axis=-1), (last_ahead, last_back)


class _Stacked(LayerList):
    """num_layers layers, each of one direction or two: (outputs, states[num_layers * directions, batch,
    hidden]).

    outputs[batch, steps, directions * hidden] are 0 behind a sequence's length. dropout is between the
    layers.
    """

    _cell: Any = None

    def _make(self, input_size, hidden_size, num_layers, direction, time_major, dropout, attributes):
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise Error(
                "config",
                f'paddle.nn.{type(self).__name__}(direction="{direction}"): there is no such direction',
                'use "forward" or "bidirect"',
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.time_major, self.dropout = time_major, dropout
        self.num_directions = 1 if direction == "forward" else 2
        self.state_components = 2 if self._cell._has_cell else 1
        for index in range(num_layers):
            width = input_size if index == 0 else hidden_size * self.num_directions
            cells = [self._cell(width, hidden_size, **attributes) for _ in range(self.num_directions)]
            self.append(
                RNN(cells[0], False, time_major) if len(cells) == 1 else BiRNN(cells[0], cells[1], time_major)
            )
            for cell, suffix in zip(cells, ("", "_reverse")):
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    object.__setattr__(self, f"{name}_l{index}{suffix}", getattr(cell, name))

    def forward(self, inputs, initial_states=None, sequence_length=None):
        first = (
            (None,) * self.state_components
            if initial_states is None
            else (tuple(initial_states) if self.state_components > 1 else (initial_states,))
        )
        states: list[Any] = []
        for index, layer in enumerate(self):
            if index > 0 and self.dropout:
                inputs = functional.dropout(inputs, self.dropout, training=self.training)
            cells = [layer.cell] if self.num_directions == 1 else [layer.cell_fw, layer.cell_bw]
            parts = []
            for reverse, cell in enumerate(cells):
                place = len(states)
                begin = tuple(None if state is None else state[place] for state in first)
                out, last = run(cell, inputs, begin, sequence_length, bool(reverse), self.time_major)
                parts.append(out)
                states.append(last)
            inputs = parts[0] if len(parts) == 1 else tensor.concat(parts, axis=-1)
        stacked = tuple(tensor.stack(list(component)) for component in zip(*states))
        return inputs, stacked if self.state_components > 1 else stacked[0]


class SimpleRNN(_Stacked):
    """SimpleRNNCells over sequences."""

    _cell = SimpleRNNCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: ParamLike = None,
        weight_hh_attr: ParamLike = None,
        bias_ih_attr: ParamLike = None,
        bias_hh_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make(
            input_size,
            hidden_size,
            num_layers,
            direction,
            time_major,
            dropout,
            {
                "activation": activation,
                "weight_ih_attr": weight_ih_attr,
                "weight_hh_attr": weight_hh_attr,
                "bias_ih_attr": bias_ih_attr,
                "bias_hh_attr": bias_hh_attr,
            },
        )


class LSTM(_Stacked):
    """LSTMCells over sequences; the states are (h, c)."""

    _cell = LSTMCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: ParamLike = None,
        weight_hh_attr: ParamLike = None,
        bias_ih_attr: ParamLike = None,
        bias_hh_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make(
            input_size,
            hidden_size,
            num_layers,
            direction,
            time_major,
            dropout,
            {
                "weight_ih_attr": weight_ih_attr,
                "weight_hh_attr": weight_hh_attr,
                "bias_ih_attr": bias_ih_attr,
                "bias_hh_attr": bias_hh_attr,
            },
        )


class GRU(_Stacked):
    """GRUCells over sequences."""

    _cell = GRUCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: ParamLike = None,
        weight_hh_attr: ParamLike = None,
        bias_ih_attr: ParamLike = None,
        bias_hh_attr: ParamLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make(
            input_size,
            hidden_size,
            num_layers,
            direction,
            time_major,
            dropout,
            {
                "weight_ih_attr": weight_ih_attr,
                "weight_hh_attr": weight_hh_attr,
                "bias_ih_attr": bias_ih_attr,
                "bias_hh_attr": bias_hh_attr,
            },
        )
