"""Operations that random programs draw: layers, losses, windows. Each takes a Maker."""

import math

import numpy as np
from table_values import operation, sigmoid, softplus, unfit


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x))."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis=-1):
    """log(softmax(x))."""
    return (
        x
        - x.max(axis, keepdims=True)
        - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True))
    )


def reduced(loss, reduction):
    """A loss, reduced."""
    return {"none": lambda: loss, "mean": lambda: np.mean(loss), "sum": lambda: np.sum(loss)}[reduction]()


def _reduction(maker):
    return maker.pick("none", "mean", "sum")


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


def _chances(maker, shape):
    return maker.leaf(shape, 0.1, 0.9)


@operation
def losses_of_two(maker):
    """Losses of a value and a target of one shape."""
    x = maker.any(least=2, most=2)
    label, how = maker.like(x.shape), _reduction(maker)
    delta = maker.pick(1.0, 0.5)

    def huber(x, y):
        far = np.abs(x - y)
        return np.where(far < delta, 0.5 * far * far, delta * far - 0.5 * delta * delta)

    text, loss = maker.pick(
        ("F.mse_loss({{0}}, {{1}}, {how!r})", lambda x, y: (x - y) ** 2),
        ("F.l1_loss({{0}}, {{1}}, {how!r})", lambda x, y: np.abs(x - y)),
        ("F.smooth_l1_loss({{0}}, {{1}}, {how!r}, {delta})", huber),
    )
    maker.step(text.format(how=how, delta=delta), lambda x, y: reduced(loss(x, y), how), x, label)


@operation
def losses_of_chances(maker):
    """Losses of probabilities and logits."""
    x, how = maker.any(least=2, most=2), _reduction(maker)
    label = maker.leaf(x.shape, 0, 1, parameter=False)
    weight = maker.leaf(x.shape[-1:], 0.5, 2.0, parameter=False)
    kind = maker.random.randint(0, 7)

    def crossed(x, y):
        return (1 - y) * x + softplus(-x)

    if kind == 0:
        maker.step(
            f"F.binary_cross_entropy_with_logits({{0}}, {{1}}, reduction={how!r})",
            lambda x, y: reduced(crossed(x, y), how),
            x,
            label,
        )
    elif kind == 1:
        maker.step(
            f"F.binary_cross_entropy_with_logits({{0}}, {{1}}, reduction={how!r}, pos_weight={{2}})",
            lambda x, y, w: reduced((1 - y) * x + (1 + (w - 1) * y) * softplus(-x), how),
            x,
            label,
            weight,
        )
    elif kind == 2:
        maker.step(
            f"F.binary_cross_entropy_with_logits({{0}}, {{1}}, {{2}}, {how!r})",
            lambda x, y, w: reduced(crossed(x, y) * w, how),
            x,
            label,
            weight,
        )
    elif kind == 3:
        p = _chances(maker, x.shape)
        maker.step(
            f"F.binary_cross_entropy({{0}}, {{1}}, reduction={how!r})",
            lambda p, y: reduced(-y * np.log(p) - (1 - y) * np.log(1 - p), how),
            p,
            label,
        )
    elif kind == 4:
        p, y = _chances(maker, (x.shape[0], 1)), maker.leaf((x.shape[0], 1), 0, 1, parameter=False)
        maker.step(
            "F.log_loss({0}, {1})", lambda p, y: -y * np.log(p + 1e-4) - (1 - y) * np.log(1 - p + 1e-4), p, y
        )
    elif kind == 5:
        # Of a label Paddle's loss gives no gradient.
        target = maker.leaf(x.shape, 0.1, 0.9, parameter=False)
        maker.step(
            f"F.kl_div({{0}}, {{1}}, {how!r})", lambda x, y: reduced(y * (np.log(y) - x), how), x, target
        )
    elif kind == 6:
        hard = maker.leaf(x.shape, 0, 1, "int64")

        def focal(x, y):
            p = sigmoid(x)
            right = p * y + (1 - p) * (1 - y)
            return reduced((0.25 * y + 0.75 * (1 - y)) * (1 - right) ** 2 * crossed(x, y), how)

        made = maker.step("paddle.cast({0}, 'float32')", lambda y: y.astype(float), hard, flat=True)
        maker.step(f"F.sigmoid_focal_loss({{0}}, {{1}}, reduction={how!r})", focal, x, made)
    else:

        def several(x, y):
            loss = y * -softplus(-x) + (1 - y) * -softplus(x)
            return reduced(-loss.mean(-1), how)

        hard = maker.leaf(x.shape, 0, 1, "int64")
        made = maker.step("paddle.cast({0}, 'float32')", lambda y: y.astype(float), hard, flat=True)
        maker.step(f"F.multi_label_soft_margin_loss({{0}}, {{1}}, reduction={how!r})", several, x, made)


