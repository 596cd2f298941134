"""Programs as ONNX models: what the reference evaluator
of the package onnx computes is what Executor.run gave."""

import importlib.util

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("onnx") is None,
                                reason="the package onnx is not installed")

HEAD = """
import numpy as np
import fleetrun as paddle
import onnx
from onnx.reference import ReferenceEvaluator
paddle.enable_static()
paddle.seed(5)
exe = paddle.static.Executor()
random = np.random.default_rng(0)

def same(feeds, fetches, values, batches=(3, 1)):
    exe.run(paddle.static.default_startup_program())
    paddle.onnx.export("out/model.onnx", feeds, fetches)
    model = ReferenceEvaluator("out/model.onnx")
    test = paddle.static.default_main_program().clone(for_test=True)
    for batch in batches:
        fed = {v.name: values(v, batch) for v in feeds}
        wanted = exe.run(test, feed=fed, fetch_list=fetches)
        for fetch, expected, got in zip(fetches, wanted, model.run(None, fed)):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (fetch.name, got.shape, expected.shape)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, err_msg=fetch.name)

def normal(v, batch):
    shape = [batch if n < 0 else n for n in v.shape]
    return random.integers(0, 5, shape) if v.dtype == paddle.int64 else random.normal(size=shape).astype("float32")
"""


def test_a_network_with_an_embedding(run):
    run(HEAD + """
x = paddle.static.data("x", [None, 4])
ids = paddle.static.data("ids", [None, 3], "int64")
rows = paddle.reshape(paddle.nn.Embedding(5, 2)(ids), [-1, 6])
hidden = paddle.nn.functional.relu(paddle.nn.Linear(10, 8)(paddle.concat([x, rows], axis=1)))
hidden = paddle.nn.Dropout(0.5)(hidden)
out = paddle.nn.functional.sigmoid(paddle.nn.Linear(8, 1)(hidden))
same([x, ids], [out, hidden], normal)
# What a lookup gives may be fed instead.
fed = {"x": normal(x, 4), "ids": normal(ids, 4)}
looked_up, wanted = exe.run(paddle.static.default_main_program().clone(for_test=True), feed=fed, fetch_list=[rows, out])
paddle.onnx.export("out/dense.onnx", [x, rows], [out])
got = ReferenceEvaluator("out/dense.onnx").run(None, {"x": fed["x"], rows.name: looked_up})[0]
np.testing.assert_allclose(got, wanted, rtol=1e-5)
""")


def test_operators_one_by_one(run):
    run(HEAD + """
F = paddle.nn.functional
x = paddle.static.data("x", [None, 4])
y = paddle.static.data("y", [None, 2, 4])
z = paddle.static.data("z", [None, 4, 3])
n = paddle.static.data("n", [None, 2], "int64")
big = paddle.abs(x) + 0.5
first, rest = paddle.split(x, [1, 3], axis=1)
same([x, y, z, n], [
    paddle.tanh(x), paddle.log(big), paddle.exp(x), paddle.square(x), paddle.sqrt(big), paddle.rsqrt(big), paddle.reciprocal(big),
    paddle.log1p(big), F.leaky_relu(x, 0.2), paddle.pow(big, 1.5), paddle.scale(x, 2.0, 1.0), paddle.scale(x, 2.0, 1.0, bias_after_scale=False),
    paddle.clip(x, -0.5, 0.5), paddle.clip(x, min=0.0), paddle.cast(n, "float32"), paddle.cast(x, "int64"), paddle.full_like(x, 3.0),
    paddle.add(x, big), x - big, x * big, x / big, paddle.maximum(x, big), paddle.minimum(x, first),
    paddle.equal(n, n), paddle.not_equal(n, paddle.scale(n, 2)), paddle.less_than(x, big), paddle.greater_equal(x, big),
    paddle.where(paddle.less_than(x, paddle.zeros_like(x)), x, big),
    paddle.matmul(y, z), paddle.matmul(z, y, transpose_x=True, transpose_y=True), paddle.matmul(y, y, transpose_y=True),
    paddle.stack([x, big], axis=1), paddle.stack([x, big], axis=-1), first, rest, paddle.flatten(y), paddle.flatten(y, 1), paddle.flatten(z, 0, 1),
    paddle.reshape(y, [0, 8]), paddle.unsqueeze(x, [1, -1]), paddle.squeeze(paddle.unsqueeze(x, 2), 2), paddle.transpose(y, [2, 0, 1]),
    paddle.slice(y, [1, 2], [0, -3], [1, -1]), paddle.mean(x), paddle.sum(y, axis=1), paddle.sum(y, axis=[1, 2], keepdim=True),
    paddle.max(x, axis=1), paddle.mean(y, axis=-1), paddle.sum(x), F.softmax(y), paddle.add_n([x, big, x]), paddle.assign(x),
    F.dropout(x, 0.3, mode="downscale_in_infer"),
], normal)
""")


def test_what_cannot_be_exported_is_named(run):
    done = run(HEAD + """
x = paddle.static.data("x", [None, 4])
label = paddle.static.data("label", [None, 1], "int64")
bag = paddle.static.data("bag", [None, 1], "float32", lod_level=1)
loss = paddle.nn.functional.cross_entropy(x, label)
pooled = paddle.static.nn.sequence_pool(bag, "sum")
out = paddle.nn.Linear(4, 1)(x)
for feeds, fetches in (([x, label], [loss]), ([bag], [pooled]), ([], [paddle.exp(x)]), ([x], [out])):
    try:
        paddle.onnx.export("no.onnx", feeds, fetches)
    except paddle.Error as error:
        print(error.what)
""")
    lines = done.stdout.splitlines()
    assert [" ".join(line.split()[:2]) for line in lines] == ["paddle.onnx.export: cross_entropy,",
                                                              "paddle.onnx.export: sequence_pool,",
                                                             "paddle.onnx.export: the",
                                                             "paddle.onnx.export: linear_0.b_0"], lines
