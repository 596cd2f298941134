"""fluid.layers of Paddle 1.8 whose arguments Paddle 2 renamed: called with each name that 1.8 has, beside
NumPy."""


def test_layers_under_names_of_paddle_1_8(run):
    run("""
import numpy as np
import fleetrun.fluid as fluid

layers = fluid.layers
rng = np.random.RandomState(3)
a, b, c = (rng.randn(3, 3).astype("float32") for _ in range(3))
x, y, z = (fluid.data(name, [3, 3], "float32") for name in "xyz")
out = layers.zeros([3, 3], "float32")
cases = [
    (layers.addcmul(input=x, tensor1=y, tensor2=z, value=0.5), a + b * c * 0.5),
    (layers.addmm(input=x, x=y, y=z, alpha=2.0, beta=3.0), 3 * a + 2 * b @ c),
    (layers.addmm(x, y, z, 2.0, 3.0), 3 * a + 2 * b @ c),
    (layers.allclose(input=x, other=y, rtol=1e-3), False),
    (layers.clamp(input=x, min=-0.5, max=0.5), a.clip(-0.5, 0.5)),
    (layers.clamp(x, max=0.5), a.clip(0, 0.5)),
    (layers.clamp(x, min=-0.5), a.clip(-0.5)),
    (layers.cross(input=x, other=y, dim=1), np.cross(a, b)),
    (layers.cross(x, y), np.cross(a, b, axis=0)),
    (layers.diag(np.array([3, 4, 5], "int32")), np.diag([3, 4, 5])),
    (layers.elementwise_equal(x, x), np.full((3, 3), True)),
    (layers.flip(input=x, dims=[0, 1]), a[::-1, ::-1]),
    (layers.full([2], 3, device="cpu"), np.full(2, 3, "float32")),
    (layers.full([2], layers.fill_constant([1], "float32", 4.0), dtype="int64"), [4, 4]),
    (layers.full_like(input=x, fill_value=2, dtype="int32"), np.full((3, 3), 2)),
    (layers.index_select(input=x, index=layers.assign(np.array([2, 0])), dim=1), a[:, [2, 0]]),
    (layers.interpolate(layers.reshape(x, [1, 1, 3, 3]), [6, 6], resample="NEAREST", align_corners=False),
     a.repeat(2, 0).repeat(2, 1)[None, None]),
    (layers.kron(x, y), np.kron(a, b)),
    (layers.log1p(layers.abs(x)), np.log1p(abs(a))),
    (layers.log_softmax(x), a - np.log(np.exp(a).sum(-1, keepdims=True))),
    (layers.logsumexp(x, dim=0, keepdim=True), np.log(np.exp(a).sum(0, keepdims=True))),
    (layers.meshgrid([layers.range(0, 2, 1, "int64"), layers.range(0, 3, 1, "int64")])[1],
     [[0, 1, 2], [0, 1, 2]]),
    (layers.nonzero(input=layers.diag(np.array([3, 0, 5], "int32"))), [[0, 0], [2, 2]]),
    (layers.roll(input=x, shifts=1, dims=0), np.roll(a, 1, 0)),
    (layers.sign(np.array([3.0, 0.0, -2.0], "float32")), [1, 0, -1]),
    (layers.trace(input=x, offset=1, dim1=1, dim2=0), np.trace(a, 1, 1, 0)),
    (layers.trace(x, out=out), np.trace(a)),
    (layers.tril(input=x, diagonal=1), np.tril(a, 1)),
    (layers.triu(input=x), np.triu(a)),
]
whole = layers.randint(low=5, shape=[1000], dtype="int32")
order, drawn = layers.randperm(50), layers.randn([1000], dtype="float32")
seeded = [layers.randperm(50, seed=3), layers.randperm(50, seed=3), layers.randperm(50, seed=4)]
exe = fluid.Executor(fluid.CPUPlace())
got = exe.run(feed={"x": a, "y": b, "z": c}, fetch_list=[case[0] for case in cases] + [whole, order, drawn])
for place, (found, (_, wanted)) in enumerate(zip(got, cases)):
    assert np.allclose(found, wanted, atol=1e-5), (place, found, wanted)
assert set(got[-3]) == set(range(5)) and got[-3].dtype == np.int32
assert sorted(got[-2]) == list(range(50)) and list(got[-2]) != list(range(50))
assert abs(got[-1].mean()) < 0.2 and abs(got[-1].std() - 1) < 0.2
one, same, other = exe.run(feed={"x": a, "y": b, "z": c}, fetch_list=seeded)
again, = exe.run(feed={"x": a, "y": b, "z": c}, fetch_list=seeded[:1])
assert list(one) == list(same) == list(again) != list(other)
""")
