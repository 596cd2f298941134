"""grad_clip where gradients are sent to tables, and where it is refused. What it does to parameters:
tests/oracles/names/training.py."""

import pytest

HEAD = """
import numpy as np
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor()
scope = paddle.static.global_scope()
x = paddle.static.data("x", [None, 2])
ids = paddle.static.data("ids", [None, 1], "int64")
zero = paddle.nn.initializer.Constant(0.0)
w = paddle.create_parameter([2, 1], "float32", attr=paddle.ParamAttr(name="w", initializer=zero))
"""


def test_tables_get_clipped_gradients(run):
    run(HEAD + """
from fleetrun import _native
rows = paddle.static.nn.sparse_embedding(ids, [10, 1], param_attr=paddle.ParamAttr(name="rows", initializer=zero))
loss = paddle.sum(paddle.matmul(x, w)) + paddle.sum(rows)
paddle.optimizer.SGD(1.0, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)).distribute(loss, None, "async", True)
exe.run(paddle.static.default_startup_program())
training = loss.program.training
client = _native.make_in_process("async", training.plan.tables())
for parameter, table, width in training.dense_entries():
    client.set_dense(table, np.zeros(width, dtype="float32"))
training.connect(client)
exe.run(feed={"x": np.array([[3.0, 0.0], [0.0, 4.0]], "float32"), "ids": np.array([[7], [7]])})
# Gradients 3 and 4 of w, and 1 + 1 of row 7: their norm is sqrt(29).
training.pull_dense(scope.native)
np.testing.assert_allclose(np.array(scope.find_var("w").get_tensor()).ravel(), np.array([-3, -4]) / 29 ** 0.5, rtol=1e-6)
table = [entry.table.id for entry in training.plan.entries() if entry.parameter == "rows"][0]
np.testing.assert_allclose(np.asarray(client.pull_rows(table, [7], 1)).ravel(), [-2 / 29 ** 0.5], rtol=1e-6)
""")


@pytest.mark.parametrize("clip", ["ClipGradByGlobalNorm(1.0)", "ClipGradByNorm(0.5)",
                                  "ClipGradByValue(0.25)"])
def test_replicas_clip_the_mean_of_their_gradients(run, clip):
    run(HEAD + """
v = paddle.create_parameter([2, 1], "float32", attr=paddle.ParamAttr(name="v", initializer=zero))
loss = paddle.mean(paddle.matmul(x, w) * 2.0 - paddle.matmul(x, v))
paddle.optimizer.SGD(1.0, grad_clip=paddle.nn.{clip}).minimize(loss)
moved = []
batch = np.array([[3.0, 0.0], [0.0, 4.0], [-1.0, 2.0], [5.0, 1.0]], "float32")
for count in (1, 2, 4):
    exe.run(paddle.static.default_startup_program())
    program = paddle.static.CompiledProgram(loss.program).with_data_parallel(loss_name=loss.name, places=paddle.static.cpu_places(count))
    exe.run(program, feed={"x": batch})
    moved.append([np.array(scope.find_var(name).get_tensor()).ravel() for name in "wv"])
np.testing.assert_allclose(moved[1:], [moved[0]] * 2, rtol=1e-6)
assert abs(moved[0][0]).max() > 0
""".replace("{clip}", clip))


@pytest.mark.parametrize("way", [
    "w.gradient_clip_attr = clip",
    "paddle.fluid.clip.set_gradient_clip(clip, param_list=['w'])",
    "paddle.fluid.clip.set_gradient_clip(clip, param_list=[w])",
])
def test_parameters_with_a_clip_of_their_own_are_clipped_alone(run, way):
    run(HEAD + """
clip = paddle.fluid.clip.GradientClipByGlobalNorm(1.0)
attr = paddle.fluid.ParamAttr(name="v", initializer=zero)
assert attr.gradient_clip is None and paddle.fluid.ParamAttr(gradient_clip=clip).gradient_clip is clip
v = paddle.create_parameter([2, 1], "float32", attr=attr)
{way}
paddle.optimizer.SGD(1.0).minimize(paddle.sum(paddle.matmul(x, w) + paddle.matmul(x, v)))
exe.run(paddle.static.default_startup_program())
exe.run(feed={"x": np.array([[3.0, 4.0]], "float32")})
moved = [np.array(scope.find_var(name).get_tensor()).ravel() for name in "wv"]
np.testing.assert_allclose(moved, [[-0.6, -0.8], [-3.0, -4.0]], rtol=1e-6)
""".replace("{way}", way))


