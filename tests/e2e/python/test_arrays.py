"""fluid.layers: arrays that loops read and write, and variables with lod_level 2. What is expected was
printed by Paddle 1.8.5."""

import pytest

LOOP = """
import numpy as np
import fleetrun.fluid as fluid

layers = fluid.layers
x = fluid.data("x", [-1, 3], "float32")
x.stop_gradient = False
n = fluid.data("n", [1], "int64")
i = layers.fill_constant([1], "int64", 0)
array = layers.array_write(layers.scale(x, 1.0), i)
sums = layers.create_array("float32")
cond = layers.less_than(i, n)
loop = layers.While(cond)
with loop.block():
    now = layers.array_read(array, i)
    layers.array_write(layers.reduce_sum(now, dim=[1], keep_dim=True), i, array=sums)
    layers.increment(i, 1)
    layers.array_write(layers.scale(now, 2.0), i, array=array)
    layers.less_than(i, n, cond=cond)
last = layers.array_read(array, n)
first = layers.array_read(array, layers.fill_constant([1], "int64", 0))
wide, sizes = layers.tensor_array_to_tensor(array, axis=1)
stacked, ones = layers.tensor_array_to_tensor(array, axis=0, use_stack=True)
behind, rows = layers.tensor_array_to_tensor(array, axis=0)
second = layers.array_read(sums, 1)
slope = fluid.gradients([layers.reduce_sum(last) + layers.reduce_sum(second)], [x])[0]
exe = fluid.Executor(fluid.CPUPlace())
fetch = [last, first, layers.array_length(array), wide, stacked, behind, second, slope, sizes, rows]
fed = np.arange(6, dtype="float32").reshape(2, 3)
for steps in (2, 0, 3):
    got = exe.run(feed={"x": fed, "n": np.array([steps], "int64")}, fetch_list=fetch)
    powers = [fed * 2**step for step in range(steps + 1)]
    assert np.array_equal(got[0], powers[-1]) and np.array_equal(got[1], fed) and list(got[2]) == [steps + 1]
    assert np.array_equal(got[3], np.concatenate(powers, 1)) and np.array_equal(got[4], np.stack(powers))
    assert np.array_equal(got[5], np.concatenate(powers))
    assert np.array_equal(got[6], powers[1].sum(1, keepdims=True) if steps > 1 else np.zeros((0, 1)))
    assert np.array_equal(got[7], np.full((2, 3), 2.0**steps + 2.0 * (steps > 1)))
    assert list(got[8]) == [3] * (steps + 1) and list(got[9]) == [2] * (steps + 1)
"""

GROUPS = """
import numpy as np
import fleetrun.fluid as fluid

layers = fluid.layers
x = fluid.data("x", [-1, 2], "float32", lod_level=2)
ids = fluid.data("ids", [-1, 1], "int64", lod_level=2)
two, three = fluid.data("two", [-1, 1]), fluid.data("three", [-1, 1])
assert x.lod_level == 2
half = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))
rows = layers.lod_reset(layers.embedding(ids, [10, 2], param_attr=half), x)
sums = layers.sequence_pool(layers.scale(x, 2.0), "sum")
softmax = layers.sequence_softmax(layers.reduce_sum(x, 1, keep_dim=True))
fetch = [x, sums, layers.sequence_pool(sums, "max"), layers.sequence_last_step(x), rows,
         layers.sequence_pool(layers.sequence_pool(rows, "sum"), "sum"), softmax]
again = [layers.sequence_expand(two, x, ref_level=0), layers.sequence_expand(three, ids, ref_level=-1),
         layers.sequence_expand(three, ids, ref_level=1)]
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
tensor = fluid.create_lod_tensor(np.arange(14, dtype="float32").reshape(7, 2), [[2, 1], [2, 3, 2]], None)
assert tensor.lod() == [[0, 2, 3], [0, 2, 5, 7]]
assert tensor.recursive_sequence_lengths() == [[2, 1], [2, 3, 2]]
fed = {"x": tensor, "ids": fluid.create_lod_tensor(np.arange(7).reshape(7, 1), [[1, 2], [1, 1, 5]], None),
       "two": np.array([[1], [2]], "float32"), "three": np.array([[1], [2], [3]], "float32")}
got = exe.run(feed=fed, fetch_list=fetch + again, return_numpy=False)
both, outer = [[0, 2, 3], [0, 2, 5, 7]], [[0, 2, 3]]
assert [one.lod() for one in got[:7]] == [both, outer, [], outer, both, [], both]
assert np.array(got[1]).tolist() == [[4, 8], [36, 42], [44, 48]]
assert np.array(got[2]).tolist() == [[36, 42], [44, 48]]
assert np.array(got[3]).tolist() == [[2, 3], [8, 9], [12, 13]]
assert np.array(got[5]).tolist() == [[2.5, 2.5], [1, 1]]
softmaxes = [0.018, 0.982, 0.0003, 0.018, 0.9817, 0.018, 0.982]
assert np.allclose(np.array(got[6]).reshape(-1), softmaxes, atol=5e-5)
assert np.array(got[7]).reshape(-1).tolist() == [1, 1, 2]
assert [np.array(one).reshape(-1).tolist() for one in got[8:]] == [[1, 2, 3, 3, 3, 3, 3]] * 2
batch = fluid.DataFeeder([x], None).feed([([[[1, 2], [3, 4]], [[5, 6]]],), ([[[7, 8]]],)])["x"]
assert batch.lod() == [[0, 2, 3], [0, 2, 3, 4]] and np.array(batch).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]

fluid.io.save_inference_model("model", ["x"], [sums], exe)
with fluid.scope_guard(fluid.Scope()):
    program, feeds, fetches = fluid.io.load_inference_model("model", exe)
    assert feeds == ["x"]
    assert np.array_equal(exe.run(program, feed={"x": tensor}, fetch_list=fetches)[0], np.array(got[1]))

for call, text in [
    (lambda: exe.run(feed={**fed, "x": fluid.create_lod_tensor(np.ones((3, 2), "float32"), [[1, 2]], None)}),
     "x is declared with lod_level=2, and is fed a LoDTensor with 1 levels"),
    (lambda: fluid.data("y", [-1, 2], lod_level=3), "paddle.static.data('y', lod_level=3)"),
    (lambda: layers.sequence_expand(two, sums, ref_level=1), "sequence_expand(ref_level=1)"),
    (lambda: fluid.create_lod_tensor(np.ones((3, 2)), [[1], [1, 2]], None), "recursive_seq_lens adds up to"),
]:
    try:
        call()
    except ValueError as error:
        assert text in error.what, error.what
    else:
        raise AssertionError(text)
"""

