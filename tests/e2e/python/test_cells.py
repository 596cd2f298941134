"""Cells and rnn() of Paddle 1.x, which Paddle 2.6.2 has not: values and gradients against float64 numpy.
Beam search is compared with Paddle itself: tests/oracles/names/decoding.py."""

import pytest

SCRIPT = """
import numpy
import paddle.fluid as fluid

layers = fluid.layers
kind, back = sys.argv[1], sys.argv[2] == "back"
x, n = fluid.data("x", [None, None, 3]), fluid.data("n", [None], "int64")
cell = layers.GRUCell(4) if kind == "gru" else layers.LSTMCell(4)
outputs, last = layers.rnn(cell, x, sequence_length=n, is_reverse=back)
last = last if kind == "gru" else last[0] + last[1]
loss = layers.reduce_sum(outputs * outputs) + layers.reduce_sum(last * last * last)
slopes = {one.name: slope for one, slope in fluid.backward.append_backward(loss)}
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
random = numpy.random.RandomState(1)
values = {name: random.randn(*slopes[name].shape) * 0.4 for name in sorted(slopes)}
for name, value in values.items():
    fluid.global_scope().find_var(name).get_tensor().set(value.astype("float32"), fluid.CPUPlace())
rows, lengths = random.randn(3, 5, 3) * 0.5, [5, 2, 4]

def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))

def gru(row, state, b0, b1, w0, w1):
    reset, update = numpy.split(sigmoid(numpy.concatenate([row, state]) @ w0 + b0), 2)
    new = numpy.tanh(numpy.concatenate([row, reset * state]) @ w1 + b1)
    return update * state + (1 - update) * new

def lstm(row, state, cell, b, w):
    enters, value, stays, leaves = numpy.split(numpy.concatenate([row, state]) @ w + b, 4)
    cell = cell * sigmoid(stays + 1) + sigmoid(enters) * numpy.tanh(value)
    return numpy.tanh(cell) * sigmoid(leaves), cell

def expected(values):
    given, outputs, total = [values[name] for name in sorted(values)], numpy.zeros((3, 5, 4)), 0.0
    for i in range(3):
        state, memory = numpy.zeros(4), numpy.zeros(4)
        for t in reversed(range(5)) if back else range(5):
            made = (gru(rows[i, t], state, *given), memory) if kind == "gru" else lstm(
                rows[i, t], state, memory, *given)
            outputs[i, t] = made[0]
            if t < lengths[i]:
                state, memory = made
        total += ((state + memory) ** 3).sum()
    return outputs, (outputs ** 2).sum() + total

feed = {"x": rows.astype("float32"), "n": numpy.array(lengths, "int64")}
found = executor.run(feed=feed, fetch_list=[outputs, loss, *(slopes[name] for name in values)])
wanted = expected(values)
numpy.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)
numpy.testing.assert_allclose(found[1], wanted[1], rtol=1e-5)
for (name, value), slope in zip(values.items(), found[2:]):
    differences = numpy.zeros_like(value)
    for at in numpy.ndindex(*value.shape):
        above, below = value.copy(), value.copy()
        above[at] += 1e-5
        below[at] -= 1e-5
        differences[at] = (expected({**values, name: above})[1] - expected({**values, name: below})[1]) / 2e-5
    numpy.testing.assert_allclose(slope, differences, rtol=3e-3, atol=3e-4)
print(" ".join(values))
"""

NAMES = {
    "gru": "GRUCell/BasicGRUUnit_0.b_0 GRUCell/BasicGRUUnit_0.b_1 GRUCell/BasicGRUUnit_0.w_0 "
    "GRUCell/BasicGRUUnit_0.w_1",
    "lstm": "LSTMCell/BasicLSTMUnit_0.b_0 LSTMCell/BasicLSTMUnit_0.w_0",
}

OWN = """
import numpy
import paddle.fluid as fluid

layers = fluid.layers

class Sum(layers.RNNCell):
    state_shape = [2]

    def call(self, inputs, states, more):
        return [inputs * 2.0, states + more], states + inputs

x = fluid.data("x", [None, None, 2])
(twice, sums), last = layers.rnn(Sum(), x, more=layers.fill_constant([1], "float32", 10.0))
both, (one, other) = layers.birnn(layers.GRUCell(3), layers.GRUCell(3), x)
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
fed = numpy.arange(12, dtype="float32").reshape(2, 3, 2)
found = executor.run(feed={"x": fed}, fetch_list=[twice, sums, last, both, one, other])
numpy.testing.assert_allclose(found[0], fed * 2)
numpy.testing.assert_allclose(found[1], fed.cumsum(1) - fed + 10)
numpy.testing.assert_allclose(found[2], fed.sum(1))
numpy.testing.assert_allclose(found[3][:, -1, :3], found[4])
numpy.testing.assert_allclose(found[3][:, 0, 3:], found[5])
print("ok")
"""


@pytest.mark.parametrize("way", ["on", "back"])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_cells_step_along_padded_sequences(run, package, kind, way):
    script = SCRIPT.replace("sys.argv[1]", repr(kind)).replace("sys.argv[2]", repr(way))
    assert run(script, PYTHONPATH=package + "/_compat").stdout.splitlines()[-1] == NAMES[kind]


