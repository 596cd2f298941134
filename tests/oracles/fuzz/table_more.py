"""Operations that random programs draw: values up to each, places, other sizes, sequences of labels. Each
takes a Maker."""

import functools
import itertools
import math

import numpy as np
from table_values import operation, unfit, within


def gamma_log(x):
    """The logarithm of the gamma function."""
    return np.vectorize(math.lgamma, otypes=[float])(x)


def gamma_slope(x):
    """Its slope, by differences that are exact to 1e-10."""
    step = 1e-3
    near, far = (gamma_log(x + k * step) - gamma_log(x - k * step) for k in (1, 2))
    return (8 * near - far) / (12 * step)


def erf_inverse(x):
    """The inverse of the error function."""
    y = np.zeros_like(x)
    for _ in range(40):
        y = y - (np.vectorize(math.erf, otypes=[float])(y) - x) / (2 / math.sqrt(math.pi) * np.exp(-y * y))
    return y


UNARY = {
    "paddle.asin": (np.arcsin, within(-0.9, 0.9)),
    "paddle.acos": (np.arccos, within(-0.9, 0.9)),
    "paddle.atan": (np.arctan, None),
    "paddle.lgamma": (gamma_log, within(0.3, 8)),
    "paddle.digamma": (gamma_slope, within(0.3, 8)),
    "paddle.erfinv": (erf_inverse, within(-0.8, 0.8)),
}


@operation
def more_unary(maker):
    """A function of each value."""
    name = maker.pick(*UNARY)
    reference, fits = UNARY[name]
    maker.step(name + "({0})", reference, maker.any(fits=fits))


@operation
def angle(maker):
    """The angle of a point."""
    x = maker.any(least=1, fits=lambda v: np.all(np.abs(v) > 0.1))
    y = maker.like(x.shape)
    if np.any(np.abs(y.array) < 0.1) or np.any(np.abs(np.abs(y.array) - np.abs(x.array)) < 1e-3):
        raise unfit()
    maker.step("paddle.atan2({0}, {1})", np.arctan2, x, y)


def _running(x, axis, of):
    """of(the values up to each along an axis)."""
    moved = np.moveaxis(x, axis, -1)
    made = np.stack([of(moved[..., : k + 1]) for k in range(moved.shape[-1])], -1)
    return np.moveaxis(made, -1, axis)


@operation
def running(maker):
    """Values up to each along an axis."""
    x = maker.any(least=1, fits=within(-8, 8))
    axis, kind = maker.axis(x), maker.random.randint(0, 3)
    if kind == 0:
        maker.step(f"paddle.cumprod({{0}}, {axis})", lambda x: np.cumprod(x, axis), x)
    elif kind == 1:
        maker.step(f"paddle.logcumsumexp({{0}}, {axis})", lambda x: np.log(np.cumsum(np.exp(x), axis)), x)
    elif kind == 2:
        if not maker.ties and len(set(x.array.flat)) < x.array.size:
            raise unfit()
        name, of = maker.pick(("cummax", np.max), ("cummin", np.min))
        maker.step(f"paddle.{name}({{0}}, {axis})[0]", lambda x: _running(x, axis, lambda v: of(v, -1)), x)
    elif x.shape[axis] > 1:
        trapezoids = functools.partial(_trapezoids, axis=axis)
        maker.step(f"paddle.cumulative_trapezoid({{0}}, dx=0.5, axis={axis})", trapezoids, x)


def _trapezoids(y, axis):
    y = np.moveaxis(y, axis, -1)
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) / 4, -1), -1, axis)


@operation
def norms_cut(maker):
    """Parts whose norm is cut."""
    x = maker.like((2, 3))
    sizes = np.sqrt((x.array**2).sum(1))
    if np.any(np.abs(sizes - 1.0) < 1e-2) or np.any(sizes < 0.1):
        raise unfit()

    def cut(x):
        size = np.sqrt((x**2).sum(1, keepdims=True))
        return np.where(size > 1.0, x / (size + 1e-7), x)

    maker.step("paddle.renorm({0}, 2.0, 0, 1.0)", cut, x)