@pytest.mark.parametrize("code, told", [
    ('w.gradient_clip_attr = paddle.nn.ClipGradByNorm(1.0); attr = paddle.ParamAttr("v", gradient_clip='
     'paddle.nn.ClipGradByNorm(2.0)); v = paddle.create_parameter([2, 1], "float32", attr=attr); '
     "paddle.optimizer.SGD(1.0).minimize(paddle.sum(paddle.matmul(x, w) + paddle.matmul(x, v)))",
     "the gradient_clip of w is not that of v"),
    ("paddle.optimizer.SGD(1.0, grad_clip=0.5)", "paddle.optimizer.SGD(grad_clip=0.5) is not supported"),
    ("paddle.optimizer.SGD(1.0, grad_clip=paddle.nn.ClipGradByNorm(0.0)).minimize(loss)",
     "the norm to clip to is not above 0"),
    ("paddle.optimizer.SGD(1.0, grad_clip=paddle.nn.ClipGradByNorm(1.0)).minimize(in_table()); replicas()",
     "grad_clip on 2 replicas of a program with tables"),
    ("paddle.optimizer.Lamb(1.0).minimize(in_table())",
     "no table is trained by lamb: its step needs the norm of a whole parameter"),
])
def test_what_cannot_be_clipped_is_named(run, code, told):
    done = run(HEAD + f"""
loss = paddle.mean(paddle.matmul(x, w))
in_table = lambda: paddle.mean(paddle.static.nn.sparse_embedding(ids, [10, 2]))
def replicas():
    exe.run(paddle.static.default_startup_program())
    program = paddle.static.CompiledProgram(loss.program).with_data_parallel(loss_name=loss.name, places=paddle.static.cpu_places(2))
    exe.run(program, feed={{"x": np.ones((4, 2), "float32")}})
try:
    {code}
except paddle.Error as error:
    print(error)
""")
    assert told in done.stdout


def test_gradients_that_have_rows_alone_are_not_computed_with(run):
    done = run(HEAD + """
rows = paddle.static.nn.embedding(ids, [10, 2], is_sparse=True, param_attr=paddle.ParamAttr(name="rows"))
loss = paddle.sum(paddle.matmul(paddle.reshape(rows, [-1, 2]), w))
adam = paddle.optimizer.Adam(0.1)
pairs = adam.backward(loss)
try:
    adam.apply_gradients([(parameter, gradient * 2.0) for parameter, gradient in pairs])
except paddle.Error as error:
    print(error)
""")
    assert done.stdout.splitlines()[:1] == [
        "apply_gradients: the script computes with rows@GRAD, which has looked-up rows alone",
    ]


def test_an_optimizer_that_moves_rows_otherwise_wants_its_own_gradients(run):
    done = run(HEAD + """
rows = paddle.static.nn.embedding(ids, [10, 2], is_sparse=True, param_attr=paddle.ParamAttr(name="rows"))
loss = paddle.sum(paddle.matmul(paddle.reshape(rows, [-1, 2]), w))
try:
    paddle.optimizer.Adam(0.1).apply_gradients(paddle.static.append_backward(loss))
except paddle.Error as error:
    print(error)
""")
    assert done.stdout.splitlines()[:1] == [
        "apply_gradients: Adam moves looked-up rows of rows otherwise than all, and append_backward() gives "
        "a gradient of all",
    ]


def test_gradients_are_applied_once(run):
    done = run(HEAD + """
loss = paddle.sum(paddle.matmul(x, w))
sgd = paddle.optimizer.SGD(0.1)
pairs = sgd.backward(loss)
sgd.apply_gradients(pairs)
for given in (pairs, []):
    try:
        sgd.apply_gradients(given)
    except paddle.Error as error:
        print(error)
""")
    assert done.stdout.splitlines()[::2] == [
        "apply_gradients of w: the program has an optimizer already",
        "apply_gradients: no parameter has a gradient",
    ]


