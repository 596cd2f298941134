"""DataLoader.from_generator, as document 004 uses it:
with Executor.run, in a loop, with a reader that never ends."""

import pytest

HEAD = """
import itertools, multiprocessing, os, threading
import numpy as np
import fleetrun as paddle
import fleetrun.fluid as fluid
paddle.enable_static()
x = paddle.static.data("x", [None, 3], "float32")
y = paddle.static.data("y", [None, 1], "int64")
total = paddle.sum(x) + paddle.sum(paddle.cast(y, "float32"))
exe = paddle.static.Executor(paddle.CPUPlace())
def loader(**options):
    return paddle.io.DataLoader.from_generator(feed_list=[x, y], **{"capacity": 4, **options})
def samples():
    for i in range(5):
        yield np.full(3, i), i
def pass_over(made):
    made.start()
    totals = []
    try:
        while True:
            totals.append(float(exe.run(fetch_list=[total])[0]))
    except fluid.core.EOFException:
        made.reset()
    return totals
def plain(batch):
    if isinstance(batch, dict): return {key: plain(part) for key, part in batch.items()}
    return [plain(part) for part in batch] if isinstance(batch, list) else np.asarray(batch).tolist()
def refused(call, kind=paddle.Error):
    try:
        call()
    except kind as error:
        return str(error)
    raise SystemExit("nothing was refused")
"""


@pytest.mark.parametrize("in_process", [False, True])
def test_a_started_loader_feeds_the_program(run, in_process):
    run(HEAD + f"""
made = loader(iterable=False, use_multiprocess={in_process})
made.set_sample_generator(samples, 2, drop_last=False)
assert pass_over(made) == pass_over(made) == [4, 20, 16], "the values of Paddle 2.6.2"
made.set_sample_generator(samples, 2)
assert pass_over(made) == [4, 20]
made.set_sample_list_generator(paddle.batch(samples, 9 / 3))
assert pass_over(made) == [12, 28]
made.set_batch_generator(lambda: iter([(np.ones((2, 3), "float32"), np.ones((2, 1), "int64"))] * 3))
assert pass_over(made) == [8, 8, 8]
assert paddle.core.EOFException is fluid.core.EOFException is paddle.base.core.EOFException
assert multiprocessing.active_children() == []
""")


@pytest.mark.parametrize("in_process", [False, True])
def test_document_004_reads_without_end(run, in_process):
    run(HEAD + f"""
in_process = {in_process}
""" + """
opened = []
def infinite_reader():
    while True:
        opened.append(1)
        for i in range(10):
            yield np.full(3, i), i
NUM_PASSES, iters_per_pass = 3, 5
data_loader = loader(iterable=False, use_double_buffer=True, use_multiprocess=in_process)
data_loader.set_sample_generator(infinite_reader, batch_size=2)
totals = []
for pass_id in range(NUM_PASSES):
    if pass_id == 0:
        data_loader.start()
    for batch_id in range(iters_per_pass):
        totals.append(float(exe.run(fetch_list=[total])[0]))
data_loader.reset()
assert totals == [4, 20, 36, 52, 68] * 3
assert multiprocessing.active_children() == []
assert not [one for one in threading.enumerate() if one.name == "fleetrun-loader"]
""")


