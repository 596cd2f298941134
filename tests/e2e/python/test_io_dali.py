"""from_dali: with an object that does what DALI's documentation says of a pipeline,
and with DALI where it is installed."""

import subprocess
import sys

import pytest
from conftest import environment
from flow import LIMIT

HEAD = """
import itertools
import numpy as np
import fleetrun as paddle
from fleetrun.io import from_dali

class TensorList:
    # One buffer for all batches, as DALI's is only valid until the next run().
    memory = np.zeros((4, 2), "uint8")
    def __init__(self, numbers, ragged=False):
        self.numbers, self.ragged = numbers, ragged
        self.memory[:] = 255
        self.memory[:len(numbers), :] = np.array(numbers)[:, None]
    def __len__(self): return len(self.numbers)
    def is_dense_tensor(self): return not self.ragged
    def as_array(self):
        assert not self.ragged
        return self.memory[:len(self.numbers)]
    def at(self, i): return self.memory[i, :i % 2 + 1]
class OnGpu:
    def __init__(self, held): self.held = held
    def __len__(self): return len(self.held)
    def as_cpu(self): return self.held

class Source:
    # fn.external_source(batch=True): StopIteration at the end of an epoch, and until reset().
    def __init__(self, n, **options): self.n, self.at, self.resets, self.built, self.options = n, 0, 0, 0, options
    def build(self): self.built += 1
    def reset(self):
        self.resets += 1
        self.at = 0
    def run(self):
        numbers = list(range(self.at, min(self.at + 4, self.n)))
        if not numbers:
            raise StopIteration
        self.at += 4
        return TensorList(numbers, **self.options), OnGpu(TensorList(numbers, **self.options))

class Reader(Source):
    # fn.readers.*: never ends.
    def __init__(self, n, pad, shards=1, shard=0):
        super().__init__(n)
        self.meta = {"epoch_size": n, "epoch_size_padded": -(-n // shards) * shards, "number_of_shards": shards,
                     "shard_id": shard, "pad_last_batch": pad, "stick_to_shard": True}
        self.begin, self.end = n * shard // shards, n * (shard + 1) // shards
        self.at = self.begin
    def reader_meta(self): return {"Reader": self.meta}
    def reset(self): self.resets += 1
    def run(self):
        numbers = []
        for _ in range(4):
            if self.meta["pad_last_batch"] and self.at >= self.end:
                numbers.append(self.end - 1)
            else:
                numbers.append(self.at)
                self.at = self.at + 1 if self.at + 1 < self.end or self.meta["pad_last_batch"] else self.begin
        if self.at >= self.end:
            self.at = self.begin
        return (TensorList(numbers),)
def values(batches): return [[row[0] for row in batch[0].tolist()] for batch in batches]
def refused(call):
    try:
        call()
    except paddle.Error as error:
        return str(error)
    raise SystemExit("nothing was refused")
"""


def test_a_pipeline_stands_in_for_a_loader(run):
    run(HEAD + """
source = Source(10)
loader = from_dali(source)
epochs = [list(loader) for _ in range(2)]
assert values(epochs[0]) == values(epochs[1]) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], "batches outlive the next run()"
assert epochs[0][1][1].tolist() == epochs[0][1][0].tolist() and epochs[0][0][0].dtype == np.uint8
assert source.built == 1 and source.resets == 2
assert values(itertools.islice(from_dali(Source(5), infinite=True), 5)) == [[0, 1, 2, 3], [4]] * 2 + [[0, 1, 2, 3]]
named = next(from_dali(Source(3), ["x", "y"])())
assert list(named) == ["x", "y"] and named["y"].tolist() == [[0, 0], [1, 1], [2, 2]]
ragged = list(from_dali(Source(5, ragged=True)))
assert [[one.tolist() for one in batch[0]] for batch in ragged] == [[[0], [1, 1], [2], [3, 3]], [[4]]]
""")


def test_a_reader_that_never_ends_is_counted(run):
    run(HEAD + """
padded = from_dali(Reader(10, True), reader_name="Reader")
assert values(padded) == values(padded) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
shard = from_dali(Reader(10, True, shards=3, shard=1), reader_name="Reader")
assert values(shard) == values(shard) == [[3, 4, 5]]
filled = from_dali(Reader(6, False), reader_name="Reader", last_batch="fill")
assert values(filled) == [[0, 1, 2, 3], [4, 5, 0, 1]] and values(filled) == [[2, 3, 4, 5]] and len(values(filled)) == 2
assert values(from_dali(Reader(6, True), size=5)) == [[0, 1, 2, 3], [4]]
assert len(list(itertools.islice(from_dali(Reader(6, True), size=5, infinite=True), 9))) == 9
""")


@pytest.mark.parametrize("code, what", [
    ("from_dali([1])", "list has no run(), which a DALI pipeline has"),
    ("from_dali(Source(3), size=3, reader_name='Reader')", "size and reader_name"),
    ("from_dali(Source(3), last_batch='drop')", "last_batch='drop'"),
    ("list(from_dali(Source(3), ['x']))", "the pipeline has 2 outputs, names has 1"),
    ("from_dali(Reader(3, True), reader_name='Other')",
     "the pipeline has no reader 'Other'\n  hint: it has Reader"),
    ("from_dali(Reader(3, False), reader_name='Reader')",
     "fills up the last batch with examples of the next epoch"),
    ("from_dali(Reader(3, False, 2), reader_name='Reader', last_batch='fill')", "in 2 shards"),
    ("list(from_dali(Source(0), infinite=True))", "an epoch without a batch"),
])
def test_what_from_dali_refuses(run, code, what):
    assert what in run(HEAD + f"print(refused(lambda: {code}))").stdout


def test_dali_itself(run):
    there = subprocess.run([sys.executable, "-c", "import nvidia.dali"], capture_output=True,
                           env=environment(), timeout=LIMIT)
    if there.returncode:
        pytest.skip("NVIDIA DALI is not installed")
    run("""
import numpy as np
from nvidia.dali import fn, pipeline_def, types
from fleetrun.io import from_dali
for number in range(10):
    np.save(f"{number}.npy", np.full((3, 2), number, "uint8"))
class Examples:
    def __iter__(self):
        self.at = 0
        return self
    def __next__(self):
        if self.at >= 10:
            self.at = 0
            raise StopIteration
        self.at += 1
        return np.full((self.at % 2 + 1, 2), self.at, "uint8")
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def source():
    examples = fn.external_source(source=Examples(), batch=False)
    return examples, fn.cast(fn.reductions.max(examples), dtype=types.FLOAT)
loader = from_dali(source(), ["ragged", "most"])
for epoch in range(2):
    first, second = loader
    assert [one.shape for one in second["ragged"]] == [(2, 2), (1, 2)] * 2 and second["most"].tolist() == [5, 6, 7, 8]
    assert [int(one.max()) for one in first["ragged"]] == [1, 2, 3, 4] and first["most"].dtype == np.float32
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def reader(shards, shard):
    return fn.readers.numpy(file_root=".", file_filter="*.npy", name="Reader", pad_last_batch=True, num_shards=shards,
                            shard_id=shard, stick_to_shard=True)
for shards, shard, expected in (1, 0, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]), (3, 1, [[3, 4, 5]]), (3, 2, [[6, 7, 8, 9]]):
    loader = from_dali(reader(shards, shard), reader_name="Reader")
    for epoch in range(3):
        assert [batch[0][:, 0, 0].tolist() for batch in loader] == expected, (shards, shard, epoch)
""")
