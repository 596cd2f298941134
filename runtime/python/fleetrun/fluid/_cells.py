"""fluid.layers: cells of recurrent layers of Paddle 1.x, and rnn(), which does their steps along padded
sequences."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, ParamLike, Variable
from fleetrun.nn import functional
from fleetrun.static import loops
from fleetrun.static.sequence_lod import sequence_mask
from fleetrun.utils import nest

__all__ = ["birnn", "GRUCell", "LSTMCell", "RNNCell", "rnn"]


class RNNCell:
    """A step: call(inputs, states) -> (outputs, new states), which a subclass has."""

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The step. Throws: NotImplementedError where a subclass has none."""
        raise NotImplementedError(f"{type(self).__name__}.call")

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        return self.call(inputs, states, **kwargs)

    @property
    def state_shape(self) -> Any:
        """Sizes of a state without the batch, or a nest of such lists."""
        raise NotImplementedError(f"{type(self).__name__}.state_shape")

    @property
    def state_dtype(self) -> Any:
        """The type of all states."""
        return "float32"

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: DTypeLike | None = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States full of init_value, as many as batch_ref's axis batch_dim_idx has."""
        count = tensor.shape(nest.flatten(batch_ref)[0])[batch_dim_idx]

        def made(sizes):
            if sizes and all(isinstance(size, int) for size in sizes):
                rest = list(sizes[1:]) if sizes[0] == -1 else list(sizes)
                state = tensor.full([count, *rest], init_value, dtype or "float32")
                state.stop_gradient = False
                return state
            return [made(one) for one in sizes]

        return made(self.state_shape if shape is None else shape)


class _Cell(RNNCell):
    """With an activation of the gates and one of the values."""

    def __init__(
        self,
        name: str,
        kind: str,
        hidden_size: int,
        param_attr: ParamLike,
        bias_attr: ParamLike,
        gate_activation: Any,
        activation: Any,
        dtype: str,
    ) -> None:
        if dtype != "float32":
            raise Error("config", f"fluid.layers.{name}(dtype={dtype!r})", "parameters are float32")
        # The name that Paddle's unit gives its parameters.
        self._layer = framework.unique_name(f"{name}/{kind}")
        self.hidden_size = hidden_size
        self._attrs = (param_attr, bias_attr)
        self._of_gates = gate_activation or functional.sigmoid
        self._of_values = activation or tensor.tanh
        self._parameters: dict[str, Variable] = {}

    def _parameter(self, key, shape, is_bias, suffix=""):
        known = self._parameters.get(key)
        if known is None:
            attr: Any = self._attrs[is_bias]
            if suffix and getattr(attr, "name", None):
                import copy

                attr = copy.copy(attr)
                attr.name += suffix
            known = framework.make_parameter(self._layer, shape, "float32", attr, is_bias, None, named=True)
            self._parameters[key] = known
        return known