def test_a_loop_gets_what_the_executor_takes(run):
    run(HEAD + """
made = loader()
made.set_sample_generator(samples, 2, drop_last=False, places=paddle.static.cpu_places())
assert [float(exe.run(feed=batch, fetch_list=[total])[0]) for batch in made()] == [4, 20, 16]
assert [plain(batch) for batch in made][2] == [{"x": [[4, 4, 4]], "y": [[4]]}], "a pass starts anew"
as_list = loader(return_list=True).set_sample_generator(samples, 4)
(batch,) = list(as_list())
assert len(batch) == 1 and [(part.shape(), np.asarray(part).dtype.name) for part in batch[0]] == [
    ([4, 3], "float32"), ([4, 1], "int64")]
tensor = next(iter(made()))[0]["x"]
assert isinstance(tensor, fluid.LoDTensor) and tensor.shape() == [2, 3] and tensor[1].tolist() == [1, 1, 1]
first = made.__iter__()  # as Python 2 asks for batches
assert [plain(first.next()), plain(made.next()), plain(next(made))] == [plain(batch) for batch in made]
assert refused(made.next, StopIteration) == ""
assert exe.run(feed={"x": np.zeros((1, 3), "float32"), "y": [[3]]}, fetch_list=[total])[0] == 3, "it has no part in the program"
older = fluid.io.PyReader([x, y], 4)
older.decorate_sample_list_generator(paddle.batch(samples, 4), places=paddle.CPUPlace())
assert [batch[0]["x"].shape()[0] for batch in older()] == [4, 1] and fluid.reader.PyReader is fluid.io.PyReader
net = paddle.io.DataLoader([(np.full(3, 2, "float32"), np.array([1]))] * 3, feed_list=[x, y], return_list=False, batch_size=3)
assert [float(exe.run(feed=batch, fetch_list=[total])[0]) for batch in net] == [21]
""")


def test_a_fed_variable_is_not_taken_from_the_loader(run):
    run(HEAD + """
made = loader(iterable=False).set_sample_generator(samples, 1)
both = {"x": np.zeros((1, 3), "float32"), "y": np.array([[7]])}
assert exe.run(feed=both, fetch_list=[total])[0] == 7, "nothing is asked of a loader that is not needed"
made.start()
assert exe.run(feed={"y": np.array([[7]])}, fetch_list=[total])[0] == 7
assert exe.run(fetch_list=[total])[0] == 4, "a batch was taken by the run before"
test = paddle.static.default_main_program().clone(for_test=True)
assert exe.run(test, fetch_list=[total])[0] == 8
made.reset()
""")


def test_the_thread_stays_within_its_capacity(run):
    run(HEAD + """
made, count = threading.Semaphore(0), []
def batches():
    for i in itertools.count():
        count.append(i)
        made.release()
        yield np.full((1, 3), i, "float32"), np.zeros((1, 1), "int64")
closed = []
def closing():
    try:
        yield from batches()
    finally:
        closed.append(True)
reading = loader(iterable=False, capacity=3).set_batch_generator(closing)
reading.start()
for _ in range(3):
    made.acquire()
assert len(count) == 3
assert exe.run(fetch_list=[total])[0] == 0
made.acquire()
assert len(count) == 4
reading.reset()
assert closed == [True] and len(count) == 4, "reset() has ended the thread and closed the reader"
""")


def test_lists_of_examples_may_be_read_once(run):
    run(HEAD + """
def lists():
    for first in (0, 2):
        yield zip([np.full(3, i) for i in (first, first + 1)], (first, first + 1))
made = loader(return_list=False).set_sample_list_generator(lists)
assert [np.ravel(batch[0]["y"]).tolist() for batch in made()] == [[0, 1], [2, 3]]
""")


def test_a_queue_says_how_many_batches_wait(run):
    run(HEAD + """
for in_process in (False, True):
    made = loader(capacity=2, use_multiprocess=in_process).set_sample_generator(samples, 1)
    assert (made.queue.size(), made.queue.capacity()) == (0, 2)
    seen = [made.queue.size() for _ in made()]
    assert len(seen) == 5 and all(0 <= count <= 2 for count in seen) and made.queue.size() == 0, seen
reader = paddle.fluid.io.PyReader(feed_list=[x, y], capacity=3)
assert reader.queue.capacity() == 3
""")


