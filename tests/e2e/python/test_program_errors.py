"""What is said of a program that cannot be: the operator, the shapes, and the line of the script."""

HEAD = """
import numpy as np
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor(paddle.CPUPlace())
def refused(call):
    try:
        call()
    except paddle.Error as error:
        print(error)
    else:
        raise AssertionError("no error")
"""


def test_a_shape_that_cannot_be_names_the_operator_the_shapes_and_the_line(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 3])
w = paddle.create_parameter([4, 2], "float32", name="w")
def build():
    return paddle.matmul(x, w)
refused(build)
""")
    lines = done.stdout.splitlines()
    assert lines[0] == "matmul: the inner dimensions differ: x float32 [-1, 3], w float32 [4, 2]"
    assert lines[1].endswith("script.py:17: return paddle.matmul(x, w)")
    assert lines[1].startswith("  while: ")


def test_what_is_no_variable_is_named(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 3])
for call in (lambda: paddle.matmul(x, 3), lambda: x @ "w", lambda: paddle.gather(x, 0),
             lambda: paddle.nn.functional.cross_entropy(x, 1)):
    refused(call)
""")
    assert done.stdout.splitlines()[::2] == [
        "paddle.matmul: 3 is not a variable of a program",
        "paddle.matmul: 'w' is not a variable of a program",
        "paddle.gather: 0 is not a variable of a program",
        "paddle.nn.functional.cross_entropy: 1 is not a variable of a program",
    ]


def test_bits_are_of_whole_numbers_and_bools(run):
    done = run(HEAD + """
x, n = paddle.static.data("x", [None, 3]), paddle.static.data("n", [None, 3], "int64")
for call in (lambda: x & x, lambda: ~x, lambda: n ^ n.astype("int32")):
    refused(call)
""")
    assert [line for line in done.stdout.splitlines() if not line.startswith("  while: ")] == [
        "bitwise_and: has bits of whole numbers and bools only: x float32 [-1, 3], x float32 [-1, 3]",
        "  hint: cast to int64 or bool",
        "bitwise_not: has bits of whole numbers and bools only: x float32 [-1, 3]",
        "  hint: cast to int64 or bool",
        "bitwise_xor: the types of its inputs differ: n int64 [-1, 3], cast_0.tmp_0 int32 [-1, 3]",
        "  hint: cast one to the other's type",
    ]


def test_a_shape_of_the_run_is_told_with_the_line_that_appended_the_operator(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, None])
y = paddle.static.data("y", [None, None])
total = paddle.add(x, y)
refused(lambda: exe.run(feed={"x": np.ones([2, 3], "float32"), "y": np.ones([2, 4], "float32")}, fetch_list=[total]))
""")
    lines = done.stdout.splitlines()
    assert lines[0] == "elementwise_add(x, y): shapes do not agree: [2, 3] and [2, 4]"
    assert lines[1].endswith("script.py:16: total = paddle.add(x, y)")
    assert lines[2] == "  hint: each dimension must be the same, or 1 in one of them"


def test_an_id_outside_of_its_table_is_told_with_the_line_of_a_layer(run):
    done = run(HEAD + """
ids = paddle.static.data("ids", [None, 1], "int64")
table = paddle.nn.Embedding(5, 2)
rows = table(ids)
exe.run(paddle.static.default_startup_program())
refused(lambda: exe.run(feed={"ids": np.array([[7]])}, fetch_list=[rows]))
""")
    assert done.stdout.splitlines()[0] == "id 7 in 'ids' is outside of 'embedding_0.w_0', which has 5 rows"
    assert "script.py:16: rows = table(ids)" in done.stdout


def test_a_name_used_twice_and_what_is_fed_and_fetched_amiss(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 3])
refused(lambda: paddle.static.data("x", [None, 4]))
doubled = paddle.scale(x, 2.0)
feed = np.ones([2, 3], "float32")
refused(lambda: exe.run(feed={"x": feed.astype("float64")}, fetch_list=[doubled]))
refused(lambda: exe.run(feed={"x": feed[:, :2]}, fetch_list=[doubled]))
refused(lambda: exe.run(feed={"x": feed}, fetch_list=["scale_0.tmp_1"]))
refused(lambda: exe.run(feed={}, fetch_list=[doubled]))
""")
    assert done.stdout.splitlines() == [
        "variable 'x' is there already, as float32 [-1, 3]; it cannot become float32 [-1, 4]",
        "  hint: give one of them another name",
        "'x' is declared float32 [-1, 3], but was fed float64 [2, 3]",
        "  hint: convert the values to float32",
        "'x' is declared float32 [-1, 3], but was fed float32 [2, 2]",
        "  hint: reshape the values, or declare the variable as they are",
        "the program has no variable 'scale_0.tmp_1'",
        "  hint: did you mean 'scale_0.tmp_0'?",
        "'x' is not fed",
        "  hint: feed every data variable that the program reads",
    ]


def test_chains_name_the_parameter_the_label_and_the_length_that_cannot_be(run):
    done = run(HEAD + """
layers = paddle.fluid.layers
x = paddle.static.data("x", [None, 4, 3])
label = paddle.static.data("label", [None, 4], "int64")
length = paddle.static.data("length", [None], "int64")
refused(lambda: layers.crf_decoding(x, param_attr=paddle.ParamAttr(name="chain"), length=length))
loss = layers.linear_chain_crf(x, label, param_attr=paddle.ParamAttr(name="chain"), length=length)
counts = layers.chunk_eval(label, label, "IOB", 1, seq_length=length)
refused(lambda: layers.linear_chain_crf(x, label, param_attr=paddle.ParamAttr(name="other")))
refused(lambda: layers.chunk_eval(label, label, "BIO", 1, seq_length=length))
exe.run(paddle.static.default_startup_program())
feed = {"x": np.zeros((1, 4, 3), "float32"), "label": [[0, 1, 2, 9]], "length": [3]}
pieces = [int(one[0]) for one in exe.run(feed=feed, fetch_list=list(counts[3:]))]
metric = paddle.fluid.metrics.ChunkEvaluator()
metric.update(*pieces)
metric.update(2, 0, 0)
print(pieces, [round(each, 3) for each in metric.eval()])
for changed in ({"length": [5]}, {"length": [4]}):
    refused(lambda: exe.run(feed={**feed, **changed}, fetch_list=[loss]))
""")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    assert lines[0] == "fluid.layers.crf_decoding: the program has no parameter 'chain'"
    assert lines[1:3] == ["paddle.static.nn.linear_chain_crf: x has no sequences",
                          "chunk_eval(label, label, length): there is no scheme 'BIO'"]
    assert lines[3] == "[1, 1, 1] [0.333, 1.0, 0.5]"
    assert lines[4] == "a length of 5 where there are 4"
    assert lines[5] == "label 9 in 'label' is outside of [0, 3)"
