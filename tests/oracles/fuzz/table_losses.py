"""Operations that random programs draw: losses. Each takes a Maker."""

import math

import numpy as np
from table_layers import log_softmax, softmax
from table_values import operation, sigmoid, softplus, unfit


def reduced(loss, reduction):
    """A loss, reduced."""
    return {"none": lambda: loss, "mean": lambda: np.mean(loss), "sum": lambda: np.sum(loss)}[reduction]()


def _reduction(maker):
    return maker.pick("none", "mean", "sum")


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
