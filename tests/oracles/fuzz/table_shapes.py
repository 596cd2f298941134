"""Operations that random programs draw: shapes, parts, places. Each takes a Maker."""

import itertools

import numpy as np
from table_values import operation, unfit


def _listed(shape):
    return [int(size) for size in shape]


@operation
def reshaped(maker):
    """Another shape of the same values."""
    x = maker.any(wide=True)
    size, kind = x.array.size, maker.random.randint(0, 8)
    if kind == 0:
        first = maker.pick(*(one for one in range(1, size + 1) if size % one == 0))
        shape = [first, -1] if maker.flag() else [-1, first]
        maker.step(
            f"{maker.pick('paddle.reshape', 'paddle.view')}({{0}}, {shape})",
            lambda x: np.reshape(x, shape),
            x,
        )
    elif kind == 1 and x.ndim:
        shape = [0, *([-1] if x.ndim > 1 else [])]
        maker.step(f"paddle.reshape({{0}}, {shape})", lambda x: np.reshape(x, [x.shape[0], *shape[1:]]), x)
    elif kind == 2 and x.ndim:
        start = maker.random.randint(0, x.ndim - 1)
        stop = maker.random.randint(start, x.ndim - 1)

        def flat(x):
            return np.reshape(x, [*x.shape[:start], -1, *x.shape[stop + 1 :]])

        maker.step(f"paddle.flatten({{0}}, {start}, {stop - x.ndim})", flat, x)
    elif kind == 3:
        axis = maker.random.randint(-x.ndim - 1, x.ndim)
        maker.step(f"paddle.unsqueeze({{0}}, {axis})", lambda x: np.expand_dims(x, axis), x)
    elif kind == 4:
        maker.step("paddle.squeeze({0})", np.squeeze, x)
    elif kind == 5 and 1 in x.shape:
        axis = x.shape.index(1)
        maker.step(f"paddle.squeeze({{0}}, [{axis}])", lambda x: np.squeeze(x, axis), x)
    elif kind == 6:
        count = maker.random.randint(1, 3)
        at_least = (np.atleast_1d, np.atleast_2d, np.atleast_3d)[count - 1]
        # What has the axes is itself, and a parameter that is fetched is so after the optimizer's step.
        maker.step(f"paddle.atleast_{count}d({{0}} * 1.0)", at_least, x)
    elif kind == 7 and x.ndim and x.shape[-1] % 2 == 0:
        maker.step("paddle.unflatten({0}, -1, [2, -1])", lambda x: np.reshape(x, [*x.shape[:-1], 2, -1]), x)
    else:
        y = maker.leaf((size,))
        maker.step("paddle.view_as({0}, {1})", lambda y, x: np.reshape(y, x.shape), y, x) if all(
            not getattr(one, "is_open", False) for one in (x, y)
        ) and x.dtype == "float32" else None


@operation
def turned(maker):
    """The axes in another order, or values in another direction."""
    x = maker.any(least=1, wide=True)
    axis, kind = maker.axis(x), maker.random.randint(0, 6)
    if kind == 0:
        order = maker.random.sample(range(x.ndim), x.ndim)
        maker.step(f"paddle.transpose({{0}}, {order})", lambda x: np.transpose(x, order), x)
    elif kind == 1:
        to = maker.axis(x)
        maker.step(f"paddle.moveaxis({{0}}, {axis}, {to})", lambda x: np.moveaxis(x, axis, to), x)
    elif kind == 2:
        name = maker.pick("flip", "reverse")
        maker.step(f"paddle.{name}({{0}}, [{axis}])", lambda x: np.flip(x, axis), x)
    elif kind == 3:
        by = maker.random.randint(-3, 3)
        on = maker.pick(axis, None)
        maker.step(f"paddle.roll({{0}}, {by}, {on})", lambda x: np.roll(x, by, on), x)
    elif kind == 4 and x.ndim == 2:
        maker.step(maker.pick("paddle.t({0})", "{0}.T"), np.transpose, x)
    elif kind == 5 and x.ndim > 1:
        k, axes = maker.random.randint(-1, 3), maker.random.sample(range(x.ndim), 2)
        maker.step(f"paddle.rot90({{0}}, {k}, {axes})", lambda x: np.rot90(x, k, axes), x, same=k == 0)
    elif x.ndim > 1:
        k, name = maker.random.randint(-1, 1), maker.pick("tril", "triu")
        maker.step(f"paddle.{name}({{0}}, {k})", lambda x, f=getattr(np, name): f(x, k), x)