class GRUCell(_Cell):
    """A gated unit: the state is the output. The candidate's gate comes before its product."""

    def __init__(
        self,
        hidden_size: int,
        param_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        gate_activation: Any = None,
        activation: Any = None,
        dtype: str = "float32",
        name: str = "GRUCell",
    ) -> None:
        given = (hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        super().__init__(name, "BasicGRUUnit", *given)

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """(state, state) after inputs[n, width] and states[n, hidden_size]."""
        hidden, width = self.hidden_size, inputs.shape[-1]
        gate = self._parameter("gate", [width + hidden, 2 * hidden], False, "_gate")
        candidate = self._parameter("candidate", [width + hidden, hidden], False, "_candidate")
        gate_bias = self._parameter("gate bias", [2 * hidden], True, "_gate")
        candidate_bias = self._parameter("candidate bias", [hidden], True, "_candidate")
        both = tensor.matmul(tensor.concat([inputs, states], 1), gate) + gate_bias
        reset, update = tensor.split(self._of_gates(both), 2, 1)
        kept = tensor.concat([inputs, reset * states], 1)
        new = self._of_values(tensor.matmul(kept, candidate) + candidate_bias)
        after = update * states + (1.0 - update) * new
        return after, after

    @property
    def state_shape(self) -> list[int]:
        """[hidden_size]."""
        return [self.hidden_size]


class LSTMCell(_Cell):
    """Long short-term memory: the states are [output, cell]."""

    def __init__(
        self,
        hidden_size: int,
        param_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        gate_activation: Any = None,
        activation: Any = None,
        forget_bias: float = 1.0,
        dtype: str = "float32",
        name: str = "LSTMCell",
    ) -> None:
        given = (hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        super().__init__(name, "BasicLSTMUnit", *given)
        self._forget_bias = float(forget_bias)

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """(output, [output, cell]) after inputs[n, width]; as in Paddle 1.8 the gates are sigmoid and the
        values tanh, whatever activations are given."""
        before, cell = states
        hidden, width = self.hidden_size, inputs.shape[-1]
        weight = self._parameter("weight", [width + hidden, 4 * hidden], False)
        bias = self._parameter("bias", [4 * hidden], True)
        all_gates = tensor.matmul(tensor.concat([inputs, before], 1), weight) + bias
        enters, value, stays, leaves = tensor.split(all_gates, 4, 1)
        sigmoid = functional.sigmoid
        new = cell * sigmoid(stays + self._forget_bias) + sigmoid(enters) * tensor.tanh(value)
        after = tensor.tanh(new) * sigmoid(leaves)
        return after, [after, new]

    @property
    def state_shape(self) -> list[list[int]]:
        """[[hidden_size], [hidden_size]]."""
        return [[self.hidden_size], [self.hidden_size]]


def rnn(
    cell: Any,
    inputs: Any,
    initial_states: Any = None,
    sequence_length: Variable | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """(outputs of all steps, the states after the last) of cell(input, states, **kwargs) along inputs[n,
    steps, ..], [steps, n, ..] for time_major. States stay as they are behind sequence_length [n] steps."""
    if initial_states is None:
        initial_states = cell.get_initial_states(batch_ref=inputs, batch_dim_idx=1 if time_major else 0)
    along = inputs if time_major else nest.map_structure(_swapped, inputs)
    first = nest.flatten(along)[0]
    count = tensor.shape(first)[0]
    mask: Any = None
    if sequence_length is not None:
        kind = nest.flatten(initial_states)[0].dtype.name
        mask = tensor.transpose(sequence_mask(sequence_length, count, kind), [1, 0])
    structure: Any = None

    def step(index, *states):
        nonlocal structure
        place = tensor.cast(count, "int64") - 1 - index if is_reverse else index
        now = nest.map_structure(lambda one: _at(one, place), along)
        packed = nest.pack_sequence_as(initial_states, list(states))
        structure, new = cell(now, packed, **kwargs)
        following = nest.flatten(new)
        if mask is not None:
            goes_on = _at(mask, place)
            following = [_kept(before, after, goes_on) for before, after in zip(states, following)]
        return following, nest.flatten(structure)

    states, outputs = loops.scan(step, nest.flatten(initial_states), count, first.shape[0])
    if is_reverse:
        outputs = [tensor.flip(one, [0]) for one in outputs]
    if not time_major:
        outputs = [_swapped(one) for one in outputs]
    return nest.pack_sequence_as(structure, outputs), nest.pack_sequence_as(initial_states, states)


def birnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_states: Any = None,
    sequence_length: Variable | None = None,
    time_major: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """rnn() of both cells, one from the end: (outputs side by side, the two's last states)."""
    first, second = (None, None) if initial_states is None else initial_states
    more = {"time_major": time_major, **kwargs}
    ahead, one = rnn(cell_fw, inputs, first, sequence_length, **more)
    back, other = rnn(cell_bw, inputs, second, sequence_length, is_reverse=True, **more)
    return nest.map_structure(lambda a, b: tensor.concat([a, b], -1), ahead, back), (one, other)


def _swapped(x):
    return tensor.transpose(x, [1, 0, *range(2, x.ndim)])


def _at(x, place):
    return tensor.squeeze(tensor.gather(x, place), 0)


def _kept(before, after, goes_on):
    """`after` where the sequence goes on, else `before`."""
    goes_on = tensor.reshape(goes_on, [-1] + [1] * (before.ndim - 1))
    return after * goes_on + before * (1.0 - goes_on)
