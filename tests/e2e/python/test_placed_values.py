"""Functions that pick values, and put them back to where they were: against numpy, and their gradients
against differences."""

SCRIPT = """
import math
import numpy
import paddle

paddle.enable_static()
functional = paddle.nn.functional
executor = paddle.static.Executor(paddle.CPUPlace())
draw = numpy.random.RandomState(3)

def some(*shape):
    return draw.standard_normal(shape).astype("float32")

def run(build, *arrays):
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        inputs = [paddle.static.data(f"x{k}", list(one.shape), str(one.dtype)) for k, one in enumerate(arrays)]
        made = build(*inputs)
    fed = {f"x{k}": one for k, one in enumerate(arrays)}
    return executor.run(program, feed=fed, fetch_list=list(made) if isinstance(made, tuple) else [made])

def near(found, wanted):
    numpy.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)

def slopes(build, *arrays, inputs=1, size=1e-2):
    # The gradient of sum(cos(made)) by the first inputs, against differences in its direction.
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        given = [paddle.static.data(f"x{k}", list(one.shape), str(one.dtype)) for k, one in enumerate(arrays)]
        for one in given:
            one.stop_gradient = False
        total = paddle.sum(paddle.cos(build(*given)))
        gradients = paddle.static.gradients([total], given[:inputs])
    fed = {f"x{k}": one for k, one in enumerate(arrays)}
    for k, gradient in enumerate(executor.run(program, feed=fed, fetch_list=gradients)):
        step = size * numpy.sign(draw.standard_normal(arrays[k].shape)).astype("float32")
        ends = [executor.run(program, feed={**fed, f"x{k}": arrays[k] + side * step}, fetch_list=[total])[0]
                for side in (1, -1)]
        wanted, found = (ends[0] - ends[1]) / 2, (gradient * step).sum()
        assert abs(wanted - found) < 0.2 * size + 2e-2 * abs(wanted), (k, wanted, found)
"""

QUANTILES = SCRIPT + """
x = some(4, 5, 6)
with_nan = x.copy()
with_nan[0, 1, 2] = with_nan[3, 2, :3] = numpy.nan
for axis, axes in ((None, None), (1, 1), (-1, -1), ([0, 2], (0, 2))):
    for keep in (False, True):
        near(run(lambda v: paddle.quantile(v, [0.3, 1.0], axis, keep), x)[0],
             numpy.quantile(x, [0.3, 1.0], axes, keepdims=keep))
        near(run(lambda v: paddle.quantile(v, 0.3, axis, keep), with_nan)[0],
             numpy.quantile(with_nan, 0.3, axes, keepdims=keep))
        near(run(lambda v: paddle.nanquantile(v, 0.3, axis, keep), with_nan)[0],
             numpy.nanquantile(with_nan, 0.3, axes, keepdims=keep))
        near(run(lambda v: paddle.nanmedian(v, axis, keep), with_nan)[0],
             numpy.nanmedian(with_nan, axes, keepdims=keep))
slopes(lambda v: paddle.cast(paddle.quantile(v, 0.3, 1), "float32"), x)
slopes(lambda v: paddle.nanmedian(v, 1), x)
value, place = run(lambda v: paddle.mode(v, 1), numpy.array([[3, 1, 3, 1, 2], [2, 2, 2, 1, 0]], "float32"))
print(value.tolist(), place.tolist())
part, power = run(paddle.frexp, numpy.array([0, 1, 3.5, -0.3, 1e-3, -8], "float32"))
wanted = numpy.frexp(numpy.array([0, 1, 3.5, -0.3, 1e-3, -8], "float32"))
near(part, wanted[0])
assert power.tolist() == wanted[1].tolist()
near(run(lambda v: paddle.multigammaln(v, 2), numpy.array([3.0, 5.5], "float32"))[0],
     [0.5 * math.log(math.pi) + math.lgamma(one) + math.lgamma(one - 0.5) for one in (3.0, 5.5)])
print("ok")
"""

