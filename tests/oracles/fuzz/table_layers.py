"""Operations that random programs draw: layers and windows. Each takes a Maker."""

import numpy as np
from table_values import operation, sigmoid, unfit


def below(x, axis):
    """x below its greatest value; deeper than 64 Paddle goes on as if it were 64, but not for gradients."""
    depth = x - x.max(axis, keepdims=True)
    if np.any(depth < -60):
        raise unfit()
    return depth


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x))."""
    e = np.exp(below(x, axis))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis=-1):
    """log(softmax(x))."""
    depth = below(x, axis)
    return depth - np.log(np.exp(depth).sum(axis, keepdims=True))


@operation
def shares(maker):
    """Values that add up to 1, or have a length of 1."""
    x = maker.any(least=1)
    axis, kind = maker.axis(x), maker.random.randint(0, 4)
    if kind == 0:
        maker.step(f"F.softmax({{0}}, {axis})", lambda x: softmax(x, axis), x)
    elif kind == 1:
        maker.step(f"F.log_softmax({{0}}, {axis})", lambda x: log_softmax(x, axis), x)
    elif kind == 2 and np.all(np.abs(x.array).max(axis) > 0.2):
        maker.step(
            f"F.normalize({{0}}, axis={axis})", lambda x: x / np.sqrt(np.sum(x * x, axis, keepdims=True)), x
        )
    elif kind == 3 and x.shape[axis] % 2 == 0:
        maker.step(
            f"F.glu({{0}}, {axis})", lambda x: np.split(x, 2, axis)[0] * sigmoid(np.split(x, 2, axis)[1]), x
        )
    elif kind == 4:
        y = maker.like(x.shape)
        if not all(np.all(np.abs(one.array).max(axis) > 0.2) for one in (x, y)):
            raise unfit()

        def cosine(x, y):
            return np.sum(x * y, axis) / np.sqrt(np.sum(x * x, axis) * np.sum(y * y, axis))

        maker.step(f"F.cosine_similarity({{0}}, {{1}}, axis={axis})", cosine, x, y)


@operation
def affine(maker):
    """x @ w + b, and an activation that passes join to it."""
    x = maker.any(least=2, most=3)
    m = maker.random.randint(1, 4)
    w = maker.like((x.shape[-1], m))
    if maker.flag():
        made = maker.step("F.linear({0}, {1}, {2})", lambda x, w, b: x @ w + b, x, w, maker.like((m,)))
    else:
        made = maker.step("F.linear({0}, {1})", np.matmul, x, w)
    name, reference = maker.pick(
        ("F.relu", lambda x: np.maximum(x, 0)), ("F.sigmoid", sigmoid), ("paddle.tanh", np.tanh), (None, None)
    )
    if name:
        maker.step(name + "({0})", reference, made)


@operation
def layers_of_programs(maker):
    """static.nn.fc with constant parameters."""
    x = maker.any(least=2, most=3)
    size = maker.random.randint(1, 4)
    flat = maker.random.randint(1, x.ndim - 1)
    activation, reference = maker.pick(
        (None, np.array), ("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh)
    )
    constant = "paddle.ParamAttr(initializer=paddle.nn.initializer.Constant({}))"

    def fc(x):
        rows = np.reshape(x, [*x.shape[:flat], -1])
        return reference(np.repeat(rows.sum(-1, keepdims=True) * 0.25 + 0.5, size, -1))

    maker.step(
        f"paddle.static.nn.fc({{0}}, {size}, {flat}, weight_attr={constant.format(0.25)}, "
        f"bias_attr={constant.format(0.5)}, activation={activation!r})",
        fc,
        x,
    )


@operation
def more_layers_of_programs(maker):
    """static.nn's layers with constant parameters."""
    kind = maker.random.randint(0, 4)
    half = "paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5))"
    x = maker.any(least=2, most=4)
    if kind == 0 and x.array[0].size > 1 and np.all(x.array.reshape(len(x.array), -1).std(1) > 0.2):

        def layer(x):
            rows = x.reshape(len(x), -1)
            made = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
            return (made * 0.5).reshape(x.shape)

        maker.step(f"paddle.static.nn.layer_norm({{0}}, param_attr={half})", layer, x)
    elif kind == 1:
        over = tuple(axis for axis in range(x.ndim) if axis != 1)
        if x.array.size // x.shape[1] < 2 or not np.all(x.array.std(over) > 0.2):
            raise unfit()

        def batch(x):
            mean, variance = x.mean(over, keepdims=True), x.var(over, keepdims=True)
            return (x - mean) / np.sqrt(variance + 1e-5) * 0.5

        maker.step(f"paddle.static.nn.batch_norm({{0}}, param_attr={half})", batch, x)
    elif kind == 2:
        mode = maker.pick("all", "channel", "element")
        maker.step(
            f"paddle.static.nn.prelu({{0}}, {mode!r}, param_attr={half})",
            lambda x: np.where(x > 0, x, 0.5 * x),
            x,
        )
    elif kind == 3:
        image = maker.like((1, 2, 3, 3))
        maker.step(
            f"paddle.static.nn.conv2d({{0}}, 2, 2, param_attr={half}, bias_attr={half})",
            lambda x: np.repeat(_windows(x, 2, 1, 0, 0).sum((1, 4, 5))[:, None] * 0.5 + 0.5, 2, 1),
            image,
        )
    else:
        ids = maker.leaf((maker.random.randint(1, 3), 1), 0, 3, "int64")
        maker.step(
            f"paddle.static.nn.embedding({{0}}, [4, 2], padding_idx=1, param_attr={half})",
            lambda i: np.where(i[..., None] == 1, 0.0, np.full((*i.shape, 2), 0.5)),
            ids,
        )


