"""Averages of parameters: what real Paddle has no case for (the others: tests/oracles/names/averages.py)."""

import json

import numpy
import pytest

MODEL = """
import json
import numpy
import fleetrun as paddle
from fleetrun import fluid
paddle.enable_static()
x = paddle.static.data("x", [None, 2], "float32")
w = paddle.create_parameter([2, 1], "float32", attr=paddle.ParamAttr(name="w"))
loss = paddle.mean(x @ w)
executor = paddle.static.Executor()

def values():
    return numpy.asarray(paddle.static.global_scope().find_var("w").get_tensor()).ravel().tolist()

def steps(count, then=lambda: None):
    for _ in range(count):
        executor.run(feed={"x": numpy.ones((1, 2), "float32")}, fetch_list=[loss])
        then()
"""


def test_a_moving_average_of_few_steps_follows_faster(run):
    done = run(MODEL + """
paddle.optimizer.SGD(1.0).minimize(loss)
counter = fluid.layers.autoincreased_step_counter()
average = fluid.optimizer.ExponentialMovingAverage(0.3, thres_steps=counter)
average.update()
executor.run(paddle.static.default_startup_program())
seen = []
steps(6, lambda: seen.append(values()))
with average.apply(executor):
    seen.append(values())
print(json.dumps(seen))
""")
    *values, averaged = (numpy.array(one) for one in json.loads(done.stdout.splitlines()[-1]))
    average = numpy.zeros(2)
    for step, value in enumerate(values, 1):
        decay = min(0.3, (step + 1) / (step + 10))
        average = decay * average + (1 - decay) * value
    numpy.testing.assert_allclose(averaged, average / (1 - decay ** len(values)), rtol=1e-5)


@pytest.mark.parametrize("made, first", [
    ("fluid.optimizer.LookaheadOptimizer", 0), ("paddle.incubate.LookAhead", 1)])
def test_slow_values_begin_where_the_release_has_them(run, made, first):
    done = run(MODEL + f"""
{made}(paddle.optimizer.SGD(1.0), 0.25, 3).minimize(loss)
executor.run(paddle.static.default_startup_program())
seen = [values()]
steps(4, lambda: seen.append(values()))
print(json.dumps(seen))
""")
    seen = numpy.array(json.loads(done.stdout.splitlines()[-1]))
    slow = seen[first]
    numpy.testing.assert_allclose(seen[3], 0.25 * (seen[2] - 1.0) + 0.75 * slow, rtol=1e-5)
    numpy.testing.assert_allclose(seen[4], seen[3] - 1.0, rtol=1e-5)


def test_slow_values_of_1_x_are_those_of_the_start_up_program_alone(run):
    """Also where weights are set behind it, as after fluid.io.load_vars."""
    done = run(MODEL + """
fluid.optimizer.LookaheadOptimizer(paddle.optimizer.SGD(1.0), 0.25, 2).minimize(loss)
executor.run(paddle.static.default_startup_program())
seen = [values()]
set_to = fluid.global_scope().find_var("w").get_tensor().set
set_to(numpy.full((2, 1), 8, "float32"), fluid.CPUPlace())
steps(2)
seen.append(values())
executor.run(paddle.static.default_startup_program())
seen.append(values())
steps(2)
seen.append(values())
print(json.dumps(seen))
""")
    started, stepped, again, stepped_again = numpy.array(json.loads(done.stdout.splitlines()[-1]))
    numpy.testing.assert_allclose(stepped, 0.25 * (8 - 2) + 0.75 * started, rtol=1e-5)
    numpy.testing.assert_allclose(stepped_again, 0.25 * (again - 2) + 0.75 * again, rtol=1e-5)


def test_a_window_forgets_and_a_clone_for_test_counts_no_step(run):
    done = run(MODEL + """
paddle.optimizer.SGD(1.0).minimize(loss)
average = fluid.optimizer.ModelAverage(1.0, 2, 3)
test = paddle.static.default_main_program().clone(for_test=True)
executor.run(paddle.static.default_startup_program())
first = values()
steps(5)
executor.run(test, feed={"x": numpy.ones((1, 2), "float32")}, fetch_list=[loss.name])
with average.apply(executor):
    print(json.dumps((numpy.array(first) - values()).tolist()))
print(json.dumps((numpy.array(first) - values()).tolist()))
""")
    averaged, last = (json.loads(line) for line in done.stdout.splitlines())
    # Windows of two steps and of three: after five steps 3, 4 and 5 are left.
    numpy.testing.assert_allclose(averaged, [4.0, 4.0], rtol=1e-5)
    numpy.testing.assert_allclose(last, [5.0, 5.0], rtol=1e-5)


@pytest.mark.parametrize("made", [
    "paddle.static.ExponentialMovingAverage(0.9)", "fluid.optimizer.ModelAverage(0.5)"])
def test_values_in_tables_are_refused_by_name(run, made):
    done = run(MODEL + f"""
rows = paddle.static.nn.sparse_embedding(paddle.static.data("ids", [None, 1], "int64"), [9, 2],
                                         param_attr=paddle.ParamAttr(name="rows"))
paddle.optimizer.SGD(1.0).minimize(loss + paddle.mean(rows))
{made}
""", expect=1)
    assert "the values of rows are in a table, and not in the program" in done.stderr
