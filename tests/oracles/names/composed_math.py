"""Functions that are composed of several operators here: value by value, and over axes."""

X = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5]]
Y = [[1.5, 0.5, -2.0], [-1.0, 0.25, 4.0]]
SMALL = [[0.5, -0.25, 0.75], [0.1, -0.9, 0.3]]
ROW = [1.5, -0.5, 2.5]
NAN = float("nan")
INF = float("inf")


def hyperbolic(paddle, net):
    x, small, large = (
        net.parameter("x", X),
        net.parameter("small", SMALL),
        net.parameter("large", [[1.5, 2.0, 4.0]]),
    )
    return {
        "sinh": paddle.sinh(x),
        "cosh": paddle.cosh(x),
        "asinh": paddle.asinh(x),
        "acosh": paddle.acosh(large),
        "atanh": paddle.atanh(small),
        "stanh": paddle.stanh(x),
        "stanh_scaled": paddle.stanh(x, 0.5, 2.0),
    }


def signs_and_parts(paddle, net):
    x = net.parameter("x", X)
    return {
        "neg": paddle.neg(x),
        "trunc": paddle.trunc(x),
        "frac": paddle.frac(x),
        "rad2deg": paddle.rad2deg(x),
        "deg2rad": paddle.deg2rad(x),
    }


def logits(paddle, net):
    p = net.parameter("p", [[0.25, 0.5, 0.9]])
    return {"logit": paddle.logit(p), "clipped": paddle.logit(net.data("q", [[0.0, 0.5, 1.0]]), eps=0.1)}


def pairs(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", Y)
    return {
        "logaddexp": paddle.logaddexp(x, y),
        "hypot": paddle.hypot(x, y),
        "lerp": paddle.lerp(x, y, 0.25),
        "lerp_variable": paddle.lerp(x, y, net.data("w", [[0.5, 0.0, 1.0]] * 2, shape=[2, 3])),
        "dist": paddle.dist(x, y),
        "dist_1": paddle.dist(x, y, 1),
        "dist_inf": paddle.dist(x, y, INF),
    }


def extremes_with_nan(paddle, net):
    x, y = net.data("x", [[NAN, 1.0, 2.0, NAN]]), net.data("y", [[1.0, NAN, 3.0, NAN]])
    return {"fmax": paddle.fmax(x, y), "fmin": paddle.fmin(x, y)}


def steps_and_exponents(paddle, net):
    x = net.data("x", [[-1.5, 0.0, 2.0]])
    return {
        "heaviside": paddle.heaviside(x, net.data("y", [[0.5, 0.25, 1.0]])),
        "ldexp": paddle.ldexp(x, net.data("e", [[1, 2, 3]], "int32")),
    }


def without_nan(paddle, net):
    x = net.data("x", [[NAN, 1.0, -2.0], [0.5, INF, NAN]])
    finite = net.data("f", [[NAN, 1.0, -2.0], [0.5, 3.0, NAN]])
    return {
        "nan_to_num": paddle.nan_to_num(x, 7.0, 100.0, -100.0),
        "nansum": paddle.nansum(finite),
        "nansum_axis": paddle.nansum(finite, axis=1, keepdim=True),
        "nanmean": paddle.nanmean(finite),
        "nanmean_axis": paddle.nanmean(finite, axis=0),
    }


def counts(paddle, net):
    x = net.data("x", [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    return {
        "all": paddle.count_nonzero(x),
        "axis": paddle.count_nonzero(x, axis=1),
        "kept": paddle.count_nonzero(x, axis=[0, 1], keepdim=True),
    }


def shared_extremes(paddle, net):
    x = net.parameter("x", [[1.0, 3.0, 3.0], [2.0, 2.0, -1.0]])
    return {
        "amax": paddle.amax(x),
        "amax_axis": paddle.amax(x, axis=1),
        "amin": paddle.amin(x, axis=[0, 1]),
        "amin_kept": paddle.amin(x, axis=0, keepdim=True),
    }


def closeness(paddle, net):
    x, y = net.data("x", [[1.0, 2.0, NAN]]), net.data("y", [[1.0 + 1e-9, 2.1, NAN]])
    return {
        "isclose": paddle.isclose(x, y),
        "loose": paddle.isclose(x, y, rtol=0.1),
        "nan": paddle.isclose(x, y, equal_nan=True),
        "allclose": paddle.allclose(x, y),
        "all_loose": paddle.allclose(x, y, rtol=0.1, equal_nan=True),
    }


def products(paddle, net):
    a, x, y = (
        net.parameter("a", [[1.0, -1.0], [0.5, 2.0]]),
        net.parameter("x", X),
        net.parameter("y", [[0.5, 1.0], [-1.0, 2.0], [0.25, -0.5]]),
    )
    return {
        "addmm": paddle.addmm(a, x, y, beta=0.5, alpha=2.0),
        "mv": paddle.mv(x, net.parameter("v", ROW)),
        "inner": paddle.inner(x, net.parameter("z", Y)),
        "cross": paddle.cross(x, net.parameter("z", Y), axis=1),
    }


def distances(paddle, net):
    x, y = net.parameter("x", X), net.parameter("z", [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [-2.0, 0.5, 0.0]])
    return {
        "cdist": paddle.cdist(x, y),
        "cdist_1": paddle.cdist(x, y, p=1.0),
        "cdist_3": paddle.cdist(x, y, p=3.0),
    }
