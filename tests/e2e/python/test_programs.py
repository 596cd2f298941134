"""Programs that are built and run in one process: values against numpy, errors against their texts."""

import pytest

HEAD = """
import numpy as np
import fleetrun as paddle
import fleetrun.nn.functional as F
paddle.enable_static()
paddle.seed(3)
rng = np.random.default_rng(0)
exe = paddle.static.Executor(paddle.CPUPlace())
"""


def test_every_listed_name_is_there(run):
    run("""
import importlib
def walk(module):
    for name in dir(module):
        try:
            value = getattr(module, name)
        except ModuleNotFoundError as error:
            assert error.name == "torch" and module.__name__ == "fleetrun.distributed.parallel", error
            continue
        if type(value).__name__ == "module" and value.__name__.startswith("fleetrun.") and "._" not in value.__name__:
            if value.__name__ not in seen:
                seen.add(value.__name__)
                walk(value)
seen = set()
import fleetrun
walk(fleetrun)
assert {"fleetrun.nn.functional", "fleetrun.static.nn", "fleetrun.distributed.fleet.base.role_maker"} <= seen, seen
""")


def test_functions_compute_what_numpy_computes(run):
    run(HEAD + """
x = paddle.static.data("x", [None, 3])
y = paddle.static.data("y", [None, 3])
k = paddle.static.data("k", [None, 1], "int64")
X, Y = rng.uniform(0.1, 0.9, (2, 5, 3)).astype("float32")
K = rng.integers(0, 3, (5, 1))
S = np.exp(X) / np.exp(X).sum(1, keepdims=True)
Z = X * 3 - 1
pairs = {
    "arithmetic": (1 - x * y / 2 + (-x) ** 2, 1 - X * Y / 2 + X ** 2),
    "number first": (2 / x + (3 - y) * 2 - 1, 2 / X + (3 - Y) * 2 - 1),
    "methods": (x.astype("float64").astype("float32").sum(axis=1, keepdim=True), X.sum(1, keepdims=True)),
    "column": (x[:, 1:2], X[:, 1:2]),
    "index": (x[:, -1], X[:, -1]),
    "first row": (x[0], X[0]),
    "ellipsis": (x[..., 0], X[..., 0]),
    "concat": (paddle.concat([x, y], axis=1), np.concatenate([X, Y], 1)),
    "stack": (paddle.stack([x, y], axis=1), np.stack([X, Y], 1)),
    "split": (paddle.split(x, [1, -1], axis=1)[1], X[:, 1:]),
    "halves": (paddle.split(x, 3, axis=1)[2], X[:, 2:]),
    "reshape": (paddle.reshape(x, [-1, 1]), X.reshape(-1, 1)),
    "unsqueeze": (paddle.squeeze(paddle.unsqueeze(x, [1, 2]), [1]), X[:, None]),
    "transpose": (paddle.transpose(x, [1, 0]), X.T),
    "flatten": (paddle.flatten(paddle.unsqueeze(x, 0), 0, 1), X),
    "mean": (paddle.mean(x), X.mean()),
    "mean of rows": (paddle.mean(x, axis=1), X.mean(1)),
    "max": (paddle.max(x, axis=1), X.max(1)),
    "maximum": (paddle.maximum(x, y), np.maximum(X, Y)),
    "add_n": (paddle.add_n([x, y, x]), 2 * X + Y),
    "clip": (paddle.clip(x, max=0.5), X.clip(None, 0.5)),
    "log, sqrt, exp": (paddle.log(paddle.sqrt(paddle.exp(x))), X / 2),
    "tanh": (F.tanh(x), np.tanh(X)),
    "relu": (F.relu(x * 3 - 1), np.maximum(Z, 0)),
    "leaky relu": (F.leaky_relu(x * 3 - 1, 0.1), np.where(Z > 0, Z, 0.1 * Z)),
    "sigmoid": (F.sigmoid(x), 1 / (1 + np.exp(-X))),
    "softmax": (F.softmax(x), S),
    "matmul": (paddle.matmul(x, y, transpose_y=True), X @ Y.T),
    "full": (paddle.full([2, 2], 3) + paddle.ones([2, 2]) - paddle.zeros([2, 2]), np.full((2, 2), 4)),
    "like": (paddle.full_like(x, 2) + paddle.ones_like(x), np.full_like(X, 3)),
    "where": (paddle.where(paddle.less_than(x, y), x, y), np.minimum(X, Y)),
    "cast": (paddle.cast(k, "float32"), K.astype("float32")),
    "log_loss": (F.log_loss(x, y), -Y * np.log(X + 1e-4) - (1 - Y) * np.log(1 - X + 1e-4)),
    "square_error_cost": (F.square_error_cost(x, y), (X - Y) ** 2),
    "mse_loss": (F.mse_loss(x, y), ((X - Y) ** 2).mean()),
    "binary_cross_entropy": (F.binary_cross_entropy(x, y, reduction="sum"),
                             (-Y * np.log(X) - (1 - Y) * np.log(1 - X)).sum()),
    "with logits": (F.binary_cross_entropy_with_logits(x, y, reduction="none"),
                    np.log1p(np.exp(X)) - X * Y),
    "cross_entropy": (F.cross_entropy(x, k, reduction="none"), -np.log(np.take_along_axis(S, K, 1))),
    "of probabilities": (F.cross_entropy(F.softmax(x), k, use_softmax=False),
                         -np.log(np.take_along_axis(S, K, 1)).mean()),
    "softmax_with_cross_entropy": (F.softmax_with_cross_entropy(x, k, return_softmax=True)[1], S),
}
values = exe.run(feed={"x": X, "y": Y, "k": K}, fetch_list=[variable for variable, _ in pairs.values()])
for (name, (variable, expected)), value in zip(pairs.items(), values):
    assert value.shape == expected.shape, (name, value.shape, expected.shape)
    np.testing.assert_allclose(value, expected, rtol=2e-5, atol=1e-6, err_msg=name)
""")


