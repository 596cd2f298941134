"""Layers as scripts use them: what they refuse, the names of their parameters, and what Print prints. Their
values: test_paddle_names.py."""

import pytest

HEAD = """
import numpy as np
import fleetrun as paddle
import fleetrun.nn.functional as F
paddle.enable_static()
paddle.seed(3)
exe = paddle.static.Executor(paddle.CPUPlace())
x = paddle.static.data("x", [None, 4, 6])
image = paddle.static.data("image", [None, 4, 6, 5])
value = lambda name: np.array(paddle.static.global_scope().find_var(name).get_tensor())
"""

REFUSED = {
    'paddle.nn.Conv1D(4, 3, 3, padding_mode="reflect")':
    "paddle.nn.Conv1D(padding_mode='reflect') is not supported",
    "paddle.nn.Conv2D(4, 3, 3, groups=2)": "4 channels to 3 do not divide into 2 groups",
    "paddle.nn.Conv1D(5, 3, 3)(x)": "the input has not 5 channels",
    "paddle.nn.Conv2D(4, 3, 3)(x)": "paddle.nn.functional.conv2d: x has the shape [-1, 4, 6]",
    "paddle.nn.Conv1D(4, 3, 3, stride=[1, 2])(x)": "conv1d(stride=[1, 2]) has 2 numbers for 1 axes",
    'paddle.nn.Conv1D(4, 3, 3, padding="FULL")(x)': 'conv1d(padding="FULL"): there is no such padding',
    'paddle.nn.Conv1D(4, 3, 3, data_format="LNC")(x)': 'conv1d(data_format="LNC"): there is no such format',
    "F.max_pool1d(x, 7, 1)": "the window is larger than the padded input",
    'F.max_pool2d(image, 2, return_mask=True, data_format="NHWC")':
    "max_pool2d(return_mask=True) of NHWC is not supported",
    "paddle.nn.LayerNorm([4, 5])(x)": "layer_norm(normalized_shape=[4, 5]): x has the shape [-1, 4, 6]",
    "paddle.static.nn.layer_norm(x, begin_norm_axis=0)": "the axes from begin_norm_axis on need known sizes",
    "paddle.nn.BatchNorm2D(4)(x)": "paddle.nn.BatchNorm2D: x has the shape [-1, 4, 6]",
    "paddle.nn.BatchNorm1D(6)(x)": "the scale 'batch_norm1d_0.w_0' has not 4 values",
    'paddle.nn.BatchNorm1D(4, data_format="LNC")':
    'paddle.nn.BatchNorm1D(data_format="LNC"): there is no such format',
    "paddle.nn.PReLU(3)(x)": "the weight 'p_re_lu_0.w_0' has not 4 values",
    'paddle.static.nn.prelu(x, "some")': 'prelu(mode="some"): there is no such mode',
    "paddle.nn.GRU(5, 3)(x)": "weight_ih has not the shape [9, 6]",
    'paddle.nn.LSTM(6, 3, direction="backward")':
    'paddle.nn.LSTM(direction="backward"): there is no such direction',
    "paddle.nn.GRUCell(6, 0)": "paddle.nn.GRUCell(hidden_size=0) is not above 0",
    'paddle.nn.SimpleRNNCell(6, 3, activation="gelu")':
    'SimpleRNNCell(activation="gelu"): there is no such activation',
    "paddle.nn.RNN(paddle.nn.Linear(6, 3))": "paddle.nn.RNN(Linear) is not supported",
    "paddle.nn.MultiHeadAttention(6, 4)":
    "paddle.nn.MultiHeadAttention(embed_dim=6, num_heads=4): the width does not divide",
    "paddle.nn.MultiHeadAttention(6, 2)(x, cache=1)":
    "paddle.nn.MultiHeadAttention(cache=1) is not supported",
    'paddle.static.Print(x, print_phase="later")': "there is no print_phase 'later'",
    'paddle.static.nn.conv2d(image, 3, 3, act="swash")':
    'paddle.static.nn.conv2d(activation="swash") is not supported',
}


@pytest.mark.parametrize("call", list(REFUSED))
def test_a_layer_says_what_it_cannot_do(run, call):
    run(HEAD + f"""
try:
    {call}
except paddle.Error as error:
    assert {REFUSED[call]!r} in str(error), error
else:
    raise AssertionError("accepted")
""")