PLACES = SCRIPT + """
x, y = some(4, 6), some(3)
wanted = x.copy()
wanted[[2, 3][0]:4, :][[0, 1], [0, 1]] = y[:2]
found = run(lambda v, w: paddle.diagonal_scatter(v, w, -2), x, y[:2])[0]
near(found, wanted)
wanted = x.copy()
wanted[:, 4] = numpy.arange(4)
near(run(lambda v, w: paddle.select_scatter(v, w, 1, -2), x, numpy.arange(4, dtype="float32"))[0], wanted)
slopes(lambda v, w: paddle.select_scatter(v, w, 1, -2), x, some(4), inputs=2)
repeated = numpy.array([1, 1, 2, 2, 3, 1, 1, 2])
for one in run(lambda v: paddle.unique_consecutive(v, True, True), repeated):
    print(one.tolist())

image = some(2, 3, 4, 5)
unfolded = run(lambda v: functional.unfold(v, [3, 2], [2, 1], [1, 0]), image)[0]
folded = run(lambda v: functional.fold(v, [4, 5], [3, 2], [2, 1], [1, 0]), unfolded)[0]
counts = run(lambda v: functional.fold(v, [4, 5], [3, 2], [2, 1], [1, 0]), run(
    lambda v: functional.unfold(v, [3, 2], [2, 1], [1, 0]), numpy.ones_like(image))[0])[0]
near(folded, counts * image)
slopes(lambda v: functional.fold(v, [4, 5], [3, 2], [2, 1], [1, 0]), unfolded)

for pool, back, shape in (("max_pool1d", "max_unpool1d", (2, 3, 8)), ("max_pool2d", "max_unpool2d", (2, 3, 4, 6))):
    x = some(*shape)
    pooled, places = run(lambda v: getattr(functional, pool)(v, 2, return_mask=True), x)
    found = run(lambda v, w: getattr(functional, back)(v, w, 2), pooled, places)[0]
    wanted = numpy.zeros((6, x[0, 0].size), "float32")
    numpy.put_along_axis(wanted, places.reshape(6, -1).astype("int64"), pooled.reshape(6, -1), 1)
    near(found, wanted.reshape(shape))
    slopes(lambda v, w: getattr(functional, back)(v, w, 2), pooled, places)
print("ok")
"""

GRIDS = SCRIPT + """
image = some(2, 3, 4, 5)
same = numpy.tile(numpy.array([[[1, 0, 0], [0, 1, 0]]], "float32"), (2, 1, 1))
for corners in (True, False):
    def seen(v, theta, **how):
        grid = functional.affine_grid(theta, [2, 3, 4, 5], corners)
        return functional.grid_sample(v, grid, align_corners=corners, **how)

    near(run(seen, image, same)[0], image)
    near(run(lambda v, t: seen(v, t, mode="nearest"), image, same)[0], image)
    mirrored = same * numpy.array([[[-1], [1]]], "float32")
    near(run(seen, image, mirrored)[0], image[:, :, :, ::-1])
    for padding in ("zeros", "border", "reflection"):
        slopes(lambda v, t: seen(v, t, padding_mode=padding), image, same + 0.3 * some(2, 2, 3), inputs=1)
    between = numpy.array([[0.013, 0.02, 0.037], [0.017, 0.011, 0.023]], "float32")
    slopes(lambda t, v: seen(v, t), same * 0.7 + between, image, size=1e-3)
far = numpy.full((2, 1, 1, 2), 3.0, "float32")
near(run(functional.grid_sample, image, far)[0], 0)
near(run(lambda v, g: functional.grid_sample(v, g, padding_mode="border"), image, far)[0],
     image[:, :, -1:, -1:])
near(run(lambda v, g: functional.grid_sample(v, g, padding_mode="reflection"), image, far)[0],
     image[:, :, :1, :1])

clips = some(6, 4, 1, 2)
steps = clips.reshape(2, 3, 4, 1, 2)
wanted = numpy.zeros_like(steps)
wanted[:, 1:, 0], wanted[:, :-1, 1], wanted[:, :, 2:] = steps[:, :-1, 0], steps[:, 1:, 1], steps[:, :, 2:]
near(run(lambda v: functional.temporal_shift(v, 3), clips)[0], wanted.reshape(6, 4, 1, 2))
slopes(lambda v: functional.temporal_shift(v, 3), clips)
near(run(lambda v, m: paddle.incubate.softmax_mask_fuse(v, m), clips, clips)[0],
     run(lambda v: functional.softmax(v * 2.0), clips)[0])
square = some(1, 1, 3, 3)
shown = run(paddle.incubate.softmax_mask_fuse_upper_triangle, square)[0][0, 0]
near(shown[0], [1, 0, 0])
assert shown[1, 2] < 1e-20
near(shown.sum(1), 1)
print("ok")
"""