def test_a_cell_of_the_scripts_own(run, package):
    assert run(OWN, PYTHONPATH=package + "/_compat").stdout.splitlines()[-1] == "ok"


STACKED = """
import numpy
import paddle.fluid as fluid
from paddle.fluid.contrib.layers import basic_gru, basic_lstm

layers = fluid.layers
x, n = fluid.data("x", [None, None, 3]), fluid.data("n", [None], "int64")
first = fluid.data("first", [4, None, 2])
lstm = basic_lstm(x, first, first * 2.0, 2, num_layers=2, sequence_length=n, bidirectional=True)
gru = basic_gru(x, None, 2, num_layers=2, bias_attr=fluid.ParamAttr(name="b"), batch_first=True)
loss = layers.reduce_sum(lstm[0]) + layers.reduce_sum(gru[0])
pairs = fluid.backward.append_backward(loss)
assert len(pairs) == 4 * 2 + 2 * 4 and all(gradient is not None for _, gradient in pairs)
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
value = lambda name: numpy.array(fluid.global_scope().find_var(name).get_tensor(), "float64")
random = numpy.random.RandomState(0)
for one, _ in pairs:
    fluid.global_scope().find_var(one.name).get_tensor().set(
        (random.randn(*one.shape) * 0.5).astype("float32"), fluid.CPUPlace())
rows, lengths, begin = random.randn(3, 4, 3), [4, 1, 3], random.randn(4, 3, 2)
sigmoid = lambda x: 1 / (1 + numpy.exp(-x))

def expected():
    outputs, hidden, memory = numpy.zeros((3, 4, 4)), numpy.zeros((4, 3, 2)), numpy.zeros((4, 3, 2))
    for way in (0, 1):
        scope = "basic_lstm_reverse_layers_" if way else "basic_lstm_layers_"
        given = [[value(f"{scope}{i}/BasicLSTMUnit_0.{kind}_0") for kind in "wb"] for i in (0, 1)]
        for k in range(3):
            states = [[begin[2 * i + way, k], 2 * begin[2 * i + way, k]] for i in (0, 1)]
            for t in reversed(range(4)) if way else range(4):
                row = rows[k, t]
                for (w, b), state in zip(given, states):
                    enters, new, stays, leaves = numpy.split(numpy.concatenate([row, state[0]]) @ w + b, 4)
                    if t < lengths[k]:
                        state[1] = state[1] * sigmoid(stays + 1) + sigmoid(enters) * numpy.tanh(new)
                        state[0] = numpy.tanh(state[1]) * sigmoid(leaves)
                    row = state[0]
                outputs[k, t, 2 * way : 2 * way + 2] = row
            for i in (0, 1):
                hidden[2 * i + way, k], memory[2 * i + way, k] = states[i]
    return outputs, hidden, memory

feed = {"x": rows.astype("float32"), "n": numpy.array(lengths, "int64"), "first": begin.astype("float32")}
found = executor.run(feed=feed, fetch_list=[*lstm, *gru])
for one, wanted in zip(found, expected()):
    numpy.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)
numpy.testing.assert_allclose(found[3][:, -1], found[4][1], rtol=1e-6)
print(*sorted(one.name for one, _ in pairs if one.name.startswith("b_fw")))
"""


def test_stacked_layers_step_both_ways(run, package):
    said = run(STACKED, PYTHONPATH=package + "/_compat").stdout.splitlines()[-1]
    assert said == "b_fw_b_0_candidate b_fw_b_0_gate b_fw_b_1_candidate b_fw_b_1_gate"


OWN_UNIT = """
import numpy
import paddle.fluid as fluid
from paddle.fluid.contrib.layers import BasicGRUUnit

layers = fluid.layers

class Leaky(BasicGRUUnit):
    def _build_once(self, input, before):
        self._weight = self.create_parameter(
            attr=self._param_attr, shape=[input.shape[-1] + self._hiden_size, self._hiden_size], dtype=self._dtype)

    def forward(self, input, before):
        both = layers.matmul(layers.concat([input, before], 1), self._weight)
        return 0.5 * before + 0.5 * self._activation(both)

x = fluid.data("x", [2, 3])
unit = Leaky("scope", 4)
first = unit(x, layers.fill_constant([2, 4], "float32", 1.0))
second = unit(x, first)
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
rows = numpy.arange(6, dtype="float32").reshape(2, 3) / 6
found, w = executor.run(feed={"x": rows}, fetch_list=[second, "scope/Leaky_0.w_0"])
state = numpy.ones((2, 4))
for _ in range(2):
    state = 0.5 * state + 0.5 * numpy.tanh(numpy.concatenate([rows, state], 1) @ w)
numpy.testing.assert_allclose(found, state, rtol=1e-5)
print(*(one.name for one in fluid.default_main_program().all_parameters()))
"""


def test_a_unit_of_the_script_makes_its_own_parameters(run, package):
    found = run(OWN_UNIT, PYTHONPATH=package + "/_compat").stdout
    assert found == "scope/Leaky_0.w_0\n"