@operation
def repeated(maker):
    """More of the same values."""
    x = maker.any(wide=True, most=3)
    kind = maker.random.randint(0, 4)
    if kind == 0:
        times = [maker.random.randint(1, 2) for _ in range(maker.random.randint(max(1, x.ndim), x.ndim + 1))]
        maker.step(f"paddle.tile({{0}}, {times})", lambda x: np.tile(x, times), x)
    elif kind == 1:
        shape = [maker.random.randint(1, 3) if size == 1 else size for size in (1, *x.shape)]
        name = maker.pick("expand", "broadcast_to")
        maker.step(f"paddle.{name}({{0}}, {shape})", lambda x: np.broadcast_to(x, shape), x)
    elif kind == 2:
        y = maker.leaf((2, *x.shape))
        maker.step("paddle.expand_as({0}, {1})", lambda x, y: np.broadcast_to(x, y.shape), x, y)
    elif kind == 3:
        axis = maker.axis(x)
        maker.step(f"paddle.repeat_interleave({{0}}, 2, {axis})", lambda x: np.repeat(x, 2, axis), x)
    elif x.dtype == "float32":
        y = maker.partner(x)
        maker.step(
            "paddle.broadcast_tensors([{0}, {1}])", lambda x, y: tuple(np.broadcast_arrays(x, y)), x, y
        )


@operation
def joined(maker):
    """Several values side by side."""
    x = maker.any(least=1, wide=True)
    y = maker.like(x.shape, x.dtype)
    axis = maker.axis(x)
    if maker.flag():
        maker.step(
            f"paddle.concat([{{0}}, {{1}}, {{0}}], axis={axis})",
            lambda x, y: np.concatenate([x, y, x], axis),
            x,
            y,
        )
    else:
        maker.step(f"paddle.stack([{{0}}, {{1}}], axis={axis})", lambda x, y: np.stack([x, y], axis), x, y)


@operation
def parted(maker):
    """Several parts of one value."""
    x = maker.any(least=1, wide=True)
    axis = maker.axis(x)
    size = x.shape[axis]
    kind = maker.random.randint(0, 3)
    if kind == 0 and size % 2 == 0:
        name = maker.pick("split", "chunk")
        maker.step(f"paddle.{name}({{0}}, 2, {axis})", lambda x: tuple(np.split(x, 2, axis)), x)
    elif kind == 1 and size > 1:
        first = maker.random.randint(1, size - 1)
        sections = maker.pick([first, size - first], [first, -1])
        maker.step(f"paddle.split({{0}}, {sections}, {axis})", lambda x: tuple(np.split(x, [first], axis)), x)
    elif kind == 2 and size > 1:
        name = maker.pick("unbind", "unstack")
        maker.step(
            f"paddle.{name}({{0}}, {axis})",
            lambda x: tuple(np.moveaxis(x, axis, 0)[k] for k in range(x.shape[axis])),
            x,
        )
    elif kind == 3 and x.ndim > 1 and x.shape[0] % 2 == 0:
        maker.step("paddle.vsplit({0}, 2)", lambda x: tuple(np.split(x, 2, 0)), x)


