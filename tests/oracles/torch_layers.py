#!/usr/bin/env python3
"""Layers with random shapes and arguments beside PyTorch:
outputs, and gradients of every input and parameter.

usage: python tests/oracles/torch_layers.py [CASES] [SEED]    (an interpreter that has torch
                                                              and fleetrun; 20 of each kind)

Ends with 1 and the first case whose values are further apart than 0.0001 of their size. Batches of no example
are among the cases where PyTorch takes them.
"""

import sys

import fleetrun as paddle
import numpy
import torch

TOLERANCE = 1e-4


class Both:
    """One set of arrays as fleetrun's parameters and as torch's tensors."""

    def __init__(self, draw):
        self.draw = draw
        self.main, self.startup, self.scope = (paddle.static.Program(), paddle.static.Program(),
                                               paddle.static.Scope())
        self.values, self.feed, self.tensors = {}, {}, {}

    def array(self, name, shape, low=-1.0, high=1.0):
        """(variable, tensor) of new numbers, differentiated in both;
        fed, and not differentiated, where there are none."""
        values = self.draw.uniform(low, high, shape).astype("float32")
        if values.size == 0:
            self.feed[name] = values
            return paddle.static.data(name, list(shape), "float32"), torch.tensor(values)
        self.tensors[name] = torch.tensor(values, requires_grad=True)
        return self.given(name, paddle.create_parameter(list(shape), "float32", name=name),
                          values), self.tensors[name]

    def given(self, name, variable, values):
        """A parameter that gets these values, and is compared with tensors[name]."""
        self.values[name] = (variable.name, values)
        return variable

    def data(self, name, values):
        """An input that is not differentiated."""
        self.feed[name] = values
        return paddle.static.data(name, list(values.shape), str(values.dtype))

    def compare(self, ours, theirs):
        """The outputs, and the gradients of the sum of them all with fixed weights.
        Throws: AssertionError."""
        weights = [numpy.cos(numpy.arange(out.numel(), dtype="float32")).reshape(out.shape) for out in theirs]
        total = sum((out * torch.tensor(weight)).sum() for out, weight in zip(theirs, weights))
        if total.requires_grad:
            total.backward()
        parts = [paddle.sum(out * self.data(f"weights{index}", weight))
                 for index, (out, weight) in enumerate(zip(ours, weights))]
        if self.values:
            paddle.optimizer.SGD(0.0).minimize(paddle.add_n(parts))
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(self.startup, scope=self.scope)
        for own, values in self.values.values():
            self.scope.find_var(own).get_tensor().set(values, paddle.CPUPlace())
        wanted = {f"output {index}": (ours[index].name, out.detach()) for index, out in enumerate(theirs)}
        wanted |= {f"gradient of {name}": (own + "@GRAD", self.tensors[name].grad)
                   for name, (own, _) in self.values.items()
                   if self.tensors[name].grad is not None}
        found = executor.run(self.main, feed=self.feed, fetch_list=[own for own, _ in wanted.values()],
                             scope=self.scope)
        for (what, (_, expected)), value in zip(wanted.items(), found):
            expected = expected.numpy()
            scale = max(1.0, abs(expected).max(initial=0.0))
            numpy.testing.assert_allclose(value, expected, rtol=0, atol=TOLERANCE * scale, err_msg=what)