@operation
def losses_of_classes(maker):
    """Losses of classes that integers say."""
    x, how = maker.any(least=2, most=2), _reduction(maker)
    n, classes = x.shape
    label = maker.leaf((n,), 0, classes - 1, "int64")
    weight = maker.leaf((classes,), 0.5, 2.0, parameter=False)
    kind = maker.random.randint(0, 7)

    def at(x, y):
        return np.take_along_axis(x, y[:, None], 1)[:, 0]

    if kind == 0:
        maker.step(
            f"F.cross_entropy({{0}}, {{1}}, reduction={how!r})",
            lambda x, y: reduced(-at(log_softmax(x), y), how),
            x,
            label,
        )
    elif kind == 1:

        def weighted(x, y, w):
            loss = -at(log_softmax(x), y) * w[y]
            return loss.sum() / w[y].sum() if how == "mean" else reduced(loss, how)

        maker.step(f"F.cross_entropy({{0}}, {{1}}, {{2}}, reduction={how!r})", weighted, x, label, weight)
    elif kind == 2:
        soft = maker.step("F.softmax({0})", softmax, maker.leaf(x.shape, parameter=False))
        maker.step(
            f"F.cross_entropy({{0}}, {{1}}, reduction={how!r}, soft_label=True)",
            lambda x, y: reduced(-np.sum(y * log_softmax(x), -1, keepdims=True), how),
            x,
            soft,
        )
    elif kind == 3:
        p = maker.step("F.softmax({0})", softmax, x)
        maker.step(
            f"F.cross_entropy({{0}}, {{1}}, reduction={how!r}, use_softmax=False)",
            lambda p, y: reduced(-np.log(at(p, y)), how),
            p,
            label,
        )
    elif kind == 4:
        column = maker.leaf((n, 1), 0, classes - 1, "int64")
        maker.step(
            "F.softmax_with_cross_entropy({0}, {1})",
            lambda x, y: -np.take_along_axis(log_softmax(x), y, 1),
            x,
            column,
        )
    elif kind == 5:
        maker.step(
            f"F.nll_loss({{0}}, {{1}}, reduction={how!r})", lambda x, y: reduced(-at(x, y), how), x, label
        )
    elif kind == 6:

        def ignored(x, y):
            loss = np.where(y == 1, 0.0, -at(log_softmax(x), y))
            kept = np.sum(y != 1)
            return loss.sum() / max(kept, 1) if how == "mean" else reduced(loss, how)

        maker.step(f"F.cross_entropy({{0}}, {{1}}, ignore_index=1, reduction={how!r})", ignored, x, label)
    else:

        def smoothed(x, y):
            target = np.eye(classes)[y] * 0.8 + 0.2 / classes
            loss = -np.sum(target * log_softmax(x), -1)
            return reduced(loss if how != "none" else loss[:, None], how)

        maker.step(
            f"F.cross_entropy({{0}}, {{1}}, label_smoothing=0.2, reduction={how!r})", smoothed, x, label
        )