def test_a_layer_keeps_what_it_was_made_with(run):
    run(HEAD + """
class Wide(paddle.nn.Embedding):
    def __init__(self, rows):
        super().__init__(rows, embedding_dim=3)
embedding, wide = paddle.nn.Embedding(7, 4, sparse=True), Wide(5)
assert (embedding._num_embeddings, embedding._embedding_dim, embedding._sparse) == (7, 4, True)
assert (wide._num_embeddings, wide._embedding_dim, wide._padding_idx) == (5, 3, None)
assert (paddle.nn.ELU()._alpha, paddle.nn.ELU(2.0)._alpha, paddle.nn.L1Loss("sum").reduction) == (1.0, 2.0, "sum")
for layer, name in ((wide, "_rows"), (embedding, "_width"), (wide, "rows")):
    assert not hasattr(layer, name), name
""")


def test_a_global_initializer_is_of_layers_without_one_of_their_own(run):
    run(HEAD + """
of = paddle.nn.initializer
of.set_global_initializer(of.Constant(2.0), of.Constant(3.0))
first, own = paddle.nn.Linear(6, 2), paddle.nn.Linear(6, 2, weight_attr=paddle.ParamAttr(initializer=of.Constant(5.0)))
norm = paddle.nn.BatchNorm1D(4)
of.set_global_initializer(None)
last = paddle.nn.BatchNorm1D(4)
exe.run(paddle.static.default_startup_program())
for parameter, expected in ((first.weight, 2), (first.bias, 3), (own.weight, 5), (own.bias, 3), (norm.weight, 2),
                            (norm.bias, 3), (norm._mean, 0), (norm._variance, 1), (last.weight, 1), (last.bias, 0)):
    assert (value(parameter.name) == expected).all(), (parameter.name, value(parameter.name))
try:
    of.set_global_initializer(1.0)
except paddle.Error as error:
    assert "set_global_initializer(1.0) is not an initializer" in str(error)
else:
    raise AssertionError("accepted")
""")


def test_a_parameter_takes_no_variable_for_a_value(run):
    run(HEAD + """
weight = paddle.nn.Linear(300, 200).weight
try:
    weight.set_value(paddle.normal(shape=weight.shape))
except paddle.Error as error:
    assert "set_value of linear_0.w_0: " in str(error) and "is a variable, whose values only a run" in str(error)
    assert "give it an array, or the parameter an initializer (ParamAttr)" in str(error)
else:
    raise AssertionError("accepted")
""")


def test_apply_calls_for_every_layer_and_its_own_last(run):
    run(HEAD + """
net = paddle.nn.Sequential(paddle.nn.Sequential(paddle.nn.Linear(6, 2), paddle.nn.ReLU()), paddle.nn.Linear(2, 1))
seen = []
assert net.apply(lambda layer: seen.append(layer)) is net
inner, last = net[0], net[1]
assert seen == [inner[0], inner[1], inner, last, net]
assert [name for name, _ in net.named_children()] == ["0", "1"]
""")


def test_first_values_and_names_are_paddles(run):
    run(HEAD + """
conv = paddle.nn.Conv2D(4, 300, [3, 2])
gru = paddle.nn.GRU(6, 16, num_layers=2, direction="bidirect")
lstm = paddle.nn.LSTM(6, 16)
static = paddle.static.nn.batch_norm(image, moving_mean_name="mean", moving_variance_name="variance")
exe.run(paddle.static.default_startup_program())
weight = value("conv2d_0.w_0")
assert weight.shape == (300, 4, 3, 2)
# 2 / (3 * 2 * 4) is the variance; 7,200 numbers show it within a few hundredths.
assert abs(weight.var() * 12 - 1) < 0.1 and abs(weight.mean()) < 0.02, weight.var()
assert not value("conv2d_0.b_0").any()
for name, shape in (("gru_cell_0.w_0", (48, 6)), ("gru_cell_0.w_1", (48, 16)), ("gru_cell_0.b_1", (48,)),
                    ("gru_cell_3.w_0", (48, 32)), ("lstm_cell_0.w_1", (64, 16))):
    assert value(name).shape == shape, name
    assert 0.2 < abs(value(name)).max() <= 0.25, name
assert gru.weight_ih_l1_reverse.name == "gru_cell_3.w_0" and lstm.bias_hh_l0.name == "lstm_cell_0.b_1"
assert sorted(name for name, _ in lstm.named_parameters()) == ["0.cell.bias_hh", "0.cell.bias_ih", "0.cell.weight_hh",
                                                               "0.cell.weight_ih"]
assert not value("mean").any() and (value("variance") == 1).all()
assert not paddle.static.default_main_program().var("mean").trainable
""")


