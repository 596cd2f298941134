"""A decoder of Paddle 1.x: states, ids and scores in arrays that a loop reads and writes, beam_search and
beam_search_decode. The sequences are those of Paddle 1.8.5 with the same parameters."""

import json

import pytest

DECODER = """
import json

import numpy as np
import fleetrun.fluid as fluid

layers = fluid.layers
words, width, beam, steps, end = 5, 6, 3, 8, 1
random = np.random.RandomState(7)


def values(*shape, scale=1.0):
    drawn = (random.randn(*shape) * scale).astype("float32")
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(drawn))


context = fluid.data("context", [-1, width], "float32")
first_ids = layers.data("first_ids", [1], dtype="int64", lod_level=2)
first_scores = layers.data("first_scores", [1], dtype="float32", lod_level=2)
limit = layers.fill_constant([1], "int64", steps)
counter = layers.zeros([1], "int64", force_cpu=True)
states, ids, scores = (layers.create_array(kind) for kind in ("float32", "int64", "float32"))
layers.array_write(context, array=states, i=counter)
layers.array_write(first_ids, array=ids, i=counter)
layers.array_write(first_scores, array=scores, i=counter)
goes_on = layers.less_than(counter, limit)
loop = layers.While(goes_on)
embedding, inner = values(words, width), [values(width, width), values(width, width)]
outer, zero = values(width, words, scale=2.0), fluid.ParamAttr(initializer=fluid.initializer.Constant(0.0))
with loop.block():
    pre_ids, pre_score = layers.array_read(ids, counter), layers.array_read(scores, counter)
    state = layers.sequence_expand(layers.array_read(states, counter), pre_score)
    rows = layers.embedding(pre_ids, [words, width], param_attr=embedding)
    state = layers.fc([state, rows], width, act="tanh", param_attr=inner, bias_attr=zero)
    hidden = layers.lod_reset(state, pre_score)
    chances = layers.fc(hidden, words, act="softmax", param_attr=outer, bias_attr=zero)
    best, places = layers.topk(chances, k=beam)
    totals = layers.elementwise_add(layers.log(best), layers.reshape(pre_score, [-1]), axis=0)
    found, found_scores = layers.beam_search(pre_ids, pre_score, places, totals, beam, end_id=end, level=0)
    layers.increment(counter, value=1, in_place=True)
    layers.array_write(state, array=states, i=counter)
    layers.array_write(found, array=ids, i=counter)
    layers.array_write(found_scores, array=scores, i=counter)
    is_found = layers.logical_not(layers.is_empty(found))
    layers.logical_and(layers.less_than(counter, limit), is_found, out=goes_on)
sequences, totals = layers.beam_search_decode(ids=ids, scores=scores, beam_size=beam, end_id=end)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
levels = [[1, 1], [1, 1]]
feed = {"context": np.random.RandomState(SEED).randn(2, width).astype("float32"),
        "first_ids": fluid.create_lod_tensor(np.zeros((2, 1), "int64"), levels, None),
        "first_scores": fluid.create_lod_tensor(np.ones((2, 1), "float32"), levels, None)}
for _ in range(2):
    got = exe.run(feed=feed, fetch_list=[sequences, totals], return_numpy=False)
    assert got[0].lod() == got[1].lod()
    print(json.dumps([np.array(got[0]).reshape(-1).tolist(), got[0].lod(),
                      np.array(got[1], "float64").reshape(-1).tolist()]))
"""

REFUSED = """
import fleetrun.fluid as fluid

layers = fluid.layers
ids, scores = fluid.data("ids", [-1, 1], "int64"), fluid.data("scores", [-1, 1])
for call in (lambda: layers.beam_search(ids, scores, None, scores, 2, 1),
             lambda: layers.beam_search_decode(layers.array_write(ids, 0), layers.array_write(scores, 0), 2, 1)):
    try:
        call()
    except ValueError as error:
        print(error.what)
"""

# Seed: (ids, levels, scores) of Paddle 1.8.5.
FOUND = {
    0: ([0, 1, 0, 3, 2, 4, 1, 0, 0, 2, 4, 1, 0, 2, 4, 1, 0, 2, 4, 4, 1, 0, 2, 0, 3, 2, 4, 1],
        [[0, 3, 6], [0, 2, 7, 12, 16, 21, 28]],
        [1, 0.26, 1, 0.202, 0.2, 0.116, 0.069, 1, -2.438, -2.593, -2.832, -3.081, 1, 0.894, 0.72, 0.488,
         1, 0.894, 0.72, -1.188, -1.201, 1, 0.894, -1.019, -1.176, -1.179, -1.233, -1.268]),
    3: ([0, 1, 0, 3, 4, 4, 1, 0, 3, 4, 1, 0, 3, 2, 4, 1, 0, 3, 2, 1, 0, 2, 4, 1],
        [[0, 3, 6], [0, 2, 7, 11, 16, 20, 24]],
        [1, 0.685, 1, -0.393, -0.674, -0.968, -0.983, 1, -0.393, -0.674, -2.161,
         1, 0.976, 0.961, 0.901, 0.889, 1, 0.976, 0.961, -2.504, 1, -3.047, -3.069, -3.103]),
}


@pytest.mark.parametrize("seed", FOUND)
def test_a_decoder_finds_the_sequences_of_paddle(run, seed):
    lines = [json.loads(line) for line in run(DECODER.replace("SEED", str(seed))).stdout.splitlines()]
    assert len(lines) == 2 and lines[0] == lines[1]
    ids, levels, scores = FOUND[seed]
    assert lines[0][:2] == [ids, levels]
    assert lines[0][2] == pytest.approx(scores, abs=6e-4)


def test_variables_without_groups_are_refused(run):
    first, second = run(REFUSED).stdout.splitlines()
    assert first == "fluid.layers.beam_search: ids has no groups of sequences"
    assert second.startswith("fluid.layers.beam_search_decode: the first ids of its array have no groups")


def test_sequences_of_unknown_width_are_copied_in_a_loop(run):
    run("""
import numpy as np
import fleetrun.fluid as fluid
from fleetrun.static.groups import groups_of

layers = fluid.layers
ids = fluid.data("ids", [None, None], "int64", lod_level=2)
rows = fluid.data("rows", [None, 2], "float32")
step, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
found = []

def body(step, rows):
    again = layers.lod_reset(rows + 1.0, ids)
    found.append(groups_of(again) is not None)
    return layers.increment(step, 1, in_place=False), again

end = layers.while_loop(lambda step, rows: layers.less_than(step, layers.reduce_sum(limit)), body, [step, rows])
pooled = layers.sequence_pool(layers.lod_reset(end[1], ids), "sum")
exe = fluid.Executor()
lod = fluid.create_lod_tensor(np.zeros((3, 1), "int64"), [[2], [1, 2]], fluid.CPUPlace())
(out,) = exe.run(feed={"ids": lod, "rows": np.ones((3, 2), "float32")}, fetch_list=[pooled])
assert np.array_equal(out, [[3, 3], [6, 6]]), out
assert found and all(found)
""")