CARRIED = """
import numpy as np
import fleetrun as paddle
import fleetrun.fluid as fluid

layers = fluid.layers
start = layers.data("start", [1], dtype="float32", lod_level=2)
first = layers.data("first", [1], dtype="float32", lod_level=2)
i = layers.fill_constant([1], "int64", 0)
n = layers.fill_constant([1], "int64", 2)
array = layers.array_write(start, i)
latest = layers.assign(first)
cond = layers.less_than(i, n)
loop = layers.While(cond, is_test=True)
with loop.block():
    now = layers.array_read(array, i)
    layers.increment(i, 1)
    layers.array_write(layers.scale(now, 2.0), i, array=array)
    layers.assign(layers.scale(now, 3.0), latest)
    layers.less_than(i, n, cond=cond)
exe = fluid.Executor(fluid.CPUPlace())
fed = fluid.create_lod_tensor(np.arange(3, dtype="float32").reshape(3, 1), [[1, 1], [2, 1]], None)
other = fluid.create_lod_tensor(np.ones((2, 1), "float32"), [[2], [1, 1]], None)
got = exe.run(feed={"start": fed, "first": other}, fetch_list=[layers.array_read(array, n), latest],
              return_numpy=False)
assert [one.lod() for one in got] == [[[0, 1, 2], [0, 2, 3]]] * 2
assert [np.array(one).reshape(-1).tolist() for one in got] == [[0, 4, 8], [0, 6, 12]]
"""


def test_what_is_computed_in_a_loop_cannot_be_sent_to_another_block(run):
    done = run("""
import fleetrun
import fleetrun.fluid as fluid

program = fluid.default_main_program()
program.current_block_idx = program.current_block_idx
i, n = (fluid.layers.fill_constant([1], "int64", value) for value in (0, 3))
cond = fluid.layers.less_than(i, n)
with fluid.layers.While(cond).block():
    for of in (program, fluid.default_main_program()):
        try:
            of.current_block_idx = -1
        except fleetrun.Error as error:
            print(error.what)
    fluid.layers.increment(i)
    fluid.layers.less_than(i, n, cond=cond)
""")
    assert done.stdout == "Program.current_block_idx = -1: a program has one block\n" * 2


def test_loops_read_and_write_arrays(run):
    run(LOOP)


def test_what_a_step_gives_in_place_is_there_after_the_loop(run):
    run("""
import fleetrun.fluid as fluid

layers = fluid.layers
i = layers.fill_constant([1], "int64", 0)
n = layers.fill_constant([1], "int64", 10)
cond = layers.less_than(i, n)
loop = layers.While(cond)
with loop.block():
    i = layers.increment(i, value=1, in_place=True)
    layers.less_than(i, n, cond=cond)
assert fluid.Executor(fluid.CPUPlace()).run(fetch_list=[i, layers.scale(i, 2.0)]) == [[10], [20]]
""")


def test_groups_of_sequences(run):
    run(GROUPS)


@pytest.mark.parametrize("assign", ["layers.assign", "paddle.assign"])
def test_loops_carry_groups(run, assign):
    run(CARRIED.replace("layers.assign", assign))