def test_dropout_lies_between_recurrent_layers(run):
    run(HEAD + """
paddle.static.default_main_program().random_seed = 5
out, _ = paddle.nn.GRU(6, 8, num_layers=2, dropout=0.5)(x)
assert [op.type for op in paddle.static.default_main_program().ops].count("dropout") == 1
test = paddle.static.default_main_program().clone(for_test=True)
exe.run(paddle.static.default_startup_program())
feed = {"x": np.ones((2, 4, 6), "float32"), "image": np.ones((2, 4, 6, 5), "float32")}
tested = [exe.run(test, feed=feed, fetch_list=[out])[0] for _ in range(2)]
np.testing.assert_array_equal(*tested)
assert abs(exe.run(feed=feed, fetch_list=[out])[0] - tested[0]).max() > 1e-3
""")


def test_a_weight_of_ones_stays_when_its_attribute_is_false(run):
    run(HEAD + """
cell = paddle.nn.SimpleRNNCell(6, 2, activation="relu", weight_ih_attr=False, bias_ih_attr=False)
out, _ = cell(x[:, 0])
loss = paddle.mean(out)
paddle.optimizer.SGD(1.0).minimize(loss)
exe.run(paddle.static.default_startup_program())
exe.run(feed={"x": np.ones((2, 4, 6), "float32"), "image": np.ones((2, 4, 6, 5), "float32")}, fetch_list=[loss])
assert (value(cell.weight_ih.name) == 1).all() and not value(cell.bias_ih.name).any()
assert value(cell.bias_hh.name).any()
""")


def test_print_writes_a_value_and_its_gradient(run):
    done = run("""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor(paddle.CPUPlace())
w = paddle.create_parameter([2], "float32", name="w", default_initializer=paddle.nn.initializer.Assign([0.5, -2.0]))
shown = paddle.static.Print(w, message="look", summarize=1, first_n=2)
ids = paddle.static.Print(paddle.static.data("ids", [None, 1], "int64"), print_phase="forward", print_tensor_lod=False)
loss = paddle.sum(shown * 3.0)
paddle.optimizer.SGD(0.0).minimize(loss)
exe.run(paddle.static.default_startup_program())
for _ in range(3):
    exe.run(feed={"ids": np.array([[7], [8]])}, fetch_list=[loss, ids])
""")
    value = "Variable: w\n  - message: look\n  - lod: {}\n  - place: Place(cpu)\n" \
            "  - shape: [2]\n  - layout: NCHW\n" \
            "  - dtype: float32\n  - data: [0.5]\n"
    gradient = value.replace("Variable: w", "Variable: print_0.tmp_0@GRAD").replace("[0.5]", "[3]")
    ids = ("Variable: ids\n  - place: Place(cpu)\n  - shape: [2, 1]\n  - layout: NCHW\n  - dtype: "
           "int64\n  - data: [7 8]\n")
    assert done.stdout == (value + ids + gradient) * 2 + ids


def test_print_needs_no_reader_and_keeps_the_name_when_passes_change_the_program(run):
    done = run("""
import pathlib
import fleetrun as paddle
paddle.enable_static()
pathlib.Path("part").write_text("1 3\\n1 5\\n")
x = paddle.static.data("x", [None, 1], "int64")
hidden = paddle.tanh(paddle.cast(x, "float32") * 0.0)
doubled = paddle.cast(x, "float32") * 2.0
paddle.static.Print(doubled, print_phase="forward", print_tensor_shape=False, print_tensor_layout=False)
paddle.optimizer.SGD(0.1).minimize(paddle.mean(paddle.nn.Linear(1, 1)(hidden)))
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
data = paddle.distributed.QueueDataset()
data.init(use_var=[x], pipe_command="cat", batch_size=2, thread_num=1)
data.set_filelist(["part"])
exe.train_from_dataset(paddle.static.default_main_program(), data)
print("wanted", doubled.name)
""")
    name = done.stdout.split()[-1]
    text = f"Variable: {name}\n  - lod: {{}}\n  - place: Place(cpu)\n  - dtype: float32\n  - data: [6 10]\n"
    assert done.stdout.count("Variable:") == 1 and text in done.stdout, done.stdout


