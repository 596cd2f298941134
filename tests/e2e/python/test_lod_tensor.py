"""LoDTensors: variables with lod_level=1 that are fed and fetched by Executor.run."""

HEAD = """
import numpy as np
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor()
ids = paddle.static.data("ids", [None, 1], "float32", lod_level=1)
total = paddle.static.nn.sequence_pool(ids, "sum")
double = paddle.scale(ids, 2.0)
"""


def test_examples_of_any_length_are_fed_and_fetched(run):
    run(HEAD + """
fed = paddle.base.create_lod_tensor(np.array([[1], [2], [3]], dtype="float32"), [[2, 0, 1]], paddle.CPUPlace())
assert (fed.lod(), fed.recursive_sequence_lengths(), fed.shape()) == ([[0, 2, 2, 3]], [[2, 0, 1]], [3, 1])
got, twice = exe.run(feed={"ids": fed}, fetch_list=[total, double], return_numpy=False)
assert np.array(got).tolist() == [[3.0], [0.0], [3.0]] and got.lod() == [], got
assert np.array(twice).tolist() == [[2.0], [4.0], [6.0]] and twice.recursive_sequence_lengths() == [[2, 0, 1]], twice
again = paddle.base.LoDTensor()
again.set(np.ones((4, 1), dtype="float32"), paddle.CPUPlace())
again.set_lod([[0, 1, 4]])
assert exe.run(feed={"ids": again}, fetch_list=[total])[0].tolist() == [[1.0], [3.0]]
assert paddle.base.create_lod_tensor([[5, 6], [7]], [[2, 1]]).array.tolist() == [[5], [6], [7]]
""")


def test_values_of_tensors_one_by_one(run):
    run(HEAD + """
for tensor in (paddle.base.LoDTensor(), paddle.static.global_scope().var("kept").get_tensor()):
    tensor.set(np.array([[1.5, 2.0], [3.0, 4.0]], "float32"), paddle.CPUPlace())
    tensor._set_float_element(2, -3.5)
    assert (tensor._get_float_element(2), tensor._numel(), tensor._get_dims(), tensor.lod()) == (-3.5, 4, [2, 2], [])
    tensor._set_dims([4])
    assert np.array(tensor).tolist() == [1.5, 2.0, -3.5, 4.0]
    tensor._set_dims([3, 1])
    tensor._alloc_int(paddle.CPUPlace())
    assert (np.array(tensor).tolist(), np.array(tensor).dtype.name) == ([[0], [0], [0]], "int32")
""")


def test_what_is_repeated_along_other_axes_keeps_its_sequences(run):
    run(HEAD + """
fed = paddle.base.create_lod_tensor(np.array([[1], [2], [3]], dtype="float32"), [[2, 1]], paddle.CPUPlace())
reshape = paddle.static.nn.sequence_reshape
for wide in (paddle.tile(ids, [1, 2]), paddle.expand(ids, [-1, 2])):
    again = reshape(wide, new_dim=1)
    got = exe.run(feed={"ids": fed}, fetch_list=[again], return_numpy=False)[0]
    assert np.array(got).ravel().tolist() == [1, 1, 2, 2, 3, 3] and got.lod() == [[0, 4, 6]], got
try:
    reshape(paddle.tile(ids, [2, 1]), new_dim=1)
except paddle.Error as error:
    assert "has no sequences" in error.what, error
else:
    raise SystemExit("rows that are repeated are no sequences")
""")


def test_an_array_without_sequences_is_fed_where_none_are_asked_for(run):
    done = run("""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor()
one, other = (paddle.static.data(name, [None, 1], "float32", lod_level=1) for name in ("one", "other"))
total, double = paddle.static.nn.sequence_pool(one, "sum"), paddle.scale(other, 2.0)
fed = paddle.base.create_lod_tensor(np.ones((3, 1), "float32"), [[2, 1]])
array = np.ones((4, 1), "float32")
found = exe.run(feed={"one": fed, "other": array}, fetch_list=[total, double])
assert [each.ravel().tolist() for each in found] == [[2.0, 1.0], [2.0] * 4], found
try:
    exe.run(feed={"one": array, "other": array}, fetch_list=[total, double])
except paddle.Error as error:
    print(error.what)
""")
    assert done.stdout.strip() == "'one' is declared float32 [-1, 1], but was fed float32 [4, 1]"


def test_lengths_that_do_not_fit_are_refused(run):
    done = run(HEAD + """
def refused(call):
    try:
        call()
    except paddle.Error as error:
        print(error.what)
rows = np.ones((3, 1), dtype="float32")
refused(lambda: paddle.base.create_lod_tensor(rows, [[2, 2]]))
refused(lambda: paddle.base.create_lod_tensor(rows, [[4, -1]]))
refused(lambda: paddle.base.create_lod_tensor(rows, [[1], [4]]))
refused(lambda: paddle.base.create_lod_tensor([[1], [2, 3]], [[2, 1]]))
wrong = paddle.base.create_lod_tensor(rows, [[2, 1]])
wrong.set(rows[:2])
refused(lambda: exe.run(feed={"ids": wrong}, fetch_list=[total]))
refused(lambda: exe.run(feed={"ids": rows}, fetch_list=[total]))
""")
    assert done.stdout.splitlines() == [
        "recursive_seq_lens adds up to [4], data has 3 rows",
        "a LoDTensor with an example of -1 values",
        "recursive_seq_lens adds up to [1, 4], data has 3 rows",
        "recursive_seq_lens says [2, 1], the lists of data have [1, 2]",
        "ids is fed [2, 1] with sequences that begin and end at [0, 2, 3]",
        "'ids' is declared float32 [-1, 1], but was fed float32 [3, 1]",
    ]


def test_what_is_reduced_along_other_axes_keeps_its_sequences(run):
    run(HEAD + """
wide = paddle.concat([ids, ids + 1.0], 1)
fed = paddle.base.create_lod_tensor(np.array([[1], [3], [5]], dtype="float32"), [[2, 1]], paddle.CPUPlace())
kept = [paddle.sum(wide, axis=1, keepdim=True), paddle.max(wide, axis=-1), paddle.base.layers.reduce_mean(wide, dim=[1])]
over = paddle.sum(wide, axis=0, keepdim=True)
sums = paddle.static.nn.sequence_pool(kept[0], "sum")
*got, total, pooled = exe.run(feed={"ids": fed}, fetch_list=[*kept, over, sums], return_numpy=False)
assert [one.lod() for one in got] == [[[0, 2, 3]]] * 3 and total.lod() == [], got
assert [np.array(one).ravel().tolist() for one in got] == [[3, 7, 11], [2, 4, 6], [1.5, 3.5, 5.5]], got
assert [one.lod_level for one in (*kept, over)] == [1, 1, 1, 0]
assert np.array(pooled).tolist() == [[10.0], [11.0]], pooled
""")