def test_replicas_have_no_gradients_of_the_scripts_own(run):
    done = run(HEAD + """
loss = paddle.mean(paddle.matmul(x, w))
sgd = paddle.optimizer.SGD(0.1)
pairs = sgd.backward(loss)
sgd.apply_gradients([(parameter, paddle.clip(gradient, -1.0, 1.0)) for parameter, gradient in pairs])
exe.run(paddle.static.default_startup_program())
both = paddle.static.CompiledProgram(paddle.static.default_main_program()).with_data_parallel(
    loss.name, places=paddle.static.cpu_places(2))
try:
    exe.run(both, feed={"x": np.ones((4, 2), "float32")}, fetch_list=[loss])
except paddle.Error as error:
    print(error)
""")
    assert done.stdout.startswith(
        "apply_gradients() of what the script made of its gradients, on 2 replicas: "
    )


def test_gradients_are_clipped_as_the_program_says(run):
    run(HEAD + """
loss = paddle.sum(paddle.matmul(x, w))
pairs = paddle.fluid.backward.append_backward(loss)
assert paddle.fluid.clip.append_gradient_clip_ops(pairs) == pairs, "nobody has said how"
paddle.fluid.clip.set_gradient_clip(paddle.fluid.clip.GradientClipByGlobalNorm(1.0))
pairs = paddle.fluid.clip.append_gradient_clip_ops(pairs)
paddle.fluid.optimizer.SGD(learning_rate=1.0).apply_gradients(pairs)
exe.run(paddle.static.default_startup_program())
exe.run(feed={"x": np.array([[3.0, 0.0], [0.0, 4.0]], "float32"), "ids": np.array([[7], [7]])})
np.testing.assert_allclose(np.array(scope.find_var("w").get_tensor()).ravel(), [-0.6, -0.8], rtol=1e-6)
""")


def test_rows_are_clipped_by_value_as_paddle_clips_them(run):
    """Those of one key are added up first, so that rows move as a dense table does: as in Paddle 1.8.5."""
    run(HEAD + """
for sparse in (True, False):
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        keys, y = paddle.static.data("keys", [None], "int64"), paddle.static.data("y", [None, 2])
        name = f"table{sparse}"
        start = paddle.ParamAttr(name, initializer=paddle.nn.initializer.Constant(0.1))
        rows = paddle.static.nn.embedding(keys, [6, 2], is_sparse=sparse, param_attr=start)
        clip = paddle.nn.ClipGradByValue(2.0, -1.5)
        paddle.optimizer.SGD(1.0, grad_clip=clip).minimize(paddle.sum(rows * y))
        exe.run(paddle.static.default_startup_program())
        by = np.array([[1, -1], [3, -4], [1.5, -1], [0.5, 0.25]], "float32")
        exe.run(feed={"keys": np.array([1, 3, 1, 5]), "y": by})
    wanted = np.full((6, 2), 0.1)
    wanted[[1, 3, 5]] = [[-1.9, 1.6], [-1.9, 1.6], [-0.4, -0.15]]
    np.testing.assert_allclose(scope.find_var(name).get_tensor(), wanted, atol=1e-6)
""")


def test_the_clips_of_1_x_choose_their_parameters(run):
    run("""
import numpy as np
from fleetrun import fluid

clips = [fluid.clip.GradientClipByValue(0.5, need_clip=lambda parameter: parameter.name == "b"),
         fluid.clip.GradientClipByNorm(0.5, lambda parameter: parameter.name == "b"),
         fluid.clip.GradientClipByGlobalNorm(0.5, need_clip=lambda parameter: parameter.name == "b"),
         fluid.clip.GradientClipByValue(0.5)]
for clip, moved in zip(clips, [3.0] * 3 + [0.5]):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        a, b = (fluid.layers.create_parameter([1], "float32", name=name) for name in "ab")
        loss = fluid.layers.mean(a * 3.0 + b * 4.0)
        fluid.optimizer.SGD(1.0, grad_clip=clip).minimize(loss)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        before = [fluid.global_scope().find_var(name).get_tensor() for name in "ab"]
        before = [np.array(one).item() for one in before]
        after = exe.run(fetch_list=[loss]) and [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in "ab"]
        np.testing.assert_allclose([x - y.item() for x, y in zip(before, after)], [moved, 0.5], rtol=1e-5)
""")
