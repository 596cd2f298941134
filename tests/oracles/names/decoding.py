"""Beam search, and layers that step along sequences until they end."""

from name_cases import values_of


def _cell(paddle, net):
    """A cell of the given parameters."""
    w, u, b = (net.parameter(name, values_of(name, shape) * 6)
               for name, shape in (("w", [3, 3]), ("u", [3, 3]), ("b", [3])))
    def step(inputs, states, more=None):
        new = paddle.tanh(paddle.matmul(inputs, w) + paddle.matmul(states, u) + b)
        new = new if more is None else new + more
        return new, new

    return step


def _decoder(paddle, net, beams):
    table, out = (net.parameter(name, values_of(name, [3, 5] if name == "out" else [5, 3]) * 9)
                  for name in ("table", "out"))
    return paddle.nn.BeamSearchDecoder(
        _cell(paddle, net), start_token=1, end_token=2, beam_size=beams,
        embedding_fn=lambda words: paddle.nn.functional.embedding(words, table),
        output_fn=lambda state: paddle.matmul(state, out))


def beams(paddle, net):
    first = net.data("first", values_of("first", [4, 3]) * 5)
    made = {}
    for name, more in (("long", {"max_step_num": 8}), ("major", {"max_step_num": 3,
                                                               "output_time_major": True})):
        words, states, lengths = paddle.nn.dynamic_decode(
            _decoder(paddle, net, 3), inits=first, return_length=True, is_test=True, **more)
        made |= {name: words, name + " lengths": lengths, name + " chances": states.log_probs,
                 name + " finished": states.finished}
    for one in made.values():
        one.stop_gradient = True
    return made


def tree(paddle, net):
    ids = net.data("ids", [[[2, 5], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]], "int64")
    parents = net.data("parents", [[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]], "int64")
    return {"out": paddle.nn.functional.gather_tree(ids, parents)}