@operation
def cut(maker):
    """A range of places."""
    x = maker.any(least=1, wide=True)
    axis = maker.random.randint(0, x.ndim - 1)
    size = x.shape[axis]
    start = maker.random.randint(0, size - 1)
    end, kind = maker.random.randint(start + 1, size + 1), maker.random.randint(0, 5)
    places = [slice(None)] * x.ndim
    if kind == 0:
        places[axis] = slice(start, end)
        first = start - size if maker.flag() else start
        maker.step(f"paddle.slice({{0}}, [{axis}], [{first}], [{end}])", lambda x: x[tuple(places)], x)
    elif kind == 1:
        step = maker.random.randint(1, 3)
        places[axis] = slice(start, end, step)
        maker.step(
            f"paddle.strided_slice({{0}}, [{axis}], [{start}], [{end}], [{step}])",
            lambda x: x[tuple(places)],
            x,
        )
    elif kind == 2 and start:
        step, stop = maker.random.randint(1, 2), maker.random.randint(0, start - 1)
        places[axis] = slice(start, stop, -step)
        maker.step(
            f"paddle.strided_slice({{0}}, [{axis}], [{start}], [{stop}], [{-step}])",
            lambda x: x[tuple(places)],
            x,
        )
    elif kind == 3:
        items = [
            maker.pick(
                ":",
                "::-1",
                "::2",
                "0",
                "-1",
                "1:" if size > 1 else ":",
                "None, :",
                ":-1" if size > 1 else ":",
            )
            for size in x.shape
        ]
        text = ", ".join(items)
        maker.step(f"{{0}}[{text}]", lambda x: eval(f"x[{text}]", {"x": x}), x, same=set(items) == {":"})
    elif kind == 4:
        shape = [maker.random.randint(1, size) for size in x.shape]
        offsets = [maker.random.randint(0, size - one) for size, one in zip(x.shape, shape)]
        maker.step(
            f"paddle.crop({{0}}, {shape}, {offsets})",
            lambda x: x[tuple(slice(o, o + s) for o, s in zip(offsets, shape))],
            x,
        )
    else:
        maker.step(f"{{0}}[..., {start % x.shape[-1]}]", lambda x: x[..., start % x.shape[-1]], x)


@operation
def picked(maker):
    """Places that integers say."""
    x = maker.any(least=1, wide=True)
    axis, kind = maker.random.randint(0, x.ndim - 1), maker.random.randint(0, 9)
    size = x.shape[axis]
    count = maker.random.randint(1, 4)
    if kind < 2:
        index = maker.leaf((count,), 0, size - 1, "int64")
        name = maker.pick("gather", "index_select")
        maker.step(f"paddle.{name}({{0}}, {{1}}, axis={axis})", lambda x, i: np.take(x, i, axis), x, index)
    elif kind == 2:
        index = maker.leaf((count, 1), 0, x.shape[0] - 1, "int64")
        maker.step("paddle.gather_nd({0}, {1})", lambda x, i: x[i[..., 0]], x, index)
    elif kind == 3:
        sizes = list(x.shape)
        sizes[axis] = count
        index = maker.leaf(tuple(sizes), 0, size - 1, "int64")
        maker.step(
            f"paddle.take_along_axis({{0}}, {{1}}, {axis})",
            lambda x, i: np.take_along_axis(x, i, axis),
            x,
            index,
        )
    elif kind == 4:
        index = maker.leaf((count,), -x.array.size, x.array.size - 1, "int64")
        maker.step("paddle.take({0}, {1})", lambda x, i: x.ravel()[i], x, index)
    elif kind == 5 and x.ndim == 2:
        index = maker.leaf((x.shape[0], count), 0, x.shape[1] - 1, "int64")
        maker.step("paddle.index_sample({0}, {1})", lambda x, i: np.take_along_axis(x, i, 1), x, index)
    elif kind == 6 and x.dtype == "float32":
        index = maker.leaf((count,), 0, x.shape[axis] - 1, "int64")
        sizes = [*x.shape[:axis], count, *x.shape[axis + 1 :]]

        def added(x, i, v):
            made = np.moveaxis(np.array(x), axis, 0)
            np.add.at(made, i, np.moveaxis(v, axis, 0))
            return np.moveaxis(made, 0, axis)

        maker.step(
            f"paddle.index_add({{0}}, {{1}}, {axis}, {{2}})", added, x, index, maker.like(tuple(sizes))
        )
    elif kind == 7 and x.dtype == "float32":
        index = maker.leaf((count, 1), 0, x.shape[0] - 1, "int64")

        def scattered(x, i, v):
            made = np.array(x)
            np.add.at(made, i[:, 0], v)
            return made

        maker.step(
            "paddle.scatter_nd_add({0}, {1}, {2})", scattered, x, index, maker.like((count, *x.shape[1:]))
        )
    elif kind == 8 and x.dtype == "float32":
        order = maker.random.sample(range(x.shape[0]), maker.random.randint(1, x.shape[0]))
        index = maker.leaf((len(order),), 0, 0, "int64")
        index.array = np.array(order)

        def replaced(x, i, v):
            made = np.array(x)
            made[i] = v
            return made

        maker.step(
            "paddle.scatter({0}, {1}, {2})", replaced, x, index, maker.like((len(order), *x.shape[1:]))
        )
    elif x.dtype == "float32":
        index = maker.leaf((x.shape[0], 1), 0, 1, "int64")
        maker.step(
            "paddle.multiplex([{0}, {1}], paddle.cast({2}, 'int32'))",
            lambda x, y, i: np.where(i.reshape([-1] + [1] * (x.ndim - 1)) == 0, x, y),
            x,
            maker.like(x.shape),
            index,
        )