@operation
def placed(maker):
    """Values put at places."""
    x = maker.like((3, maker.random.randint(2, 3)))
    kind, width = maker.random.randint(0, 3), x.shape[1]
    if kind == 0:
        rows = maker.leaf((1, width), 0, 2, "int64")
        reduce = maker.pick("assign", "add")

        def put(x, rows, values):
            made = x.copy()
            for k in range(width):
                made[rows[0, k], k] = values[0, k] + (made[rows[0, k], k] if reduce == "add" else 0)
            return made

        maker.step(
            f"paddle.put_along_axis({{0}}, {{1}}, {{2}}, 0, '{reduce}')", put, x, rows, maker.like((1, width))
        )
    elif kind == 1:
        rows, columns = maker.leaf((2,), 0, 2, "int64"), maker.leaf((2,), 0, width - 1, "int64")

        def added(x, rows, columns, values):
            made = x.copy()
            np.add.at(made, (rows, columns), values)
            return made

        maker.step("paddle.index_put({0}, ({1}, {2}), {3}, True)", added, x, rows, columns, maker.like((2,)))
    elif kind == 2:
        rows = maker.leaf((1,), 0, 2, "int64")

        def filled(x, rows):
            made = x.copy()
            made[rows] = 0.75
            return made

        maker.step("paddle.index_fill({0}, {1}, 0, 0.75)", filled, x, rows)
    else:
        numbers = maker.leaf((6,), 0, 5, "int64")
        maker.step(
            "paddle.cast(paddle.bincount({0}, minlength=6), 'float32')",
            lambda n: np.bincount(n, minlength=6).astype(float),
            numbers,
            flat=True,
        )


@operation
def parts_counted(maker):
    """How many values lie in each part of a range."""
    x = maker.any(least=1)
    edges = np.linspace(-2, 2, 5)
    if np.any(np.abs(x.array.reshape(-1, 1) - edges) < 1e-3):
        raise unfit()
    maker.step(
        "paddle.cast(paddle.histogram({0}, 4, -2, 2), 'float32')",
        lambda x: np.histogram(x, 4, (-2, 2))[0].astype(float),
        x,
        flat=True,
    )


def _weights(size, places, aligned):
    """The map of one axis, linear: [places, size]."""
    made = np.zeros((places, size))
    for k in range(places):
        if aligned:
            at = k * (size - 1) / (places - 1) if places > 1 else 0.0
        else:
            at = max((k + 0.5) * (size / places if places > 1 else 0.0) - 0.5, 0.0)
        first = min(int(at + 1e-6), size - 1)
        part = at - first
        made[k, first] += 1 - part
        made[k, min(first + 1, size - 1)] += part
    return made


@operation
def other_sizes(maker):
    """Pictures in another size, and their windows as columns."""
    n, c, h, w = (maker.random.randint(*one) for one in ((1, 2), (1, 2), (2, 4), (2, 4)))
    x = maker.like((n, c, h, w))
    high, wide, aligned = maker.random.randint(2, 5), maker.random.randint(2, 5), maker.flag()
    kind = maker.random.randint(0, 4)
    if kind == 0:
        name = maker.pick("interpolate", "upsample")
        maker.step(
            f"F.{name}({{0}}, [{high}, {wide}], mode='bilinear', align_corners={aligned})",
            lambda x: np.einsum(
                "nchw,Hh,Ww->ncHW", x, _weights(h, high, aligned), _weights(w, wide, aligned)
            ),
            x,
        )
    elif kind == 1:
        maker.step(
            "F.interpolate({0}, scale_factor=2, mode='nearest')", lambda x: x.repeat(2, 2).repeat(2, 3), x
        )
    elif kind == 2:

        def columns(x):
            parts = [x[:, :, i : h - 1 + i, k : w - 1 + k] for i, k in itertools.product((0, 1), (0, 1))]
            return np.stack(parts, 2).reshape(n, c * 4, -1)

        maker.step("F.unfold({0}, 2)", columns, x)
    elif kind == 3:
        y = maker.like((n, c, 4, 2))
        maker.step(
            "F.pixel_unshuffle({0}, 2)",
            lambda x: x.reshape(n, c, 2, 2, 1, 2).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * 4, 2, 1),
            y,
        )
    else:

        def response(x):
            squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
            total = sum(squares[:, k : k + c] for k in range(3))
            return x / (1 + 0.5 * total / 3) ** 0.75

        maker.step("F.local_response_norm({0}, 3, 0.5)", response, x)


@operation
def volumes(maker):
    """Pools of volumes."""
    x = maker.like((1, maker.random.randint(1, 2), 2, 4, 2))
    split = x.array.reshape(*x.shape[:2], 1, 2, 2, 2, 1, 2)
    if not maker.ties and len(set(x.array.flat)) < x.array.size:
        raise unfit()
    name, of = maker.pick(("max", np.max), ("avg", np.mean))
    maker.step(
        f"F.{name}_pool3d({{0}}, 2)", lambda v: of(v.reshape(split.shape), (3, 5, 7)), x
    )