def test_layers_have_paddles_names_and_first_values(run):
    done = run(HEAD + """
class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(400, 300)
        self.rest = paddle.nn.Sequential(paddle.nn.ReLU(), paddle.nn.Linear(
            300, 2, weight_attr=paddle.ParamAttr(name="out", initializer=paddle.nn.initializer.Normal(1.0, 0.1)),
            bias_attr=paddle.nn.initializer.Constant(0.5)))
        self.add_sublayer("table", paddle.nn.Embedding(50, 4))
    def forward(self, x):
        return self.rest(self.first(x))
net = Net()
out = net(paddle.static.data("x", [None, 400]))
print([(name, parameter.name) for name, parameter in net.named_parameters()])
print(len(net.sublayers()), [p.name for p in paddle.static.default_main_program().all_parameters()] ==
      [p.name for p in net.parameters()], paddle.static.nn.fc(out, 3, activation="relu").shape)
exe.run(paddle.static.default_startup_program())
value = lambda name: np.array(paddle.static.global_scope().find_var(name).get_tensor())
weight = value("linear_0.w_0")
limit = np.sqrt(6 / 700)
assert weight.shape == (400, 300) and abs(weight).max() <= limit
assert abs(weight.mean()) < 1e-3 and abs(weight.std() - limit / np.sqrt(3)) < 1e-3
assert (value("linear_0.b_0") == 0).all() and (value("linear_1.b_0") == 0.5).all()
assert abs(value("out").mean() - 1) < 0.02 and abs(value("out").std() - 0.1) < 0.02
X = rng.normal(size=(7, 400)).astype("float32")
got = exe.run(feed={"x": X}, fetch_list=[out])[0]
np.testing.assert_allclose(got, np.maximum(X @ weight, 0) @ value("out") + 0.5, rtol=1e-4, atol=1e-4)
""")
    assert done.stdout.splitlines() == [
        "[('first.weight', 'linear_0.w_0'), ('first.bias', 'linear_0.b_0'), ('rest.1.weight', 'out'), "
        "('rest.1.bias', 'linear_1.b_0'), ('table.weight', 'embedding_0.w_0')]",
        "5 True (-1, 3)",
    ]