@operation
def lookups(maker):
    """Rows of a table."""
    rows, width = maker.random.randint(2, 4), maker.random.randint(1, 3)
    table = maker.like((rows, width))
    ids = maker.leaf(maker.shape(1, 2), 0, rows - 1, "int64")
    padding = maker.pick(None, 0)

    def look(table, ids):
        return np.where((ids == padding)[..., None] if padding is not None else False, 0.0, table[ids])

    maker.step(f"F.embedding({{1}}, {{0}}, padding_idx={padding})", look, table, ids)


@operation
def normed(maker):
    """layer_norm, batch_norm, instance_norm, prelu."""
    x = maker.any(least=2, most=4)
    kind = maker.random.randint(0, 3)
    if kind == 0:
        shape = x.shape[-1:]
        if shape[0] < 2 or not np.all(x.array.std(-1) > 0.2):
            raise unfit()

        def layer(x, w, b):
            return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b

        maker.step(
            f"F.layer_norm({{0}}, {list(shape)}, {{1}}, {{2}})",
            layer,
            x,
            maker.like(shape),
            maker.like(shape),
        )
        return
    if kind == 3:
        over = (2, 3)
        image = maker.like((maker.random.randint(1, 2), 2, 2, 2))
        if not np.all(image.array.std(over) > 0.2):
            raise unfit()

        def instance(x):
            return (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + 1e-5)

        maker.step("F.instance_norm({0})", instance, image)
        return
    channels = (x.shape[1],)
    sizes = [1, -1] + [1] * (x.ndim - 2)
    if kind == 1:
        mean, scale, bias = maker.like(channels), maker.like(channels), maker.like(channels)
        variance = maker.leaf(channels, 0.5, 1.5, parameter=False)
        mean = maker.leaf(channels, parameter=False)

        def batch(x, m, v, s, b):
            m, v, s, b = (one.reshape(sizes) for one in (m, v, s, b))
            return (x - m) / np.sqrt(v + 1e-5) * s + b

        maker.step(
            "F.batch_norm({0}, {1}, {2}, {3}, {4}, training=False)", batch, x, mean, variance, scale, bias
        )
    else:
        weight = maker.like(maker.pick(channels, (1,)))
        maker.step(
            "F.prelu({0}, {1})",
            lambda x, w: np.where(x > 0, x, x * w.reshape(sizes if w.size > 1 else [1] * x.ndim)),
            x,
            weight,
        )