@operation
def diagonals(maker):
    """Diagonals, and values on them."""
    x = maker.any(least=1, most=3)
    k, kind = maker.random.randint(-1, 1), maker.random.randint(0, 3)
    if kind == 0 and x.ndim < 3:
        offset = k if x.ndim == 1 or min(x.shape) > 1 else 0
        name = "diag" if x.ndim == 2 or maker.flag() else "diagflat"
        maker.step(f"paddle.{name}({{0}}, {offset})", lambda x: np.diag(x, offset), x, flat=True)
    elif kind == 1 and x.ndim == 2 and min(x.shape) > 1:
        name, reference = maker.pick(("diagonal", np.diagonal), ("trace", np.trace))
        maker.step(f"paddle.{name}({{0}}, {k})", lambda x: np.array(reference(x, k)), x)
    elif kind == 2 and x.ndim == 1:
        maker.step(
            f"paddle.diag({{0}}, {k}, padding_value=1.5)",
            lambda x: np.where(np.diag(np.ones(x.size), k) > 0, np.diag(x, k), 1.5),
            x,
            flat=True,
        )
    elif x.ndim == 2:
        maker.step("paddle.diag_embed({0})", lambda x: np.stack([np.diag(row) for row in x]), x, flat=True)


@operation
def differences(maker):
    """Neighbours: differences, areas, choices, powers."""
    x = maker.any(least=1)
    kind = maker.random.randint(0, 3)
    if kind == 0 and x.shape[-1] > 1:
        maker.step("paddle.diff({0})", np.diff, x)
    elif kind == 1 and x.ndim == 1 and x.shape[0] > 1:
        maker.step("paddle.trapezoid({0}, dx=0.5)", lambda x: np.sum((x[1:] + x[:-1]) * 0.25), x)
    elif kind == 2 and x.ndim == 1 and x.shape[0] > 1:
        maker.step("paddle.combinations({0})", lambda x: np.array(list(itertools.combinations(x, 2))), x)
    elif kind == 3 and x.ndim == 1:
        maker.step("paddle.vander({0}, 3)", lambda x: np.vander(x, 3), x)