def test_an_example_that_is_a_whole_batch_has_the_rows_of_the_variable(run):
    """As in Paddle, whose feeder gives what has another number of axes the variable's shape."""
    run(HEAD + """
whole = paddle.static.data("whole", [None], "int64")
made = paddle.io.DataLoader.from_generator(feed_list=[whole], capacity=2)
made.set_sample_list_generator(lambda: iter([[([5, 6, 7],)], [([8],)]]))
assert [np.array(batch[0]["whole"]).tolist() for batch in made()] == [[5, 6, 7], [8]]
""")


def test_what_a_reader_throws_comes_out_in_its_place(run):
    run(HEAD + """
def broken():
    yield np.zeros(3), 1
    raise ValueError("no more road")
for in_process in False, True:
    made = loader(iterable=False, use_multiprocess=in_process).set_sample_generator(broken, 1)
    made.start()
    assert exe.run(fetch_list=[total])[0] == 1
    assert refused(lambda: exe.run(fetch_list=[total]), ValueError) == "no more road"
    made.reset()
    paddle.static.default_main_program().loaders.clear()
made = loader().set_sample_generator(broken, 1)
assert refused(lambda: list(made), ValueError) == "no more road"
""")


@pytest.mark.parametrize("code, what", [
    ("loader(capacity=None)", "capacity=None"),
    ("paddle.io.DataLoader.from_generator(capacity=2)", "no feed_list"),
    ("list(loader())", "there is nothing to read"),
    ("list(loader(iterable=False))", "is not for a loop"),
    ("loader().start()", "DataLoader.start() of a loader that is for a loop"),
    ("(loader(iterable=False).set_sample_generator(samples, 1), exe.run(fetch_list=[total]))",
     "the program reads x, y from a DataLoader that is not started\n  hint: call its start()"),
    ("(made := loader(iterable=False).set_sample_generator(samples, 1), made.start(), made.start())",
     "it is started already"),
    ("list(loader().set_sample_generator(lambda: iter([(1,)]), 1))",
     "an example has 1 parts, feed_list has 2: x, y"),
    ("list(loader().set_batch_generator(lambda: iter([(1,)])))",
     "a batch has 1 parts, feed_list has 2: x, y"),
    ("list(loader().set_sample_generator(lambda: iter([(np.zeros(4), 1)]), 1).set_sample_generator("
     "lambda: iter([(np.zeros((2, 2)), 1)]), 1))",
     "a batch for x has the shape [1, 2, 2], the variable [-1, 3]"),
    ("exe.run(feed=[{}, {}])", "feed has 2 parts"),
    ("paddle.batch(samples, 0)", "paddle.batch: batch_size=0"),
    ("loader().set_batch_generator(samples, places=[])", "0 places"),
])
def test_what_is_refused(run, code, what):
    assert what in run(HEAD + f"print(refused(lambda: {code}))").stdout


def test_a_step_of_several_places_gets_a_batch_for_each(run):
    said = run("""
import os
import numpy as np
import fleetrun.fluid as fluid

x = fluid.data("x", [-1, 2], "float32")
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss_name=loss.name)


def batches():
    for step in range(5):
        yield [np.full((3, 2), step, "float32")]


for drop_last in (True, False):
    loader = fluid.io.DataLoader.from_generator([x], 4, drop_last=drop_last)
    loader.set_batch_generator(batches, places=fluid.cpu_places(2))
    print([[feed["x"][0, 0] for feed in step] for step in loader()])
for step in fluid.io.DataLoader.from_generator([x], 4).set_batch_generator(batches, fluid.cpu_places(2)):
    assert exe.run(program, feed=step, fetch_list=[loss])[0].shape == (2,)
numbers = [np.full(2, i, "float32") for i in range(14)]
for workers in (0, 2):
    loader = fluid.io.DataLoader(numbers, [x], fluid.cpu_places(2), False, batch_size=3, num_workers=workers)
    print([[feed["x"][0, 0] for feed in step] for step in loader])
    for step in loader:
        assert exe.run(program, feed=step, fetch_list=[loss])[0].shape == (2,)
print([[one[:, 0].tolist() for one in step] for step in fluid.io.DataLoader(numbers[:6], [x], fluid.cpu_places(2))])
# Without a loop each run takes one batch, whatever the places.
by_program = fluid.io.DataLoader.from_generator([x], 4, iterable=False)
by_program.set_batch_generator(batches, fluid.cpu_places(2)).start()
print([exe.run(fetch_list=[x])[0][0, 0] for _ in range(5)])
""", CPU_NUM="2").stdout.replace("np.float32(", "").replace(")", "").splitlines()
    assert said == [
        "[[0.0, 1.0], [2.0, 3.0]]", "[[0.0, 1.0], [2.0, 3.0], [4.0]]",
        *["[[0.0, 3.0], [6.0, 9.0]]"] * 2, "[[[0.0], [1.0]], [[2.0], [3.0]], [[4.0], [5.0]]]",
        "[0.0, 1.0, 2.0, 3.0, 4.0]",
    ]


