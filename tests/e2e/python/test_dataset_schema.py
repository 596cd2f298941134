"""A dataset that reads delimited text by a schema: the batches are those
of the text that `fleetrun data read` prints."""

import pathlib
import random

from fleetrun_job import find_fleetrun

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "criteo"

SCRIPT = """
import sys
import fleetrun as paddle
from fleetrun import _native

paddle.enable_static()
counts = paddle.static.data(name="counts", shape=[None, 13], dtype="float32")
words = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64", lod_level=i % 2) for i in range(1, 27)]
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")


def batches(**settings):
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=[counts, *words, label], batch_size=64, **settings)
    dataset.set_filelist(["raw.txt"])
    source = dataset.native()
    _native.start_reading(source, True)
    read = []
    while (batch := _native.read_batch(source, 0)) is not None:
        read.append([[None if array is None else memoryview(array).tobytes() for array in slot] for slot in batch])
    return read


direct = batches(schema=sys.argv[1])
through_text = batches(pipe_command=f"{sys.argv[2]} data read --schema={sys.argv[1]}")
assert direct == through_text
print(len(direct))
"""


def lines(rows):
    draw = random.Random(5)
    for _ in range(rows):
        counts = [draw.choice(("", str(draw.randint(-2, 10**6)), f"{draw.uniform(0, 99):.3f}"))
                  for _ in range(13)]
        words = [draw.choice(("", f"{draw.getrandbits(32):08x}")) for _ in range(26)]
        yield "\t".join([draw.choice("01"), *counts, *words]) + "\n"


def test_the_batches_are_those_of_the_text(run, tmp_path):
    (tmp_path / "raw.txt").write_text("".join(lines(1000)))
    script = (f"import sys\nsys.argv[1:] = [{str(EXAMPLE / 'criteo.json')!r}, {str(find_fleetrun())!r}]\n" +
              SCRIPT)
    assert run(script).stdout == "16\n"


def test_slots_that_the_schema_does_not_have_are_named(run, tmp_path):
    done = run("""
import fleetrun as paddle
paddle.enable_static()
x = paddle.static.data(name="x", shape=[None, 1], dtype="int64")
dataset = paddle.distributed.QueueDataset()
dataset.init(use_var=[x])
open("s.json", "w").write('{"columns": ["a"], "slots": [{"each": ["a"], "type": "int64"}]}')
dataset.set_schema("s.json")
dataset.set_filelist([])
try:
    dataset.native()
except paddle.Error as error:
    print(error.kind, error.what)
""")
    assert done.stdout == f"config slot 'x' is not in the schema {tmp_path / 's.json'}\n"


def test_examples_in_memory_are_the_same(run, tmp_path):
    done = run("""
import fleetrun as paddle
from fleetrun import _native

paddle.enable_static()
x = paddle.static.data(name="x", shape=[None, 2], dtype="float32")
open("s.json", "w").write('{"delimiter": ",", "columns": 3, "slots": [{"name": "x", "type": "float32", "columns": ["3", "1"]}]}')
open("raw.txt", "w").write("1,2,3\\n4,5,6\\n")
dataset = paddle.distributed.InMemoryDataset()
dataset.init(use_var=[x], batch_size=2)
dataset.update_settings(schema="s.json")
dataset.set_filelist("raw.txt")
dataset.load_into_memory()
source = dataset.native()
_native.start_reading(source, True)
print(*memoryview(_native.read_batch(source, 0)[0][0]).tolist())
dataset.set_parse_ins_id(True)
try:
    dataset.load_into_memory()
except paddle.Error as error:
    print(error.kind, error.what)
""")
    assert done.stdout == (
        "[3.0, 1.0] [6.0, 4.0]\nconfig delimited text, which a schema describes, has no ids, contents or log "
                           "keys before its slots\n")
