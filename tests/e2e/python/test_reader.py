"""paddle.reader, and the other names that scripts of Paddle 2.6 take
from beside the modules that do the work."""

HEAD = """
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
"""


def test_readers_of_readers(run):
    run(HEAD + """
import random
from fleetrun import reader
count = lambda start, size=5: lambda: iter(range(start, start + size))
made = lambda one: list(one())
assert made(reader.chain(count(0, 2), count(10, 2))) == [0, 1, 10, 11]
assert made(reader.map_readers(lambda a, b: a * b, count(1, 3), count(4, 9))) == [4, 10, 18]
assert made(reader.compose(count(0, 2), lambda: iter([(7, 8), (9, 10)]))) == [(0, 7, 8), (1, 9, 10)]
assert made(reader.compose(count(0, 2), count(5), check_alignment=False)) == [(0, 5), (1, 6)]
try:
    made(reader.compose(count(0, 2), count(5)))
    raise SystemExit("not aligned, and nothing was said")
except reader.ComposeNotAligned:
    pass
assert made(reader.firstn(count(3), 2)) == [3, 4]
random.seed(1)
shuffled = made(reader.shuffle(count(0, 10), 4))
assert shuffled != list(range(10)) and sorted(shuffled[:4]) == [0, 1, 2, 3] and sorted(shuffled) == list(range(10))
passes = []
cached = reader.cache(lambda: iter([passes.append(1), 5]))
assert made(cached) == made(cached) == [None, 5] and passes == [1]
assert made(reader.buffered(count(0, 100), 3)) == list(range(100))
assert next(iter(reader.buffered(count(0, 100), 3)())) == 0  # left early
def failing():
    yield 1
    raise ValueError("no more")
for broken in (reader.buffered(lambda: failing(), 2), reader.xmap_readers(lambda x: x, lambda: failing(), 2, 2)):
    try:
        made(broken)
        raise SystemExit("the error was lost")
    except ValueError as error:
        assert str(error) == "no more"
assert made(reader.xmap_readers(lambda x: x * x, count(0, 50), 4, 8)) == [x * x for x in range(50)]
# Paddle's sizes of 0.
assert made(reader.buffered(count(0), 0)) == made(reader.shuffle(count(0), 0)) == [0, 1, 2, 3, 4]
assert made(reader.multiprocess_reader([count(0)], False, 0)) == [0, 1, 2, 3, 4]
together = made(reader.multiprocess_reader([count(0, 3), count(10, 6)], queue_size=4))
assert [x for x in together if x < 10] == [0, 1, 2] and [x for x in together if x >= 10] == list(range(10, 16))
""")


def test_a_dataset_says_what_it_reads(run):
    done = run(HEAD + """
a = paddle.static.data("a", [None, 1], "int64", lod_level=1)
b = paddle.static.data("b", [None, 13], "float32")
dataset = paddle.distributed.InMemoryDataset()
dataset.init(batch_size=7, thread_num=2, use_var=[a, b], pipe_command='python x.py "q"')
print(dataset.desc(), end="")
old = paddle.base.DatasetFactory().create_dataset("InMemoryDataset")
old.set_feed_type("SlotRecordInMemoryDataFeed")
print(old.desc(), end="")
try:
    old.set_feed_type("PaddleBoxDataFeed")
except paddle.Error as error:
    print(error.what)
""")
    # What Paddle 2.6.2 printed.
    assert done.stdout == '''name: "MultiSlotInMemoryDataFeed"
batch_size: 7
multi_slot_desc {
  slots {
    name: "a"
    type: "uint64"
    is_used: true
  }
  slots {
    name: "b"
    type: "float"
    is_dense: true
    is_used: true
    shape: -1
    shape: 13
  }
}
pipe_command: "python x.py \\"q\\""
name: "SlotRecordInMemoryDataFeed"
pipe_command: "cat"
InMemoryDataset.set_feed_type('PaddleBoxDataFeed') is not supported
'''


def test_names_beside_the_modules(run, package):
    done = run("""
import paddle
from paddle.framework import io_utils
from paddle.common_ops_import import *
paddle.enable_static()
assert Variable is paddle.static.Variable and default_main_program is paddle.static.default_main_program and not in_dygraph_mode()
x = paddle.static.data("x", [None, 2])
loss = paddle.mean(paddle.nn.Linear(2, 1)(x))
assert paddle.static.default_main_program()._fleet_opt is None
paddle.optimizer.Adam(0.1).minimize(loss)
program = paddle.static.default_main_program()
kinds = {v.name: (io_utils.is_persistable(v), io_utils.is_parameter(v), io_utils.is_belong_to_optimizer(v)) for v in program.list_vars()}
assert kinds["x"] == kinds[loss.name] == (False, False, False) and kinds["linear_0.w_0"] == (True, True, False)
assert kinds["linear_0.w_0_moment1_0"] == (True, False, True)
assert program._fleet_opt == {}
for use in (lambda: paddle.jit.save(None, "model"), lambda: paddle.jit.to_static(print)):
    try:
        use()
    except Exception as error:
        print(error)
""", PYTHONPATH=package + "/_compat")
    assert done.stdout.splitlines()[::2] == [
        "paddle.jit.save: fleetrun has no dynamic models",
        "paddle.jit.to_static: fleetrun has no dynamic models",
    ]
