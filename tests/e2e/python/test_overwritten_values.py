"""Gradients read the values of their own moment, also of variables that the program writes over later."""
import numpy
import pytest

import fleetrun as paddle

X = numpy.arange(1, 7, dtype="float32").reshape(2, 3) / 5
FACTOR = X + 1


def squared_over(x):
    y = x * 2
    paddle.assign(y * y, output=y)
    return paddle.sum(3 * y), 24 * X


def twice_over(x):
    y = paddle.tanh(x)
    paddle.assign(y * y, output=y)
    paddle.assign(paddle.exp(y), output=y)
    tanh = numpy.tanh(X)
    return paddle.sum(y * y), 4 * numpy.exp(2 * tanh**2) * tanh * (1 - tanh**2)


def what_is_fed_over(x):
    factor = paddle.static.data("factor", [2, 3], "float32")
    y = x * factor
    paddle.assign(factor * 10, output=factor)
    return paddle.sum(y), FACTOR


def by_what_wants_no_gradient(x):
    y = paddle.exp(x)
    squares = y * y
    paddle.assign(numpy.zeros((2, 3), "float32"), output=y)
    return paddle.sum(squares + y), 2 * numpy.exp(2 * X)


@pytest.mark.parametrize("build", [squared_over, twice_over, what_is_fed_over, by_what_wants_no_gradient])
def test_the_gradient_is_that_of_what_was_computed(build):
    main = paddle.static.Program()
    with paddle.static.program_guard(main, paddle.static.Program()):
        x = paddle.static.data("x", [2, 3], "float32")
        x.stop_gradient = False
        loss, expected = build(x)
        (gradient,) = paddle.static.gradients([loss], [x])
    feed = {name: value for name, value in (("x", X), ("factor", FACTOR)) if main.has_var(name)}
    (found,) = paddle.static.Executor().run(main, feed=feed, fetch_list=[gradient])
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_parameter_moves_by_it():
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [2, 3], "float32")
        weight = paddle.create_parameter([3], "float32",
                                         default_initializer=paddle.nn.initializer.Constant(1.0))
        y = x * weight
        paddle.assign(y * y, output=y)
        paddle.optimizer.SGD(0.1).minimize(paddle.sum(y))
    executor = paddle.static.Executor()
    executor.run(startup)
    (moved,) = executor.run(main, feed={"x": X}, fetch_list=[weight])
    numpy.testing.assert_allclose(moved, 1 - 0.1 * (2 * X**2).sum(0), rtol=1e-5)