def _alignments(logits, labels):
    """-log of the chance of all alignments of one sequence, by trying each."""
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        if [k for k, _ in itertools.groupby(path) if k] == list(labels):
            total += np.prod([chances[t, k] for t, k in enumerate(path)])
    return -np.log(total)


@operation
def sequences_of_labels(maker):
    """The loss of labels without places."""
    x = maker.leaf((3, 2, 3), -2, 2, parameter=True)
    labels = maker.leaf((2, 1), 1, 2, "int64")
    reduction = maker.pick("sum", "mean")

    def loss(x, labels):
        losses = [_alignments(x[:, i], labels[i]) for i in range(2)]
        return np.sum(losses) if reduction == "sum" else np.mean(losses)

    lengths = [f"paddle.full([2], {size}, 'int64')" for size in (3, 1)]
    text = f"F.ctc_loss({{0}}, paddle.cast({{1}}, 'int32'), {', '.join(lengths)}, reduction='{reduction}')"
    maker.step(text, loss, x, labels)


@operation
def margins(maker):
    """Losses with margins and variances."""
    if maker.flag():
        x, y = maker.like((3, 2)), maker.leaf((3, 2), parameter=False)
        variance = maker.leaf((3, 2), 0.3, 2.0)

        def gaussian(x, y, v):
            return np.mean(0.5 * (np.log(v) + (x - y) ** 2 / v))

        maker.step("F.gaussian_nll_loss({0}, {1}, {2})", gaussian, x, y, variance)
        return
    x, label = maker.leaf((3, 4)), maker.leaf((3,), 0, 3, "int64")
    distances = 1.0 - np.take_along_axis(x.array, label.array[:, None], 1) + x.array
    if np.any(np.abs(distances) < 1e-2):
        raise unfit()

    def margin(x, label):
        rows = np.arange(3)
        apart = np.maximum(1.0 - x[rows, label][:, None] + x, 0)
        apart[rows, label] = 0
        return np.mean(apart.mean(1))

    maker.step("F.multi_margin_loss({0}, {1})", margin, x, label)


@operation
def several_places(maker):
    """Parts at places of several axes, or of one behind the first."""
    x = maker.any(least=2)
    n = maker.random.randint(1, 3)
    places = [[maker.random.randrange(size) for _ in range(n)] for size in x.shape[:3]]
    first, second, last = places[0], places[1], [maker.random.randrange(x.shape[-1]) for _ in range(n)]
    kinds = [
        (f"{{0}}[{first}, {second}]", lambda x: x[first, second]),
        (f"{{0}}[:, {second}]", lambda x: x[:, second]),
        (f"{{0}}[..., {last}]", lambda x: x[..., last]),
    ]
    if x.ndim > 2:
        third = places[2]
        kinds.append((f"{{0}}[{first}, :, {third}]", lambda x: x[first, :, third]))
        kinds.append((f"{{0}}[:, {second}, {third}]", lambda x: x[:, second, third]))
    text, reference = maker.pick(*kinds)
    maker.step(text, reference, x)


@operation
def products_of_three(maker):
    """Sums of products of three factors."""
    x = maker.any(least=2, most=2)
    k, m = x.shape[1], maker.random.randint(1, 3)
    text, shapes = maker.pick(
        ("ij,jk,kl->il", ((k, m), (m, 2))),
        ("ij,jk,j->ik", ((k, m), (k,))),
        ("ij,ij,ik->jk", (x.shape, (x.shape[0], m))),
        ("ij,kj,lj->ikl", ((m, k), (2, k))),
    )
    maker.step(
        f"paddle.einsum('{text}', {{0}}, {{1}}, {{2}})",
        lambda *factors: np.einsum(text, *factors),
        x,
        *(maker.like(shape) for shape in shapes),
    )


@operation
def uneven_means(maker):
    """Means under windows that count padding, which is not the same before and behind an axis."""
    x = maker.like((maker.random.randint(1, 2), 1, *(maker.random.randint(2, 4) for _ in range(2))))
    kernel, stride = 2, maker.random.randint(1, 2)
    top, bottom, left, right = padding = [maker.random.randint(0, 1) for _ in range(4)]

    def counts(size, before, places):
        starts = np.arange(places) * stride - before
        return np.minimum(starts + kernel, size + before) - starts

    def means(x):
        padded = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
        view = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        view = view[:, :, ::stride, ::stride]
        high, wide = (
            counts(size, before, places)
            for size, before, places in zip(x.shape[2:], (top, left), view.shape[2:4])
        )
        return view.sum((-1, -2)) / np.outer(high, wide)

    maker.step(f"F.avg_pool2d({{0}}, {kernel}, {stride}, {padding}, exclusive=False)", means, x)
