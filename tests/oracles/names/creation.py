"""Variables that are made of numbers."""

import numpy
from name_cases import within


def constants(paddle, net):
    return {"full": paddle.full([2, 3], 1.5), "int": paddle.full([2], 3, "int64"),
            "bool": paddle.full([2], True, paddle.bool),
            "ones": paddle.ones([3]), "zeros": paddle.zeros([2, 1], "int32")}


def like(paddle, net):
    x, n = net.data("x", [[1.0, 2.0]]), net.data("n", [[1, 2]], "int64")
    return {"full_like": paddle.full_like(x, 2.5), "ones_like": paddle.ones_like(n),
            "zeros_like": paddle.zeros_like(x),
            "typed": paddle.ones_like(x, dtype="int64")}


def ranges(paddle, net):
    return {"n": paddle.arange(4), "from": paddle.arange(2, 9, 3), "down": paddle.arange(5, 0, -2, "int32"),
            "floats": paddle.arange(0.5, 2.1, 0.5), "typed": paddle.arange(0, 3, dtype="float32"),
            "linspace": paddle.linspace(0, 1, 5)}


def from_arrays(paddle, net):
    return {"floats": paddle.to_tensor([1.5, 2.0]), "ints": paddle.to_tensor([[1, 2], [3, 4]]),
            "bools": paddle.to_tensor([True, False]), "typed": paddle.to_tensor([1, 2], dtype="float32"),
            "array": paddle.to_tensor(numpy.array([1, 2], "int32")), "eye": paddle.eye(2, 3),
            "sum": paddle.to_tensor([1.0, 2.0]) + net.parameter("w", [0.5, 0.5])}


def random_bounds(paddle, net):
    """That what is drawn lies where it should."""
    net.executor.run(net.startup, scope=net.scope)
    rand, uniform = paddle.rand([40, 50]), paddle.uniform([40, 50], min=2.0, max=4.0)
    randint = paddle.randint(3, 6, [40, 50])
    a, b, c = net.run([rand, uniform, randint])
    return {"shape": numpy.array(a.shape), "rand": numpy.array([a.min() >= 0, a.max() < 1]),
            "uniform": numpy.array([b.min() >= 2, b.max() < 4]), "randint": numpy.unique(c)}


@within(relative=0, absolute=0.05)
def random_moments(paddle, net):
    """Means and deviations of 40,000 values: within five standard errors."""
    drawn = {"rand": paddle.rand([200, 200]), "randn": paddle.randn([200, 200]),
             "normal": paddle.normal(3.0, 2.0, [200, 200]),
             "uniform": paddle.uniform([200, 200], min=-2.0, max=2.0)}
    return {name: numpy.array([value.mean(), value.std()], "float32")
            for name, value in zip(drawn, net.run(drawn.values()))}


def draws_without_choice(paddle, net):
    sure = net.data("sure", [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    both = net.data("both", [[0.5, 0.0, 0.5]])
    chosen = paddle.multinomial(both, 2)
    return {"multinomial": paddle.multinomial(sure),
            "replaced": paddle.multinomial(sure, 4, replacement=True),
            "all": paddle.sort(chosen), "bernoulli": paddle.bernoulli(net.data("p", [[0.0, 1.0]])),
            "randperm": paddle.sort(paddle.randperm(5))}