def test_one_seed_gives_one_start(run):
    code = HEAD + """
paddle.seed(%d)
paddle.nn.Linear(3, 3)
exe.run(paddle.static.default_startup_program())
print(np.array(paddle.static.global_scope().find_var("linear_0.w_0").get_tensor()).tolist())
"""
    first, again, other = (run(code % seed).stdout for seed in (5, 5, 6))
    assert first == again != other


def test_metrics_agree_with_their_definitions(run):
    run(HEAD + """
p = paddle.static.data("p", [None, 2])
y = paddle.static.data("y", [None, 1], "int64")
auc, batch_auc, counters = paddle.static.auc(p, y, num_thresholds=1000)
accuracy = paddle.static.accuracy(p, y)
exe.run(paddle.static.default_startup_program())
def area(score, label):
    below = (score[label == 1][:, None] > score[label == 0][None]).mean()
    return below + (score[label == 1][:, None] == score[label == 0][None]).mean() / 2
P = rng.integers(0, 1000, (3, 40)) / 1000 + 0.0005
Y = rng.integers(0, 2, (3, 40))
for batch in range(3):
    fed = {"p": np.stack([1 - P[batch], P[batch]], 1).astype("float32"), "y": Y[batch][:, None]}
    whole, last, right, positive = exe.run(feed=fed, fetch_list=[auc, batch_auc, accuracy, counters[2]])
    assert abs(whole - area(P[:batch + 1].ravel(), Y[:batch + 1].ravel())) < 1e-6
    assert abs(last - area(P[batch], Y[batch])) < 1e-6
    assert abs(right - ((P[batch] > 0.5) == Y[batch]).mean()) < 1e-6
    assert positive.sum() == Y[:batch + 1].sum()
# Scripts set the counters back by these names, with these calls.
assert [counter.shape for counter in counters] == [(2003,), (2003,), (1, 1001), (1, 1001)]
assert [counter.name for counter in counters] == [f"_generated_var_{n}" for n in range(4)]
for counter in counters:
    tensor = paddle.static.global_scope().find_var(counter.name).get_tensor()
    tensor.set(np.zeros(tensor._get_dims()).astype("int64"), paddle.CPUPlace())
# Also those that this program has not.
empty = paddle.static.global_scope().var("auc_9.tmp_0").get_tensor()
assert (empty._get_dims(), empty.shape(), empty._is_initialized()) == ([0], [0], False)
assert abs(exe.run(feed=fed, fetch_list=[auc])[0] - area(P[2], Y[2])) < 1e-6
""")


def test_a_value_of_one_number_converts_to_it(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 3])
cost_val = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[paddle.mean(x).name])
print("step%d cost=%f" % (1, cost_val[0]), f"{cost_val[0]:.2f}", float(cost_val[0]), cost_val[0][0], cost_val)
# With axes it does so by itself, whatever numpy thinks of that.
square = paddle.reshape(paddle.sum(x), [1, 1])
(value,) = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[square])
assert value.shape == (1, 1) and "__float__" in vars(type(value)) and "%.1f" % value[0] == "6.0" and int(value) == 6
""")
    assert done.stdout == "step1 cost=1.000000 1.00 1.0 1.0 [array(1., dtype=float32)]\n"


def test_a_program_for_test_drops_nothing(run):
    run(HEAD + """
x = paddle.static.data("x", [None, 100])
dropped = paddle.nn.Dropout(0.5)(x)
test = paddle.static.default_main_program().clone(for_test=True)
X = np.ones((20, 100), "float32")
train = exe.run(feed={"x": X}, fetch_list=[dropped])[0]
assert set(np.unique(train)) == {0, 2} and 0.4 < (train == 0).mean() < 0.6
assert (exe.run(test, feed={"x": X}, fetch_list=[dropped])[0] == X).all()
""")


def test_a_program_holds_its_graph_and_others_keep_the_rest_beside_it(run):
    done = run(HEAD + """