PROJECTED = """
import numpy
import paddle.fluid as fluid

layers, executor = fluid.layers, fluid.Executor(fluid.CPUPlace())
draw = numpy.random.RandomState(1)
rows, lengths = draw.standard_normal((7, 8)).astype("float32"), [2, 4, 1]
x = fluid.data("x", [None, 8], lod_level=1)
x.stop_gradient = False
states, cells = layers.dynamic_lstmp(x, 8, 3, bias_attr=fluid.ParamAttr(name="b"), is_reverse=True)
fluid.backward.append_backward(layers.reduce_sum(layers.cos(states)))
executor.run(fluid.default_startup_program())
values = {}
for name in ("lstmp_0.w_0", "lstmp_0.w_1", "b"):
    place = fluid.global_scope().find_var(name).get_tensor()
    values[name] = draw.standard_normal(numpy.array(place).shape).astype("float32") * 0.5
    place.set(values[name], fluid.CPUPlace())

def by_hand(rows):
    weight, second, bias = values["lstmp_0.w_0"], values["lstmp_0.w_1"], values["b"].reshape(7, 2)
    def squash(v):
        return 1 / (1 + numpy.exp(-v))
    states, cells, first = numpy.zeros((7, 3)), numpy.zeros((7, 2)), 0
    for length in lengths:
        state, cell = numpy.zeros(3), numpy.zeros(2)
        for k in reversed(range(first, first + length)):
            fresh, enters, stays, leaves = (rows[k] + state @ weight).reshape(4, 2) + bias[:4]
            enters, stays = squash(enters + cell * bias[4]), squash(stays + cell * bias[5])
            cell = stays * cell + enters * numpy.tanh(fresh)
            state = numpy.tanh(squash(leaves + cell * bias[6]) * numpy.tanh(cell) @ second)
            states[k], cells[k] = state, cell
        first += length
    return states, cells

fed = fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())
found = executor.run(feed={"x": fed}, fetch_list=[states, cells, "x@GRAD"], return_numpy=False)
found = [numpy.array(one) for one in found]
for one, wanted in zip(found, by_hand(rows)):
    numpy.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)
for place in ((0, 1), (3, 6), (6, 4)):
    step = numpy.zeros_like(rows, dtype="float64")
    step[place] = 1e-5
    ends = [numpy.cos(by_hand(rows + side * step)[0]).sum() for side in (1, -1)]
    assert abs(found[2][place] - (ends[0] - ends[1]) / 2e-5) < 1e-4
image = numpy.arange(2 * 4 * 2 * 4, dtype="float32").reshape(2, 4, 2, 4)
program = fluid.Program()
with fluid.program_guard(program):
    made = layers.space_to_depth(fluid.data("i", [2, 4, 2, 4]), 2)
moved = executor.run(program, feed={"i": image}, fetch_list=[made])[0]
wanted = numpy.zeros((2, 4, 8), "float32")
for c in range(4):
    for i in range(2):
        for j in range(4):
            wanted[:, i * 2 + c // 2, j * 2 + c % 2] = image[:, c, i, j]
assert (moved == wanted.reshape(2, 16, 1, 2)).all()
print("ok")
"""