def _matrices(maker):
    n, k, m = (maker.random.randint(1, 4) for _ in range(3))
    x = maker.any(least=2, most=3)
    return n, x.shape[-1] or k, m, x


@operation
def products(maker):
    """Products of matrices and vectors."""
    n, k, m, x = _matrices(maker)
    kind = maker.random.randint(0, 11)
    if kind < 3:
        y = maker.like((k, m))
        name = maker.pick("paddle.matmul({0}, {1})", "({0} @ {1})")
        maker.step(name, np.matmul, x, y)
    elif kind == 3:
        maker.step("paddle.matmul({0}, {1}, transpose_y=True)", lambda x, y: x @ y.T, x, maker.like((m, k)))
    elif kind == 4:
        y = maker.like((x.shape[-2], m))
        maker.step("paddle.matmul({0}, {1}, transpose_x=True)", lambda x, y: np.swapaxes(x, -1, -2) @ y, x, y)
    elif kind == 5:
        maker.step(
            maker.pick(
                "paddle.mv({0}, {1})" if x.ndim == 2 else "paddle.matmul({0}, {1})", "paddle.matmul({0}, {1})"
            ),
            np.matmul,
            x,
            maker.like((k,)),
        )
    elif kind == 6 and x.ndim == 3:
        name = maker.pick("bmm", "matmul")
        maker.step(f"paddle.{name}({{0}}, {{1}})", np.matmul, x, maker.like((x.shape[0], k, m)))
    elif kind == 7 and x.ndim == 2:
        if maker.flag():
            maker.step("paddle.mm({0}, {1})", np.matmul, x, maker.like((k, m)))
        else:
            maker.step(
                "paddle.addmm({2}, {0}, {1}, 0.5, 2.0)",
                lambda x, y, z: 0.5 * z + 2 * (x @ y),
                x,
                maker.like((k, m)),
                maker.like((x.shape[0], m)),
            )
    elif kind == 8 and x.ndim == 2:
        maker.step("paddle.dot({0}, {1})", lambda x, y: np.sum(x * y, -1), x, maker.like(x.shape))
    elif kind == 9:
        one, two = maker.any(least=1, most=1), maker.any(least=1, most=1)
        name, reference = maker.pick(("outer", np.outer), ("kron", np.kron))
        maker.step(f"paddle.{name}({{0}}, {{1}})", reference, one, two)
    elif kind == 10 and x.ndim == 2:
        text, shape = maker.pick(
            ("ij,jk->ik", (k, m)),
            ("ij,jk->kij", (k, m)),
            ("ij,jk->", (k, m)),
            ("ij,ij->j", x.shape),
            ("ij,ik->jk", (x.shape[0], m)),
        )
        maker.step(
            f"paddle.einsum('{text}', {{0}}, {{1}})", lambda x, y: np.einsum(text, x, y), x, maker.like(shape)
        )
    elif x.ndim == 2:
        name, reference = maker.pick(("inner", np.inner), ("tensordot", None))
        y = maker.like((m, k))
        if reference:
            maker.step("paddle.inner({0}, {1})", reference, x, y)
        else:
            maker.step("paddle.tensordot({0}, {1}, axes=[[1], [1]])", lambda x, y: x @ y.T, x, y)


@operation
def distances(maker):
    """Distances, and the cross product."""
    kind = maker.random.randint(0, 2)
    if kind == 0:
        x = maker.any(least=1)
        y = maker.like(x.shape)
        if not np.all(np.abs(x.array - y.array) > 0.05):
            raise unfit()
        p = maker.pick(1, 2, 3)
        maker.step(
            f"paddle.dist({{0}}, {{1}}, {p})", lambda x, y: np.sum(np.abs(x - y) ** p) ** (1 / p), x, y
        )
    elif kind == 1:
        x = maker.any(least=2, most=2)
        y = maker.like((maker.random.randint(1, 3), x.shape[1]))
        far = np.abs(x.array[:, None] - y.array[None]).max(-1)
        if not np.all(far > 0.1):
            raise unfit()
        p = maker.pick(1.0, 2.0)
        maker.step(
            f"paddle.cdist({{0}}, {{1}}, {p})",
            lambda x, y: np.sum(np.abs(x[:, None] - y[None]) ** p, -1) ** (1 / p),
            x,
            y,
        )
    else:
        x = maker.like((2, 3))
        maker.step("paddle.cross({0}, {1}, axis=1)", lambda x, y: np.cross(x, y), x, maker.like((2, 3)))