from fleetrun.static.training import is_trained, training_of
main = paddle.static.default_main_program()
assert sorted(vars(main)) == ["_cloned_at", "_parameters", "_variables", "native", "origin", "outer", "sides"], vars(main)
x = paddle.static.data("x", [None, 2])
loader = paddle.io.DataLoader.from_generator([x], capacity=2, iterable=False)
before = main.clone(for_test=True)
loss = paddle.mean(paddle.static.nn.fc(x, 1))
paddle.optimizer.SGD().minimize(loss)
print(main.loaders == before.loaders == [loader], main.loaders is not before.loaders)
print(is_trained(main), is_trained(before), training_of(before) is training_of(main) is main.training is not None)
print(main._fleet_opt, paddle.static.Program()._fleet_opt)
try:
    main.list_var
except AttributeError as error:
    print(error)
""")
    assert done.stdout.splitlines() == ["True True", "True False True", "{} None",
                                        "fleetrun has no paddle.static.Program.list_var; did you mean "
                                        "paddle.static.Program.list_vars?"]


def test_programs_may_be_built_side_by_side(run):
    run(HEAD + """
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    x = paddle.static.data("x", [None, 2])
    total = paddle.static.create_global_var([1], 7.0, "float32", persistable=True, name="seven")
    y = paddle.sum(x) + total
assert not paddle.static.default_main_program().has_var("x") and main.has_var("x")
exe.run(startup)
assert exe.run(main, feed={"x": [[1, 2]]}, fetch_list=[y])[0] == 10
""")


@pytest.mark.parametrize("code, what", [
    ("exe.run(feed={}, fetch_list=[m])", "'x' is not fed"),
    ("exe.run(feed={'x': X.astype('float64')}, fetch_list=[m])",
     "'x' is declared float32 [-1, 3], but was fed float64 [2, 3]"),
    ("exe.run(feed={'x': X[:, :2]}, fetch_list=[m])",
     "'x' is declared float32 [-1, 3], but was fed float32 [2, 2]"),
    ("exe.run(feed={'x': X.astype('complex64')}, fetch_list=[m])",
     "an array of element type 'Zf' cannot be a tensor"),
    ("exe.run(feed={'x': X}, fetch_list=['mean'])", "the program has no variable 'mean'"),
    ("paddle.matmul(x, paddle.ones([4, 3]))", "matmul: "),
    ("paddle.static.data('w', [None], 'float16')", "data type 'float16' is not supported"),
    ("F.relu(X)", "paddle.relu: array("),
    ("paddle.mean(x, keepdim=True).backward", "fleetrun has no paddle.Tensor.backward"),
    ("bool(m > 1)", "has no value while the program is being built"),
    ("m > 1 and 0", "has no value while the program is being built"),
    ("x[0][5]", "what is picked along axis 0 lies outside of it"),
    ("F.cross_entropy(x, x, axis=2)", "there is no axis 2 in 2 dimensions"),
    ("F.cross_entropy(x, paddle.zeros([3, 1], 'int64'), weight=paddle.ones([4]))",
     "x has 3 classes, the weight fill_constant_1.tmp_0 4"),
    ("paddle.ParamAttr(learning_rate=x)", "paddle.ParamAttr(learning_rate="),
    ("paddle.optimizer.SGD(learning_rate=x)", "paddle.optimizer.SGD(learning_rate="),
    ("paddle.optimizer.Adam(grad_clip=1.0)", "paddle.optimizer.Adam(grad_clip=1.0) is not supported"),
    ("paddle.static.nn.sparse_embedding(x, [5, 5], entry=3)", "sparse_embedding(entry=3) is not an entry"),
])
def test_what_cannot_be_is_named(run, code, what):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 3])
m = paddle.mean(x)
X = np.ones((2, 3), "float32")
try:
    """ + code + """
except (paddle.Error, AttributeError) as error:
    print(error)
""")
    assert what in done.stdout