REPEATED = SCRIPT + """
x, times = some(3, 2), numpy.array([2, 0, 3])
near(run(lambda v, n: paddle.repeat_interleave(v, n, 0), x, times)[0], numpy.repeat(x, times, 0))
near(run(lambda v, n: paddle.repeat_interleave(v, n), x, times[:1].astype("int32"))[0], numpy.repeat(x, 2))
slopes(lambda v, n: paddle.repeat_interleave(v, n, -2), x, times)
for equation, shapes in (("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("bi,bj,bk->bijk", [(2, 3)] * 3),
                         ("...i,ij,...j", [(2, 3), (3, 4), (2, 4)]), ("i,i,i,i->", [(3,)] * 4)):
    given = [some(*shape) for shape in shapes]
    near(run(lambda *v: paddle.einsum(equation, *v), *given)[0], numpy.einsum(equation, *given))
    slopes(lambda *v: paddle.einsum(equation, *v), *given, inputs=len(given))

def of_any_size(build, image):
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        sizes = [-1 if axis in (0, *spaces) else size for axis, size in enumerate(image.shape)]
        made = build(paddle.static.data("x", sizes))
    return executor.run(program, feed={"x": image}, fetch_list=[made])[0]

image = some(2, 8, 3, 5)
inward = image.reshape(2, 2, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 10)
turns = image.reshape(2, 4, 2, 3, 5).transpose(0, 2, 1, 3, 4).reshape(image.shape)
for form, spaces, order in (("NCHW", (2, 3), (0, 1, 2, 3)), ("NHWC", (1, 2), (0, 2, 3, 1))):
    near(of_any_size(lambda v: functional.pixel_shuffle(v, 2, form), image.transpose(order)),
         inward.transpose(order))
    near(of_any_size(lambda v: functional.channel_shuffle(v, 4, form), image.transpose(order)),
         turns.transpose(order))
print("ok")
"""

INDEXED = SCRIPT + """
x, i, j = some(4, 3, 5), numpy.array([0, 2]), numpy.array([1, 2])
both, mask = numpy.array([[0, 1], [2, 1]]), numpy.array([True, False, True])
for part in (lambda x, i, j, *_: x[i, j], lambda x, i, j, *_: x[:, i, j], lambda x, i, j, *_: x[i, :, j],
             lambda x, i, j, *_: x[i, 1:, j], lambda x, i, *_: x[1:3, i], lambda x, i, *_: x[..., i],
             lambda x, i, *_: x[i, None], lambda x, i, j, both, _: x[both, j], lambda x, i, j, both, _: x[:, both],
             lambda x, i, j, *_: x[i, j, j], lambda x, i, j, *_: x[1, i, j], lambda x, i, j, *_: x[i, 1, j],
             lambda x, *_: x[[0, 2], [1, 1]], lambda x, *_: x[:, [True, False, True]], lambda x, *_: x[[3, 0]],
             lambda x, *_: x[[[0, 1], [2, 3]]], lambda x, i, j, both, mask: x[:, mask]):
    near(run(part, x, i, j, both, mask)[0], part(x, i, j, both, mask))
    slopes(part, x, i, j, both, mask)
# Unlike numpy, Paddle picks by numbers first.
near(run(lambda x, i: x[0, :, i], x, i)[0], x[0][:, i])
assert run(lambda x, i: x[:, i], x, i[1:])[0].shape == (4, 1, 5)
near(run(lambda x, i, j: x[[i, j]], x, i, j)[0], x[numpy.stack([i, j])])
try:
    raise AssertionError(run(lambda x: x[0, x > 0], x))
except paddle.Error as error:
    assert "is not supported" in str(error)

whole = numpy.array([-3, 0, 2**40 + 1, 7])
assert run(lambda v: paddle.clip(v, 1, 2**40), whole)[0].tolist() == [1, 1, 2**40, 7]
assert run(lambda v: paddle.clip(v, max=float("inf")), whole.astype("int32"))[0].tolist() == [-3, 0, 1, 7]
low, high = numpy.array([-0.3], "float32"), numpy.array(0.4, "float32")
near(run(paddle.clip, x, low, high)[0], x.clip(-0.3, 0.4))
slopes(lambda v, *bounds: paddle.clip(v, *bounds), x, low, high)
near(run(paddle.masked_select, x, mask[:, None])[0], x[:, mask].ravel())
near(run(paddle.masked_select, x[:, :1], x > 0)[0], numpy.broadcast_to(x[:, :1], x.shape)[x > 0])
near(run(lambda v, k: paddle.take_along_axis(v, k, 1), x[0], numpy.array([[4, 0]]))[0], x[0][:, [4, 0]])
near(run(paddle.gather, x[0, 0], i[1])[0], x[0, 0, 2])
assert run(lambda v, k: paddle.gather(v, k, 1), x, i[1])[0].shape == (4, 5)
for made, shape in (([2], (1, 2, 4)), ([2, 2], (1, 2, 2, 4)), ([2, 2, 2], (1, 2, 2, 3, 2))):
    near(run(lambda v: functional.interpolate(v, made, mode="area"), numpy.ones(shape, "float32"))[0], 1)
near(run(lambda v: paddle.var(v, [0, -1]), x[0, 0])[0], x[0, 0].var(ddof=1))
program = paddle.static.Program()
with paddle.static.program_guard(program):
    free = paddle.static.data("x", [-1, 3])
    made = [paddle.std(free, 0), paddle.var(free)]
for one, wanted in zip(executor.run(program, feed={"x": x[0].T}, fetch_list=made),
                       (x[0].T.std(0, ddof=1), x[0].var(ddof=1))):
    near(one, wanted)
gap = x[0].copy()
gap[1, 2] = numpy.nan
near(run(lambda v: paddle.median(v, 1), gap)[0], numpy.median(gap, 1))
assert numpy.isnan(run(paddle.median, gap)[0])
near(run(lambda v: paddle.full([2, 3], v), x[0, 0, :1])[0], numpy.full([2, 3], x[0, 0, 0]))
assert run(paddle.full_like, whole, whole[2])[0].tolist() == [2**40 + 1] * 4
counts = numpy.array([1, 2, 30])
for function in "exp expm1 log log1p log2 log10".split():
    found = run(getattr(paddle, function), counts)[0]
    assert found.dtype == "float32"
    numpy.testing.assert_allclose(found, getattr(numpy, function)(counts), rtol=1e-6)
exact = some(3).astype("float64")
for made, wanted in ((run(paddle.ldexp, exact, i[:1])[0], numpy.ldexp(exact, 0)),
                     (run(paddle.rad2deg, exact)[0], numpy.rad2deg(exact)),
                     (run(paddle.atan2, exact, -exact ** 2)[0], numpy.arctan2(exact, -exact ** 2))):
    assert made.dtype == "float64" and numpy.abs(made - wanted).max() < 1e-13
near(run(paddle.heaviside, x[:, :1], some(3, 1))[0], numpy.heaviside(x[:, :1], x[:, :1]) * numpy.ones((3, 1)))
print("ok")
"""