def test_a_net_of_them_learns_and_is_saved(run):
    run(HEAD + """
hidden = paddle.nn.Conv1D(4, 5, 3, padding=1)(x)
hidden = paddle.nn.PReLU(5)(paddle.nn.BatchNorm1D(5)(hidden))
hidden = paddle.nn.MaxPool1D(2)(hidden)
hidden, _ = paddle.nn.LSTM(3, 4, direction="bidirect")(hidden)
hidden = paddle.nn.TransformerEncoderLayer(8, 2, 16)(paddle.nn.LayerNorm(8)(hidden))
out = paddle.nn.Linear(40, 2)(paddle.nn.Flatten()(hidden))
loss = paddle.mean(paddle.square(out - 1.0))
test = paddle.static.default_main_program().clone(for_test=True)
paddle.optimizer.Adam(0.01).minimize(loss)
exe.run(paddle.static.default_startup_program())
feed = {"x": np.random.default_rng(0).normal(size=(8, 4, 6)).astype("float32"), "image": np.ones((8, 4, 6, 5), "float32")}
losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(30)]
assert losses[-1] < losses[0] / 10, losses
wanted = exe.run(test, feed=feed, fetch_list=[out])[0]
paddle.static.save_inference_model("saved", [x], [out], exe)
with paddle.static.scope_guard(paddle.static.Scope()):
    program, feeds, fetches = paddle.static.load_inference_model("saved", exe)
    found = exe.run(program, feed={feeds[0]: feed["x"]}, fetch_list=fetches)[0]
np.testing.assert_array_equal(found, wanted)
""")


def test_functions_count_as_the_layers_that_they_count_as_in_paddle(run):
    """Else parameters behind them are not those of Paddle's checkpoints. Names: Paddle 2.6.2's."""
    run("""
import fleetrun as paddle
import fleetrun.nn.functional as F
paddle.enable_static()
x = paddle.static.data("x", [2, 4, 4, 4])
rows, label = paddle.static.data("rows", [2, 3]), paddle.static.data("label", [2, 1], "int64")
def counted(call):
    with paddle.utils.unique_name.guard():
        call()
        return [paddle.utils.unique_name.generate(kind) for kind in ("layer_norm", "instance_norm", "embedding")]
first = ["layer_norm_0", "instance_norm_0", "embedding_0"]
norm = ["layer_norm_0", "instance_norm_1", "embedding_0"]
weight = paddle.create_parameter([3, 3], "float32")
assert counted(lambda: F.instance_norm(x)) == norm
assert counted(lambda: paddle.static.nn.instance_norm(x)) == norm
assert counted(lambda: paddle.nn.GroupNorm(2, 4)(x)) == first
assert counted(lambda: paddle.static.nn.group_norm(x, 2)) == first
assert counted(lambda: paddle.static.nn.nce(rows, label, 10)) == first
assert counted(lambda: F.hsigmoid_loss(rows, label, 4, weight)) == first
""")


def test_a_window_may_reach_beyond_the_input_by_less_than_its_stride(run):
    """As googlenet's last pool does. Values and slopes were printed by Paddle 2.6.2."""
    run("""
import numpy as np
import fleetrun as paddle

functional = paddle.nn.functional
x, w = paddle.static.data("x", [-1, 2, 6, 6]), paddle.static.data("w", [3, 2, 7, 7])
x.stop_gradient = False
made = [functional.conv2d(x, w, stride=7), functional.avg_pool2d(x, 7, 7),
        functional.avg_pool2d(x, 7, 7, exclusive=False), functional.max_pool2d(x, 7, 3),
        functional.avg_pool2d(x, [7, 2], [2, 2], ceil_mode=True), functional.avg_pool2d(x, 9, 7, 1, exclusive=False)]
whole = sum(paddle.sum(one) * factor for one, factor in zip(made, (1, 1, 2, 1, 1, 3)))
slope = paddle.static.gradients([whole], [x])[0]
random = np.random.RandomState(0)
feed = {"x": random.randn(2, 2, 6, 6).astype("float32"), "w": random.randn(3, 2, 7, 7).astype("float32")}
got = paddle.static.Executor().run(feed=feed, fetch_list=[*made, slope])
assert [one.shape for one in got[:6]] == [(2, 3, 1, 1), *[(2, 2, 1, 1)] * 3, (2, 2, 1, 3), (2, 2, 1, 1)]
wanted = [46.28, 1.091, 1.091, 8.087, 3.725, 0.614, 193.705]
assert np.allclose([np.abs(one).sum() for one in got], wanted, atol=6e-4)
assert np.allclose(got[6].reshape(-1)[:4], [3.5323, 0.4068, -1.6961, -1.5595], atol=1e-4)
for layer in (lambda: functional.avg_pool2d(x, 13, 7), lambda: functional.conv2d(x, w, stride=1)):
    try:
        layer()
    except paddle.Error as error:
        assert "is larger than the padded input" in error.what
    else:
        raise AssertionError
""")