def convolution(both, draw):
    """Both dimensions, with strides, padding, dilation and groups."""
    axes, groups = int(draw.integers(1, 3)), int(draw.integers(1, 4))
    channels, filters = (groups * int(draw.integers(1, 4)) for _ in range(2))
    kernel = [int(size) for size in draw.integers(1, 4, axes)]
    stride, padding, dilation = ([int(one) for one in draw.integers(*bounds, axes)]
                                 for bounds in ((1, 4), (0, 3), (1, 3)))
    sizes = [int(size) + reach * (k - 1) for size, k, reach in zip(draw.integers(1, 7, axes), kernel,
                                                                   dilation)]
    x = both.array("x", [int(draw.integers(0, 4)), channels, *sizes])
    weight = both.array("weight", [filters, channels // groups, *kernel])
    bias = both.array("bias", [filters])
    more = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    names = f"conv{axes}d"
    ours = getattr(paddle.nn.functional, names)(x[0], weight[0], bias[0], **more)
    return [ours], [getattr(torch.nn.functional, names)(x[1], weight[1], bias[1], **more)]


def pool(both, draw):
    """The largest and the mean of both dimensions."""
    axes = int(draw.integers(1, 3))
    kernel = [int(size) for size in draw.integers(1, 4, axes)]
    stride = [int(one) for one in draw.integers(1, 4, axes)]
    padding = [int(draw.integers(0, size // 2 + 1)) for size in kernel]
    x = both.array("x", [int(draw.integers(1, 4)), 2, *(int(size) + 2 for size in draw.integers(1, 6, axes))])
    arguments = {"kernel_size": kernel, "stride": stride, "padding": padding}
    ours, theirs = [], []
    for kind, mine, its in (("max", {}, {}), ("avg", {"exclusive": False}, {"count_include_pad": True})):
        ours.append(getattr(paddle.nn.functional, f"{kind}_pool{axes}d")(x[0], **arguments, **mine))
        theirs.append(getattr(torch.nn.functional, f"{kind}_pool{axes}d")(x[1], **arguments, **its))
    return ours, theirs


def norm(both, draw):
    """Layer norm of the last axes, batch norm while training, and prelu for each channel."""
    shape = [int(size) for size in draw.integers(2, 6, int(draw.integers(2, 5)))]
    x = both.array("x", shape)
    last = shape[-int(draw.integers(1, len(shape))):]
    scale, shift = both.array("scale", [int(numpy.prod(last))]), both.array("shift", [int(numpy.prod(last))])
    layer = paddle.nn.functional.layer_norm(x[0], last, scale[0], shift[0])
    layers = torch.nn.functional.layer_norm(x[1], last, scale[1].reshape(last), shift[1].reshape(last))
    weight, bias = both.array("weight", [shape[1]], low=0.5), both.array("bias", [shape[1]])
    moments = [paddle.create_parameter([shape[1]], "float32",
                                       attr=paddle.ParamAttr(name=name, trainable=False))
               for name in ("mean", "variance")]
    batch = paddle.nn.functional.batch_norm(x[0], *moments, weight[0], bias[0], training=True)
    batches = torch.nn.functional.batch_norm(x[1], torch.zeros(shape[1]), torch.ones(shape[1]), weight[1],
                                             bias[1],
                                             training=True)
    alpha = both.array("alpha", [shape[1]])
    return ([layer, batch, paddle.nn.functional.prelu(x[0], alpha[0])],
            [layers, batches, torch.nn.functional.prelu(x[1], alpha[1])])


def recurrence(both, draw):
    """GRU, LSTM and the plain one: layers, directions, lengths and first states."""
    name = ("GRU", "LSTM", "RNN")[int(draw.integers(0, 3))]
    batch, steps, width, hidden, layers, ways = (int(draw.integers(1, most)) for most in (5, 6, 5, 5, 3, 3))
    theirs = getattr(torch.nn, name)(width, hidden, layers, batch_first=True, bidirectional=ways == 2)
    ours = getattr(paddle.nn, "SimpleRNN" if name == "RNN" else name)(
        width, hidden, layers, direction="bidirect" if ways == 2 else "forward")
    for parameter, tensor in theirs.named_parameters():
        both.given(parameter, getattr(ours, parameter), tensor.detach().numpy())
        both.tensors[parameter] = tensor
    x = both.array("x", [batch, steps, width])
    first = [both.array(state, [layers * ways, batch, hidden])
             for state in ("h", "c")[:2 if name == "LSTM" else 1]]
    lengths = draw.integers(1, steps + 1, batch)
    lengths[0] = steps
    mine, its = (tuple(state[side] for state in first) if name == "LSTM" else first[0][side]
                 for side in (0, 1))
    out, last = ours(x[0], mine, both.data("lengths", lengths))
    packed = torch.nn.utils.rnn.pack_padded_sequence(x[1], torch.tensor(lengths), batch_first=True,
                                                     enforce_sorted=False)
    outs, lasts = theirs(packed, its)
    outs, _ = torch.nn.utils.rnn.pad_packed_sequence(outs, batch_first=True)
    return [out, *(last if name == "LSTM" else (last,))], [outs, *(lasts if name == "LSTM" else (lasts,))]


def attention(both, draw):
    """Attention of one sequence to another in several parts."""
    heads, part, batch, length, others = (int(draw.integers(1, 4)) for _ in range(5))
    width = heads * part
    ours = paddle.nn.MultiHeadAttention(width, heads)
    query, key, value = (both.array(name, [batch, size, width]) for name, size in
                         (("query", length), ("key", others), ("value", others)))
    projected = []
    for projection, x in zip((ours.q_proj, ours.k_proj, ours.v_proj), (query, key, value)):
        tensors = []
        for parameter in (projection.weight, projection.bias):
            values = draw.uniform(-1, 1, parameter.shape).astype("float32")
            both.tensors[parameter.name] = torch.tensor(values, requires_grad=True)
            both.given(parameter.name, parameter, values)
            tensors.append(both.tensors[parameter.name])
        made = x[1] @ tensors[0] + tensors[1]
        projected.append(made.reshape(batch, -1, heads, part).transpose(1, 2))
    weight, bias = ours.out_proj.weight, ours.out_proj.bias
    both.given(weight.name, weight, numpy.eye(width, dtype="float32"))
    both.given(bias.name, bias, numpy.zeros(width, "float32"))
    both.tensors |= {name: torch.zeros(0) for name in (weight.name, bias.name)}
    q, k, v = projected
    theirs = torch.softmax(q @ k.transpose(2, 3) * part ** -0.5, dim=-1) @ v
    return [ours(query[0], key[0], value[0])], [theirs.transpose(1, 2).reshape(batch, length, width)]


KINDS = (convolution, pool, norm, recurrence, attention)


def run(kind, seed):
    """One case. Throws: AssertionError where the two differ."""
    torch.manual_seed(seed)
    draw = numpy.random.default_rng([seed, KINDS.index(kind)])
    both = Both(draw)
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(both.main, both.startup):
        both.compare(*kind(both, draw))


def main(words):
    cases, first = (int(word) for word in (words + ["20", "1"][len(words):]))
    paddle.enable_static()
    for kind in KINDS:
        for seed in range(first, first + cases):
            try:
                run(kind, seed)
            except AssertionError as error:
                print(f"{kind.__name__}, seed {seed}: {error}", file=sys.stderr)
                return 1
        print(f"{kind.__name__}: {cases} cases", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
