"""Parameters are named and numbered as in Paddle 2.6.2, and what an optimizer keeps goes on from Paddle's
files and into them."""

HEAD = """
import warnings
import numpy as np
import fleetrun as paddle
paddle.enable_static()
"""

# Names that Paddle 2.6.2 gave to this program.
NAMED = """
nn, static = paddle.nn, paddle.static
first, table = nn.Linear(2, 3, name="fc"), nn.Embedding(4, 3, name="emb")
assert [first.weight.name, first.bias.name, table.weight.name] == [
    "linear_0.w_0", "linear_0.b_0", "embedding_0.w_0"]
norm = nn.BatchNorm1D(3, name="bn")
assert [p.name for p in norm.parameters()] == [
    "batch_norm1d_0.w_0", "batch_norm1d_0.b_0", "bn_mean", "bn_variance"]
assert [p.name for p in nn.LSTM(3, 4, direction="bidirect").parameters()] == [
    f"lstm_cell_{cell}.{kind}_{number}" for cell in (0, 1) for kind in "wb" for number in (0, 1)]
assert [nn.PReLU(3, name="p")._weight.name, nn.LayerNorm(4, name="n").weight.name] == [
    "p_re_lu_0.w_0", "layer_norm_0.w_0"]
x = static.data("x", [None, 8])
picture = static.data("picture", [None, 3, 8, 8])
h = static.nn.fc(x, 4)
h = static.nn.fc(static.nn.fc([h, x], 4, name="named"), 4)
c = static.nn.conv2d(static.nn.conv2d(picture, 4, 3), 4, 3, name="cc")
static.nn.batch_norm(c, name="bb")
made = [p.name for p in static.default_main_program().all_parameters()]
assert made[-15:] == [
    "fc_0.w_0", "fc_0.b_0", "named.w_0", "named.w_1", "named.b_0", "fc_1.w_0", "fc_1.b_0", "conv2d_0.w_0",
    "conv2d_0.b_0", "cc.w_0", "cc.b_0", "bb.w_0", "bb.b_0", "bb.w_1", "bb.w_2"], made[-15:]
alone = static.nn.conv2d(picture, 6, 3, groups=3, use_cudnn=False)
static.nn.conv2d_transpose(alone, 6, filter_size=3, groups=6, use_cudnn=False)
static.nn.conv2d(picture, 6, 3, groups=3)
made = [p.name for p in static.default_main_program().all_parameters()]
assert made[-6::2] == ["depthwise_conv2d_0.w_0", "depthwise_conv2d_transpose_0.w_0", "conv2d_1.w_0"], made[-6:]
with paddle.utils.unique_name.guard("pre_"):
    assert nn.Linear(2, 3).weight.name == "pre_pre_linear_0.w_0"
"""

TRAINED = HEAD + """
x = paddle.static.data("x", [None, 8])
loss = paddle.mean(paddle.square(paddle.static.nn.fc(x, 1) - 1.0))
paddle.optimizer.Adam(learning_rate=0.05, beta1=0.8).minimize(loss)
main, scope = paddle.static.default_main_program(), paddle.static.global_scope()
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
def steps():
    return np.array(scope.find_var("fc_0.w_0_step_0").get_tensor()).tolist()
"""


def test_parameters_have_paddles_names(run):
    run(HEAD + NAMED)


def test_saved_steps_are_paddles_powers_too(run):
    run(TRAINED + """
for _ in range(4):
    exe.run(feed={"x": np.ones((2, 8), "float32")})
paddle.static.save(main, "model")
state = paddle.static.load_program_state("model")
assert np.allclose(state["fc_0.w_0_beta1_pow_acc_0"], [0.8 ** 5]) and state["learning_rate_0"].shape == ()
assert np.allclose(state["fc_0.b_0_beta2_pow_acc_0"], [0.999 ** 5]) and state["fc_0.w_0_step_0"] == [4]
exe.run(paddle.static.default_startup_program())
with warnings.catch_warnings():
    warnings.simplefilter("error")
    paddle.static.load(main, "model", exe)
assert steps() == [4]
""")


def test_the_rate_of_a_schedule_is_saved_as_paddle_has_it(run):
    run(TRAINED.replace("=0.05", "=paddle.optimizer.lr.StepDecay(0.05, 1, 0.5)") + """
exe.run(feed={"x": np.ones((2, 8), "float32")})
paddle.static.save(main, "model")
assert paddle.load("model.pdopt")["learning_rate_0"].shape == ()
for rate in (np.array(0.02, "float32"), np.array([0.02], "float32")):
    paddle.static.set_program_state(main, {"learning_rate_0": rate})
    assert np.allclose(np.array(scope.find_var("learning_rate_0").get_tensor()), 0.02)
paddle.static.load(main, "model", exe)
assert np.allclose(np.array(scope.find_var("learning_rate_0").get_tensor()), 0.05)
""")


def test_paddles_powers_are_steps(run):
    run(TRAINED + """
for count in (0, 1, 7, 900):
    powers = {f"fc_0.{one}_0_beta{n}_pow_acc_0": np.array([np.float32(beta ** (count + 1))], "float32")
              for one in "wb" for n, beta in ((1, 0.8), (2, 0.999))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paddle.static.set_program_state(main, {**powers, "learning_rate_0": np.array(0.05, "float32")})
    assert steps() == [count], (count, steps())
""")


def test_what_is_left_out_is_said(run):
    run(TRAINED + """
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    paddle.static.set_program_state(main, {"nobody.w_0": np.zeros(2, "float32")})
assert len(said) == 1
assert "no variable of these names, so they are left out: nobody.w_0" in str(said[0].message)
paddle.static.save(main, "model")
values = paddle.load("model.pdparams")
del values["fc_0.b_0"]
paddle.save(values, "model.pdparams")
try:
    paddle.static.load(main, "model", exe)
except paddle.Error as error:
    assert error.kind == "data" and "model.pdparams has no value for fc_0.b_0" in str(error)
else:
    raise AssertionError("it was loaded")
""")