def _windows(x, kernel, stride, padding, fill):
    """Windows of the last two axes. Shape: [n, c, h, w] -> [n, c, rows, columns, kernel, kernel]."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    return view[:, :, ::stride, ::stride]


@operation
def windows(maker):
    """Convolutions and pools."""
    n, c, h, w = (maker.random.randint(*one) for one in ((1, 2), (1, 2), (2, 4), (2, 4)))
    x = maker.like((n, c, h, w))
    kernel, stride, padding = (
        maker.random.randint(1, 2),
        maker.random.randint(1, 2),
        maker.random.randint(0, 1),
    )
    if padding * 2 > kernel:
        padding = 0
    kind = maker.random.randint(0, 4)
    if kind < 2:
        filters = maker.like((maker.random.randint(1, 3), c, kernel, kernel))

        def convolved(x, f):
            return np.einsum("nchwij,ocij->nohw", _windows(x, kernel, stride, padding, 0), f)

        if kind:
            maker.step(f"F.conv2d({{0}}, {{1}}, None, {stride}, {padding})", convolved, x, filters)
        else:
            maker.step(
                f"F.conv2d({{0}}, {{1}}, {{2}}, {stride}, {padding})",
                lambda x, f, b: convolved(x, f) + b.reshape(1, -1, 1, 1),
                x,
                filters,
                maker.like(filters.shape[:1]),
            )
    elif kind == 2:
        maker.step(
            f"F.max_pool2d({{0}}, {kernel}, {stride}, {padding})",
            lambda x: _windows(x, kernel, stride, padding, -np.inf).max((-1, -2)),
            x,
        )
    elif kind == 3:

        def averaged(x):
            counted = _windows(np.ones_like(x), kernel, stride, padding, 0).sum((-1, -2))
            return _windows(x, kernel, stride, padding, 0).sum((-1, -2)) / counted

        maker.step(f"F.avg_pool2d({{0}}, {kernel}, {stride}, {padding})", averaged, x)
    else:
        line = maker.like((n, c, w))
        if maker.flag():
            maker.step("F.max_pool1d({0}, 2, 1)", lambda x: np.maximum(x[..., 1:], x[..., :-1]), line)
        elif maker.flag():
            maker.step("F.avg_pool1d({0}, 2, 1)", lambda x: (x[..., 1:] + x[..., :-1]) / 2, line)
        else:
            maker.step(
                "F.conv1d({0}, {1})",
                lambda x, f: np.einsum("ncw,oc->now", x, f[..., 0]),
                line,
                maker.like((2, c, 1)),
            )


def _spread(x, filters, stride):
    """Each value times its filters, `stride` apart: [n, c, h, w], [c, o, k, k] -> [n, o, high, wide]."""
    (n, _, h, w), (_, o, high, wide) = x.shape, filters.shape
    result = np.zeros((n, o, (h - 1) * stride + high, (w - 1) * stride + wide))
    for i, j in np.ndindex(h, w):
        at = result[:, :, i * stride : i * stride + high, j * stride : j * stride + wide]
        at += np.einsum("nc,coyx->noyx", x[:, :, i, j], filters)
    return result


@operation
def spread_and_volumes(maker):
    """Transposed convolutions, and those of volumes."""
    n, c, o, stride = (maker.random.randint(1, 2) for _ in range(4))
    kind = maker.random.randint(0, 3)
    if kind == 0:
        maker.step(
            f"F.conv1d_transpose({{0}}, {{1}}, None, {stride})",
            lambda x, f: _spread(x[..., None], f[..., None], stride)[..., 0],
            maker.like((n, c, 3)),
            maker.like((c, o, 2)),
        )
    elif kind == 1:
        padding = maker.random.randint(0, 1)

        def spread(x, f):
            whole = _spread(x, f, stride)
            return whole[:, :, 1:-1, 1:-1] if padding else whole

        maker.step(
            f"F.conv2d_transpose({{0}}, {{1}}, None, {stride}, {padding})",
            spread,
            maker.like((n, c, 2, 3)),
            maker.like((c, o, 2, 2)),
        )
    elif kind == 2:

        def volumes(x, f):
            n, _, deep, h, w = x.shape
            sizes = ((size - 1) * stride + kernel for size, kernel in zip((deep, h, w), f.shape[2:]))
            result = np.zeros((n, f.shape[1], *sizes))
            for i, j in np.ndindex(deep, 2):
                result[:, :, i * stride + j] += _spread(x[:, :, i], f[:, :, j], stride)
            return result

        maker.step(
            f"F.conv3d_transpose({{0}}, {{1}}, None, {stride})",
            volumes,
            maker.like((n, c, 3, 1, 2)),
            maker.like((c, o, 2, 1, 2)),
        )
    else:

        def convolved(x, f):
            view = np.lib.stride_tricks.sliding_window_view(x, f.shape[2:], (2, 3, 4))
            return np.einsum("ncdhwijk,ocijk->nodhw", view, f)

        maker.step("F.conv3d({0}, {1})", convolved, maker.like((n, c, 2, 2, 3)), maker.like((o, c, 1, 2, 2)))


@operation
def ways(maker):
    """Decisions on the way to a class, and words of whole sequences."""
    if maker.flag():
        n, width, classes = maker.random.randint(1, 3), maker.random.randint(1, 3), maker.random.randint(2, 5)

        def cost(x, weight, label):
            length = (classes - 1).bit_length()
            place = (label + classes)[:, None] >> np.arange(length)
            nodes, code = (place >> 1) - 1, place & 1
            score = np.einsum("nlw,nw->nl", weight[np.maximum(nodes, 0)], x) * (nodes >= 0)
            return np.sum(np.log1p(np.exp(score)) - code * score, 1, keepdims=True)

        maker.step(
            f"F.hsigmoid_loss({{0}}, {{2}}, {classes}, {{1}})",
            cost,
            maker.like((n, width)),
            maker.like((classes - 1, width)),
            maker.leaf((n,), 0, classes - 1, "int64"),
        )
        return
    shape = (maker.random.randint(1, 3), maker.random.randint(1, 2), maker.random.randint(1, 3))

    def sequences(ids, parents):
        words, beam = np.empty_like(ids), np.tile(np.arange(shape[2]), (shape[1], 1))
        for step in reversed(range(shape[0])):
            words[step] = np.take_along_axis(ids[step], beam, 1)
            beam = np.take_along_axis(parents[step], beam, 1)
        return words

    ids, parents = maker.leaf(shape, 0, 9, "int64"), maker.leaf(shape, 0, shape[2] - 1, "int64")
    maker.step("F.gather_tree({0}, {1})", sequences, ids, parents)


@operation
def adaptive_pools(maker):
    """Pools that give a size."""
    name, reference = maker.pick(("avg", np.mean), ("max", np.max))
    if maker.flag():
        maker.step(
            f"F.adaptive_{name}_pool1d({{0}}, 2)",
            lambda x: np.stack([reference(part, -1) for part in np.split(x, 2, -1)], -1),
            maker.like((1, 2, 4)),
        )
    elif maker.flag():
        maker.step(
            f"F.adaptive_{name}_pool3d({{0}}, [1, 2, None])",
            lambda x: np.concatenate(
                [reference(part, (2, 3), keepdims=True) for part in np.split(x, 2, 3)], 3
            ),
            maker.like((1, 2, 3, 4, 2)),
        )
    else:
        maker.step(
            f"F.adaptive_{name}_pool2d({{0}}, 1)",
            lambda x: reference(x, (2, 3), keepdims=True),
            maker.like((2, 2, 3, 2)),
        )


@operation
def images(maker):
    """Channels and borders."""
    x = maker.like((1, 4, 2, maker.random.randint(1, 2)))
    kind = maker.random.randint(0, 3)
    if kind == 0:

        def shuffled(x):
            n, _, h, w = x.shape
            return x.reshape(n, 1, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, 1, h * 2, w * 2)

        maker.step("F.pixel_shuffle({0}, 2)", shuffled, x)
    elif kind == 1:
        maker.step(
            "F.channel_shuffle({0}, 2)",
            lambda x: x.reshape(1, 2, 2, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape),
            x,
        )
    elif kind == 2:
        maker.step("F.maxout({0}, 2)", lambda x: x.reshape(1, 2, 2, *x.shape[2:]).max(2), x)
    elif maker.flag():
        maker.step("F.zeropad2d({0}, [1, 0, 0, 1])", lambda x: np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 0)]), x)
    else:
        mode, numpys = maker.pick(("replicate", "edge"), ("constant", "constant"))
        maker.step(
            f"F.pad({{0}}, [0, 1, 1, 0], {mode!r})",
            lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 1)], mode=numpys),
            x,
        )