@operation
def losses_of_pairs(maker):
    """Losses that compare values."""
    x, how = maker.any(least=2, most=2), _reduction(maker)
    y = maker.like(x.shape)
    signs = maker.leaf(x.shape, 0, 1, "int64")
    signs.array = signs.array * 2 - 1
    kind = maker.random.randint(0, 6)
    if kind == 0:
        made = maker.step("paddle.cast({0}, 'float32')", lambda y: y.astype(float), signs, flat=True)
        maker.step(
            f"F.margin_ranking_loss({{0}}, {{1}}, {{2}}, 0.1, {how!r})",
            lambda x, y, s: reduced(np.maximum(0, -s * (x - y) + 0.1), how),
            x,
            y,
            made,
        )
    elif kind == 1:
        made = maker.step("paddle.cast({0}, 'float32')", lambda y: y.astype(float), signs, flat=True)
        maker.step(
            f"F.hinge_embedding_loss({{0}}, {{1}}, reduction={how!r})",
            lambda x, s: reduced(np.where(s == 1, x, np.maximum(0, 1 - x)), how),
            x,
            made,
        )
    elif kind == 2:
        made = maker.step("paddle.cast({0}, 'float32')", lambda y: y.astype(float), signs, flat=True)
        maker.step(
            f"F.soft_margin_loss({{0}}, {{1}}, {how!r})",
            lambda x, s: reduced(np.log1p(np.exp(-s * x)), how),
            x,
            made,
        )
    elif kind == 3:
        maker.step(
            f"F.poisson_nll_loss({{0}}, {{1}}, reduction={how!r})",
            lambda x, y: reduced(np.exp(x) - y * x, how),
            x,
            y,
        )
    elif kind == 4:
        if not np.all(np.abs(x.array - y.array) > 0.05):
            raise unfit()
        maker.step(
            "F.pairwise_distance({0}, {1})", lambda x, y: np.sqrt(np.sum((x - y + 1e-6) ** 2, -1)), x, y
        )
    elif kind == 5:
        far = maker.leaf(x.shape, 2.5, 4.0, parameter=False)
        if not np.all(np.abs(x.array - y.array) > 0.05):
            raise unfit()

        def distance(a, b):
            return np.sqrt(np.sum((a - b + 1e-6) ** 2, -1))

        name = maker.pick("triplet_margin_loss", "triplet_margin_with_distance_loss")
        maker.step(
            f"F.{name}({{0}}, {{1}}, {{2}}, margin=1.5, reduction={how!r})",
            lambda x, y, z: reduced(np.maximum(0, distance(x, y) - distance(x, z) + 1.5), how),
            x,
            y,
            far,
        )
    else:
        label = maker.leaf((x.shape[0],), 0, 1, "int64")
        label.array = label.array * 2 - 1
        if not all(np.all(np.abs(one.array).max(-1) > 0.2) for one in (x, y)):
            raise unfit()

        def near(x, y, s):
            c = np.sum(x * y, -1) / np.sqrt((np.sum(x * x, -1) + 1e-11) * (np.sum(y * y, -1) + 1e-11))
            return reduced(np.where(s == 1, 1 - c, np.maximum(0, c - 0.2)), how)

        maker.step(f"F.cosine_embedding_loss({{0}}, {{1}}, {{2}}, 0.2, {how!r})", near, x, y, label)


@operation
def rarer_losses(maker):
    """dice_loss, npair_loss, bilinear, attention."""
    kind = maker.random.randint(0, 3)
    if kind == 0:
        x = maker.any(least=2, most=2)
        p, label = (
            maker.step("F.softmax({0})", softmax, x),
            maker.leaf((x.shape[0], 1), 0, x.shape[1] - 1, "int64"),
        )

        def dice(p, y):
            hot = np.eye(p.shape[1])[y[:, 0]]
            return np.mean(1 - 2 * np.sum(p * hot, 1) / (np.sum(p, 1) + np.sum(hot, 1) + 1e-5))

        maker.step("F.dice_loss({0}, {1})", dice, p, label)
    elif kind == 1:
        x = maker.any(least=2, most=2)
        y, label = maker.like(x.shape), maker.leaf((x.shape[0],), 0, 1, "int64")

        def pairs(x, y, k):
            same = (k[:, None] == k[None]).astype(float)
            same /= same.sum(1, keepdims=True)
            size = np.mean(np.sum(x * x, 1)) + np.mean(np.sum(y * y, 1))
            entropy = -np.sum(same * log_softmax(x @ y.T), -1, keepdims=True)
            return 0.25 * 0.002 * size + np.mean(np.sum(same * entropy, 0))

        made = maker.step("paddle.cast({0}, 'float32')", lambda y: y.astype(float), label, flat=True)
        maker.step("F.npair_loss({0}, {1}, {2})", pairs, x, y, made)
    elif kind == 2:
        x, y, w = maker.like((2, 2)), maker.like((2, 3)), maker.like((2, 2, 3))
        maker.step("F.bilinear({0}, {1}, {2})", lambda x, y, w: np.einsum("na,mab,nb->nm", x, w, y), x, y, w)
    else:
        q, k, v = (maker.like((1, 2, 2, 3)) for _ in range(3))

        def attention(q, k, v):
            q, k, v = (one.transpose(0, 2, 1, 3) for one in (q, k, v))
            return (softmax(q @ k.swapaxes(-1, -2) / math.sqrt(3)) @ v).transpose(0, 2, 1, 3)

        maker.step("F.scaled_dot_product_attention({0}, {1}, {2})", attention, q, k, v)
