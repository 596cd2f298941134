"""Columnar files as numpy arrays, pandas frames and Parquet, and Parquet files as files of a dataset."""

import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

LINES = [f"1 {i % 2} {i % 3 + 1} {' '.join(str(2**40 + i + k) for k in range(i % 3 + 1))} 2 {i * 0.25} -{i}\n"
         for i in range(20000)]
SLOTS = "label:int64[1],ids:int64,x:float32[2]"


def python(directory, text, *arguments, code=0):
    (directory / "script.py").write_text(text)
    done = subprocess.run([sys.executable, "script.py", *arguments], cwd=directory, env=environment(),
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """A folder with the lines as text and as columns."""
    directory = tmp_path_factory.mktemp("columns")
    (directory / "a.txt").write_text("".join(LINES))
    subprocess.run([find_fleetrun(), "data", "convert", "--slots", SLOTS, "--out=a.frc", "a.txt"], check=True,
                   cwd=directory, env=environment(), capture_output=True, timeout=LIMIT)
    return directory


def test_columns_are_read_as_arrays(columns):
    python(columns, """
import numpy
from fleetrun import Error, columns

assert columns.slots("a.frc") == [("label", "int64", True, 1), ("ids", "int64", False, 0),
                                  ("x", "float32", True, 2)]
found = columns.read("*.frc")
rows = numpy.arange(20000)
assert (found["label"][:, 0] == rows % 2).all() and found["label"].dtype == numpy.int64
assert (found["x"] == numpy.stack([rows * 0.25, -rows], 1)).all() and found["x"].dtype == numpy.float32
assert (numpy.diff(found["ids"].offsets) == rows % 3 + 1).all()
assert [row.tolist() for row in found["ids"].rows()[:3]] == [[2**40], [2**40 + 1, 2**40 + 2],
                                                            [2**40 + 2, 2**40 + 3, 2**40 + 4]]
twice = columns.read(["a.frc", "a.frc"], ["ids"])
assert list(twice) == ["ids"] and twice["ids"].offsets[-1] == 2 * found["ids"].offsets[-1]
assert (twice["ids"].rows()[20001] == found["ids"].rows()[1]).all()
assert [len(batch["x"]) for batch in columns.batches("a.frc", rows=9000)] == [9000, 9000, 2000]

bytes_of = bytearray(open("a.frc", "rb").read())
bytes_of[1000] ^= 1
open("damaged.bin", "wb").write(bytes_of)
open("short.bin", "wb").write(bytes_of[:-1])
for call, says in [(lambda: columns.read("damaged.bin"), "damaged.bin"), (lambda: columns.read("short.bin"),
                   "short.bin: is not a columnar file"), (lambda: columns.read("b*.frc"), "no such file"),
                   (lambda: columns.read("a.frc", ["z"]), "a.frc has no slot 'z'")]:
    try:
        call()
    except Error as error:
        assert says in str(error), error
    else:
        raise SystemExit("nothing was refused")
""")


def test_columns_are_a_frame_of_pandas(columns):
    pytest.importorskip("pandas")
    python(columns, """
from fleetrun import columns

frame = columns.read_pandas("a.frc")
assert frame.shape == (20000, 3) and frame["label"].sum() == 10000
assert frame["x"][4].tolist() == [1.0, -4.0] and frame["ids"][4].tolist() == [2**40 + 4, 2**40 + 5]
""")


READ = """
import sys
import numpy
import fleetrun as paddle

paddle.enable_static()
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
x = paddle.static.data(name="x", shape=[None, 2], dtype="float32")
dataset = paddle.distributed.QueueDataset()
dataset.init(batch_size=512, thread_num=1, use_var=[ids, x, label])
dataset.set_filelist(sys.argv[1:])
try:
    for (feed,) in paddle.io.DataLoader.from_dataset(dataset, paddle.CPUPlace(), drop_last=False):
        print(feed["label"].sum(), numpy.array(feed["ids"]).sum(), feed["x"].sum(axis=0).tolist(),
              len(feed["x"]))
except paddle.Error as error:
    print("refused:", error)
"""


def test_a_dataset_reads_parquet_as_it_reads_columns(columns):
    pytest.importorskip("pyarrow")
    python(columns, "from fleetrun import columns; assert columns.to_parquet('a.frc', 'a.parquet') == 20000")
    out = python(columns, READ, "a.parquet", "a.parquet")
    assert out == python(columns, READ, "a.frc", "a.frc")
    assert out.count("\n") == 79


@pytest.mark.parametrize("table,says", [
    ("dict(label=[1, None], ids=[[1], [2]], x=[[1.0, 2.0]] * 2)", "column 'label' has 1 nulls"),
    ("dict(label=['a', 'b'], ids=[[1], [2]], x=[[1.0, 2.0]] * 2)", "of type string; its slot wants int64"),
    ("dict(label=[0.5, 1.0], ids=[[1], [2]], x=[[1.0, 2.0]] * 2)", "of type double; its slot wants int64"),
    ("dict(label=[1, 2], ids=[[1], [2]])", "there is no column 'x'; there are label, ids"),
    ("dict(label=[1, 2], ids=[[1], []], x=[[1.0, 2.0]] * 2)", "slot 'ids': a count of 0"),
    ("dict(label=[1, 2], ids=[[1], [2]], x=[[1.0, 2.0, 3.0]] * 2)", "slot 'x'"),
])
def test_what_a_parquet_file_has_not_is_said(tmp_path, table, says):
    pytest.importorskip("pyarrow")
    python(tmp_path, f"""
import pyarrow
import pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({table}), "b.parquet")
""")
    out = python(tmp_path, READ, "b.parquet")
    assert out.startswith("refused: ") and says in out, out


def test_keys_of_64_bits_are_read_as_text_has_them(tmp_path):
    pytest.importorskip("pyarrow")
    python(tmp_path, """
import pyarrow
import pyarrow.parquet
keys = [[0, 2**63, 2**64 - 1], [2**63 - 1]]
pyarrow.parquet.write_table(pyarrow.table({
    "label": pyarrow.array([1, 2], pyarrow.uint8()), "ids": pyarrow.array(keys, pyarrow.list_(pyarrow.uint64())),
    "x": [[1.0, 2.0]] * 2}), "b.parquet")
open("b.txt", "w").write("".join(f"{len(row)} {' '.join(map(str, row))} 2 1 2 1 {1 + at}\\n"
                                 for at, row in enumerate(keys)))
""")
    out = python(tmp_path, READ, "b.parquet")
    assert out == python(tmp_path, READ, "b.txt") and not out.startswith("refused")


def data(directory, *words, code=0):
    done = subprocess.run([find_fleetrun(), "data", *words], cwd=directory, env=environment(),
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_fleetrun_data_converts_to_parquet_and_back(columns):
    pytest.importorskip("pyarrow")
    said = data(columns, "convert", "--slots", SLOTS, "--out=b.parquet", "a.txt", "a.txt")
    assert said.startswith("b.parquet: 40000 rows, ") and "digest" not in said
    assert not list(columns.glob("b.parquet.*"))
    once = data(columns, "convert", "--out=back.frc", "b.parquet")
    assert once.split(" bytes, ")[1] == data(columns, "convert", "--out=two.frc", "a.frc", "a.frc").split(
        " bytes, ")[1]
    head = data(columns, "head", "--json", "back.frc")
    assert data(columns, "head", "--json", "b.parquet") == head.replace("back.frc", "b.parquet")


def test_fleetrun_data_says_what_parquet_needs(columns, tmp_path):
    try:
        import pyarrow  # noqa: F401
        says = "not to be read as Parquet"
    except ImportError:
        says = "Parquet needs pyarrow, which is not installed: pip install pyarrow"
        assert "Parquet needs pyarrow" in data(columns, "convert", "--out=c.parquet", "a.frc", code=125)
        assert not list(columns.glob("c.parquet*"))
    (tmp_path / "no.parquet").write_bytes(b"1 2 3")
    assert says in data(tmp_path, "head", "no.parquet", code=125)


def test_without_pyarrow_it_is_said_what_is_missing(tmp_path):
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    hidden = READ.replace("import numpy\n", """import importlib.util
import numpy
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pyarrow" else find(name, *rest)
sys.modules["pyarrow"] = None
from fleetrun import columns
try:
    columns.to_parquet("b.frc", "c.parquet")
except columns.Error as error:
    print(error)
""")
    said = [line for line in python(tmp_path, hidden, "b.parquet").splitlines() if "hint" not in line]
    assert said == ["Parquet needs pyarrow, which is not installed",
                    "refused: b.parquet: Parquet needs pyarrow, which is not installed"]
    (tmp_path / "c.txt").write_text("")
    out = python(tmp_path, READ, "b.parquet", "c.txt")
    assert out.splitlines()[0] == "refused: b.parquet is Parquet, and c.txt is not"
