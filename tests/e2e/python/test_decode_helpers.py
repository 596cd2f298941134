"""BasicDecoder of Paddle 1.8 and its helpers. The numbers are Paddle 1.8.5's."""

import pytest

HEAD = """
import numpy as np
import fleetrun.fluid as fluid

layers = fluid.layers

def attr(name, values):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.NumpyArrayInitializer(values))

drawn = np.random.RandomState(0)
words, outs = drawn.randn(7, 4).astype("float32"), drawn.randn(4, 7).astype("float32")
drawn = np.random.RandomState(1)
first = layers.data("first", [4])
feed = {"first": drawn.randn(3, 4).astype("float32")}
cell = layers.GRUCell(4, param_attr=fluid.ParamAttr(name="g", initializer=fluid.initializer.Constant(0.3)))

def embedding(ids):
    return fluid.embedding(ids, [7, 4], param_attr=attr("emb", words))

def output(x):
    return layers.fc(x, 7, len(x.shape) - 1, attr("out", outs), False)

def expect(helper, sums, **more):
    decoder = layers.BasicDecoder(cell, helper, output_fn=output)
    made, states, lengths = layers.dynamic_decode(decoder, inits=first, return_length=True, **more)
    pairs = fluid.backward.append_backward(layers.reduce_sum(layers.square(made.cell_outputs)))
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    fetched = executor.run(feed=feed, fetch_list=[made.cell_outputs, made.sample_ids, states, lengths,
                                                  *(gradient for _, gradient in pairs)])
    fetched = [np.asarray(array) for array in fetched]
    np.testing.assert_allclose([array.sum() for array in fetched[:len(sums)]], sums, rtol=2e-4, atol=2e-3)
    return fetched
"""


@pytest.mark.parametrize("time_major", [False, True])
def test_training_takes_its_inputs_from_the_outside(run, time_major):
    run(HEAD + f"""
feed.update(ids=drawn.randint(0, 7, (3, 5)), n=np.array([5, 2, 3]))
ids, n = fluid.data("ids", [None, 5], "int64"), fluid.data("n", [None], "int64")
inputs = embedding(ids)
inputs = layers.transpose(inputs, [1, 0, 2]) if {time_major} else inputs
fetched = expect(layers.TrainingHelper(inputs, n, {time_major}),
                 [-6.879, 24.0, 3.104, 10.0, 209.164, -56.607, 217.919, 24.499, 149.805, -26.031])
assert fetched[3].tolist() == [5, 2, 3] and fetched[1].shape == (3, 5)
""")


def test_greedy_steps_go_on_with_their_own_words(run):
    run(HEAD + """
feed["start"] = np.array([1, 2, 3])
fetched = expect(layers.GreedyEmbeddingHelper(embedding, fluid.data("start", [None], "int64"), 5),
                 [-39.741, 20.0, 7.409, 21.0], max_step_num=6)
assert fetched[1][0].tolist() == [0, 1, 1, 1, 1, 1, 1]
""")


def test_drawn_words_are_the_likeliest_ones_where_it_is_cold(run):
    run(HEAD + """
feed["start"] = np.array([1, 2, 3])
helper = layers.SampleEmbeddingHelper(embedding, fluid.data("start", [None], "int64"), 5, 1e-4)
expect(helper, [-39.741, 20.0, 7.409, 21.0], max_step_num=6)
""")