def test_quantiles_medians_modes_and_exponents(run, package):
    done = run(QUANTILES, PYTHONPATH=package + "/_compat")
    assert done.stdout == "[1.0, 2.0] [3, 2]\nok\n"


def test_values_go_to_their_places(run, package):
    done = run(PLACES, PYTHONPATH=package + "/_compat")
    assert done.stdout == "[1, 2, 3, 1, 2]\n[0, 0, 1, 1, 2, 3, 3, 4]\n[2, 2, 1, 2, 1]\nok\n"


def test_images_are_looked_up_at_places(run, package):
    assert run(GRIDS, PYTHONPATH=package + "/_compat").stdout == "ok\n"


def test_a_projected_lstm_and_blocks_of_an_image(run, package):
    assert run(PROJECTED, PYTHONPATH=package + "/_compat").stdout == "ok\n"


def test_repeats_that_a_variable_says_many_factors_and_shuffles_of_any_size(run, package):
    assert run(REPEATED, PYTHONPATH=package + "/_compat").stdout == "ok\n"


def test_places_in_an_index_and_bounds_that_are_whole_or_variables(run, package):
    assert run(INDEXED, PYTHONPATH=package + "/_compat").stdout == "ok\n"


def test_the_size_of_a_variable_is_a_number_and_a_call(run):
    run("""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
x, free = paddle.static.data("x", [3, 2, 1]), paddle.static.data("free", [None, 2])
assert x.size == 6 and free.size == -1 and x.size // 2 == 3
feed = {"x": np.zeros((3, 2, 1), "float32"), "free": np.zeros((5, 2), "float32")}
sizes = paddle.static.Executor().run(feed=feed, fetch_list=[x.size(), free.size()])
assert [int(one) for one in sizes] == [6, 10] and sizes[0].shape == () and sizes[0].dtype == "int64"
""")