def test_a_table_may_be_added_while_another_thread_looks_for_one(run):
    """A loader's thread asks for a variable's lod_level while the script runs the program."""
    run(HEAD + """
from fleetrun._graph import SideTable
main = paddle.static.default_main_program()
x = paddle.static.data("x", [None, 2], lod_level=1)


class Slow:
    '''A table for whose name another one comes.'''

    copied = None

    @property
    def name(self):
        SideTable("other", list).of(main).append(1)
        return "slow"


main.sides = {Slow(): 1, **main.sides}
assert x.lod_level == 1 and main.slow == 1 and main.other == [1]
""")


def test_an_input_spec_is_made_of_what_there_is(run):
    run("""
import numpy
import fleetrun as paddle
spec = paddle.static.InputSpec
made = [spec.from_numpy(numpy.zeros((2, 3), "int64"), "a"),
        spec.from_tensor(paddle.static.data("x", [None, 3])), spec.from_tensor(paddle.static.data("y", [1]), "z"),
        spec([3], "float32").batch(4), spec([4, 3], "float32").unbatch()]
assert [(one.shape, one.dtype, one.name) for one in made] == [
    ((2, 3), paddle.int64, "a"), ((-1, 3), paddle.float32, "x"), ((1,), paddle.float32, "z"),
    ((4, 3), paddle.float32, None), ((3,), paddle.float32, None)]
try:
    spec([], "float32").unbatch()
except paddle.Error as error:
    assert "it has no axis" in str(error)
else:
    raise AssertionError
""")


def test_variables_say_what_they_are_as_in_paddle(run):
    run("""
import fleetrun as paddle
x = paddle.static.data("x", [None, 3])
w = paddle.create_parameter([3], "float32", attr=paddle.ParamAttr("w", trainable=False))
assert (x.grad_name, x.is_parameter, w.is_parameter) == ("x@GRAD", False, True)
assert x.to_string(True) == str(x)
""")


def test_names_that_stand_in_two_places(run):
    """In Paddle 2.6 what 1.x had stands beside what replaced it."""
    run("""
import fleetrun as paddle
import fleetrun.fluid as fluid
assert paddle.optimizer.lr.exponential_decay is fluid.layers.exponential_decay
assert paddle.nn.clip.set_gradient_clip is fluid.clip.set_gradient_clip
assert paddle.incubate.optimizer.RecomputeOptimizer is fluid.optimizer.RecomputeOptimizer
from fleetrun.static.nn.control_flow import While
assert While is fluid.layers.While
for made in (paddle.optimizer.SGD, paddle.optimizer.Momentum, paddle.optimizer.Adam, paddle.optimizer.AdamW,
             paddle.optimizer.Lamb):
    made(0.1, multi_precision=True)
lists = paddle.static.amp.bf16.AutoMixedPrecisionListsBF16(custom_fp32_list={"softmax"})
assert lists.fp32_list == {"softmax"}
""")


def test_variables_come_as_the_script_made_them(run):
    """Scripts make the feed_list of a DataFeeder of those that are fed. Those of a copy come by name, as in
    Paddle."""
    run("""
import numpy as np
import fleetrun.fluid as fluid
pixel, label, aux = (fluid.data(name, [None, 2]) for name in ("pixel", "label", "aux"))
loss = fluid.layers.mean(pixel - label)
main = fluid.default_main_program()
copy = main.clone(for_test=True)
fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(pixel, 1)))
def fed(variables):
    return [each.name for each in variables if each.is_data]
for _ in range(2):
    assert fed(main.list_vars()) == fed(main.global_block().vars.values()) == ["pixel", "label", "aux"]
    assert fed(copy.list_vars()) == ["aux", "label", "pixel"]
feeder = fluid.DataFeeder([each for each in main.list_vars() if each.is_data])
assert np.array(feeder.feed([([1, 1], [2, 2], [3, 3])])["aux"]).tolist() == [[3, 3]]
""")