def test_replicas_take_a_batch_each(run):
    """Of a loader without a loop. The numbers are those of Paddle 1.8.5, which leaves a last batch out for
    which there are too few others."""
    said = run("""
import numpy as np
import fleetrun.fluid as fluid

x = fluid.data("x", [-1, 1], "float32")
loader = fluid.io.DataLoader.from_generator([x], 4, iterable=False)
loader.set_batch_generator(lambda: ([np.array([[2 * i + 1], [2 * i + 2]], "float32")] for i in range(5)))
w = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(1.0))
loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=w, bias_attr=False))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss_name=loss.name)
for _ in range(2):
    loader.start()
    try:
        while True:
            (losses,) = exe.run(program, fetch_list=[loss])
            weight = np.array(fluid.global_scope().find_var("w").get_tensor())
            print(*(f"{value:.3f}" for value in (*losses, weight[0, 0])))
    except fluid.core.EOFException:
        loader.reset()
""", CPU_NUM="2").stdout.splitlines()
    assert said == ["1.500 3.500 0.750", "4.125 5.625 0.100", "0.150 0.350 -0.150", "-0.825 -1.125 -0.800"]


def test_an_evaluation_on_replicas_takes_the_last_batches_unless_they_are_dropped(run):
    """Whether its loader is for a loop or not; without a loop a training leaves them out."""
    said = run("""
import numpy as np
import fleetrun.fluid as fluid


def batches():
    for step in range(5):
        yield [np.array([[step], [step + 0.5]], "float32")]


def evaluate(drop_last, trains=False):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [-1, 1], "float32")
        without = fluid.io.DataLoader.from_generator([x], 4, iterable=False, drop_last=drop_last)
        out = fluid.layers.scale(fluid.layers.fc(x, 1), 0.0) + x
        if trains:
            fluid.optimizer.SGD(0.0).minimize(fluid.layers.mean(out))
    loop = fluid.io.DataLoader.from_generator([x], 4, drop_last=drop_last)
    loop.set_batch_generator(batches, fluid.cpu_places(2))
    without.set_batch_generator(batches)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    program = fluid.CompiledProgram(main).with_data_parallel()
    print([exe.run(program, feed=step, fetch_list=[out])[0].ravel().tolist() for step in loop()])
    for _ in range(2):
        steps = []
        without.start()
        try:
            while True:
                steps.append(exe.run(program, fetch_list=[out])[0].ravel().tolist())
        except fluid.core.EOFException:
            without.reset()
        print(steps)


evaluate(True)
evaluate(False)
evaluate(False, trains=True)
""", CPU_NUM="2").stdout.splitlines()
    whole = "[[0.0, 0.5, 1.0, 1.5], [2.0, 2.5, 3.0, 3.5]"
    left = whole + ", [4.0, 4.5]]"
    # The one feed that a loop has at last is split, in a training too.
    assert said == [*[whole + "]"] * 3, *[left] * 3, left, *[whole + "]"] * 2]