@operation
def constants(maker):
    """Values without inputs."""
    n, m = maker.random.randint(1, 4), maker.random.randint(1, 3)
    text, made = maker.pick(
        (f"paddle.full([{n}, {m}], 0.75)", np.full((n, m), 0.75)),
        (f"paddle.ones([{n}])", np.ones(n)),
        (f"paddle.zeros([{n}, {m}])", np.zeros((n, m))),
        (f"paddle.eye({n}, {m})", np.eye(n, m)),
        (f"paddle.linspace(-1.0, 2.0, {n + 1})", np.linspace(-1, 2, n + 1)),
        (f"paddle.arange({n}, {n + 3})", np.arange(n, n + 3)),
        (f"paddle.arange(0.5, {n + 0.4}, 0.5)", np.arange(0.5, n + 0.4, 0.5)),
        (f"paddle.logspace(0.0, 1.0, {n + 1})", np.logspace(0, 1, n + 1)),
        (f"paddle.tril_indices({n}, {n}, 0)", np.array(np.tril_indices(n))),
        (f"paddle.triu_indices({n}, {n}, 0)", np.array(np.triu_indices(n))),
        (f"paddle.full_like({{0}}, {n})", None),
        (f"paddle.assign(np.arange({n}, dtype='float32'))", np.arange(n) * 1.0),
        (f"paddle.to_tensor([0.5] * {n})", np.full(n, 0.5)),
    )
    if made is None:
        maker.step(text, lambda x: np.full(x.shape, float(n)), maker.any(), flat=True)
    else:
        maker.step(text, lambda: made, flat=True)


@operation
def grids(maker):
    """The grid of two vectors."""
    x, y = maker.any(least=1, most=1), maker.any(least=1, most=1)
    maker.step("paddle.meshgrid({0}, {1})", lambda x, y: tuple(np.meshgrid(x, y, indexing="ij")), x, y)


@operation
def ids(maker):
    """What becomes of integers."""
    x, kind = maker.leaf(maker.shape(1, 2), 0, 3, "int64"), maker.random.randint(0, 6)
    if kind == 0:
        maker.step("F.one_hot({0}, 4)", lambda x: np.eye(4)[x], x, flat=True)
    elif kind == 1:
        maker.step("F.sequence_mask({0}, 4)", lambda x: (np.arange(4) < x[..., None]).astype("int64"), x)
    elif kind == 2 and x.ndim == 1:
        maker.step("paddle.unique({0})", np.unique, x)
    elif kind == 5:
        column = maker.leaf((maker.random.randint(1, 4), 1), 0, 3, "int64")
        maker.step("paddle.shard_index({0}, 4, 2, 1)", lambda x: np.where(x // 2 == 1, x % 2, -1), column)
    elif kind == 6:
        index = maker.leaf((3, 1), 0, 3, "int64")

        def spread(i, v):
            made = np.zeros((4, 2))
            np.add.at(made, i[:, 0], v)
            return made

        maker.step("paddle.scatter_nd({0}, {1}, [4, 2])", spread, index, maker.like((3, 2)))
    elif kind == 3:
        maker.step("paddle.nonzero({0})", lambda x: np.argwhere(x).astype("int64"), x)
    else:
        y = maker.like(x.shape)
        maker.step("paddle.cast({0}, 'float32') * {1}", lambda x, y: x * y, x, y)
