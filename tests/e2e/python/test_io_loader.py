"""DataLoader: batches, order, workers and their memory, seeds, streams.
What goes wrong: test_io_faults.py."""

import subprocess
import sys

import pytest
from conftest import environment
from fleetrun_job import ROOT
from flow import LIMIT

HEAD = """
import collections, itertools, multiprocessing, os, threading
import numpy as np
import fleetrun as paddle
from fleetrun.io import *

def plain(batch):
    if isinstance(batch, np.ndarray): return batch.tolist()
    if isinstance(batch, dict): return {key: plain(part) for key, part in batch.items()}
    return [plain(part) for part in batch] if isinstance(batch, (list, tuple)) else batch

class Examples(Dataset):
    def __init__(self, example, n=5): self.example, self.n = example, n
    def __len__(self): return self.n
    def __getitem__(self, i): return self.example(i)

class Stream(IterableDataset):
    def __init__(self, *lengths): self.lengths = lengths
    def __iter__(self):
        info = get_worker_info()
        number = info.id if info else 0
        return iter([10 * number + place for place in range(self.lengths[number])])
"""


def have_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], env=environment(), timeout=LIMIT,
                          stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_have_paddles_form_and_order(run, workers):
    run(HEAD + f"""
workers = {workers}
""" + """
def batches(example, **options):
    return [plain(batch) for batch in DataLoader(Examples(example), num_workers=workers, **{"batch_size": 2, **options})]
# As Paddle 2.6.2 gives them, in static and in dynamic mode.
assert batches(lambda i: np.full(3, i, "uint8")) == [[[0] * 3, [1] * 3], [[2] * 3, [3] * 3], [[4] * 3]]
assert batches(lambda i: (np.full((), i), i)) == [[[0, 1], [0, 1]], [[2, 3], [2, 3]], [[4], [4]]]
assert batches(lambda i: (np.ones(1) * i,)) == [[[[0], [1]]], [[[2], [3]]], [[[4]]]]
assert batches(lambda i: {"a": np.zeros(1), "b": i / 2})[1] == {"a": [[0], [0]], "b": [1, 1.5]}
assert batches(lambda i: [np.zeros(1), [i, {"x": "t%d" % i}]])[1] == [[[0], [0]], [[2, 3], {"x": ["t2", "t3"]}]]
assert batches(lambda i: i, drop_last=True) == [[0, 1], [2, 3]]
assert batches(lambda i: (i, [i]), batch_size=None) == [[i, [i]] for i in range(5)]
assert batches(lambda i: np.zeros((2, 0)))[0] == [[[], []], [[], []]]
types = [part.dtype.name for part in next(iter(DataLoader(Examples(
    lambda i: (np.uint8(1), True, 1, 1.5, np.zeros(2, "float16"), np.float32(2))), num_workers=workers)))]
assert types == ["uint8", "bool", "int64", "float64", "float16", "float32"]
mixed = next(iter(DataLoader(Examples(lambda i: np.zeros(2, "int32" if i else "float32")), num_workers=workers, batch_size=2)))
assert mixed.dtype == "float64"
Pair = collections.namedtuple("Pair", "a b")
sums = lambda examples: Pair(np.array(examples).sum(), {"all": np.array(examples)[::-1], "n": None})
pair = list(DataLoader(Examples(lambda i: i), batch_size=3, collate_fn=sums, num_workers=workers))[0]
assert type(pair) is Pair and pair.a == 3 and pair.b["all"].tolist() == [2, 1, 0] and pair.b["n"] is None
order = DistributedBatchSampler(range(5), 2, 2, 1, True)
again = DistributedBatchSampler(range(5), 2, 2, 1, True)
loader = DataLoader(Examples(lambda i: i), batch_sampler=order, num_workers=workers)
assert [plain(batch) for batch in loader()] == list(again) and [plain(batch) for batch in loader] == list(again)
assert len(loader) == 2
many = [plain(batch) for batch in DataLoader(Examples(lambda i: i, 100), batch_size=3, num_workers=workers, prefetch_factor=3)]
assert many == [list(range(k, min(k + 3, 100))) for k in range(0, 100, 3)]
fed = list(DataLoader(Examples(lambda i: (np.ones(2), i)), feed_list=["x", "y"], return_list=False, num_workers=workers))
assert len(fed) == 5 and plain(fed[4]) == [{"x": [[1, 1]], "y": [4]}]
assert multiprocessing.active_children() == []
""")


def test_a_batch_lies_in_shared_memory_and_is_not_copied(run):
    run(HEAD + """
def mapping(array):
    # Where the kernel says that the array's memory comes from.
    address = array.__array_interface__["data"][0]
    for line in open("/proc/self/maps"):
        begin, end = (int(text, 16) for text in line.split()[0].split("-"))
        if begin <= address < end:
            return line.split(maxsplit=5)[5].strip() if len(line.split()) > 5 else ""

SIZE = 224 * 224 * 3
def example(i):
    # What numpy allocated in this worker since the batch before: only the example itself, never a batch.
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    return np.full((224, 224, 3), i % 256, "uint8"), peak
import tracemalloc
loader = DataLoader(Examples(example, 320), batch_size=32, num_workers=1, worker_init_fn=lambda number: tracemalloc.start())
before = set(os.listdir("/dev/shm"))
addresses, seen = set(), 0
for place, (images, peaks) in enumerate(loader):
    assert mapping(images) == mapping(peaks) == "/memfd:fleetrun-batch (deleted)"
    assert images.dtype == np.uint8 and images.flags.writeable
    assert images[5].max() == images[5].min() == (32 * place + 5) % 256
    assert set(os.listdir("/dev/shm")) == before
    addresses.add(images.__array_interface__["data"][0])
    assert peaks[0] < 33 * SIZE + 500000, "the examples are kept until they are stacked, and nothing else"
    seen += 1
# 2 tasks ahead, one in use, one just dropped: their memory serves all batches.
assert seen == 10 and len(addresses) <= 5, addresses
del images, peaks
import gc
gc.collect()
assert "fleetrun-batch" not in open("/proc/self/maps").read()
""")


def test_batches_that_are_kept_stay_as_they_are(run):
    run(HEAD + """
loader = DataLoader(Examples(lambda i: np.full(1000 * (i % 7 + 1), i), 60), num_workers=2)
kept = [batch for batch in loader]
part = [batch[0, ::7] for batch in kept]
del loader
assert all((batch == place).all() for place, batch in enumerate(kept))
del kept
assert all((one == place).all() for place, one in enumerate(part))
""")


def test_long_texts_and_long_tasks_do_not_block_each_other(run):
    run(HEAD + """
loader = DataLoader(Examples(lambda i: "text %d" % i, 400000), batch_size=50000, num_workers=2)
assert [(batch[0], batch[-1], len(batch)) for batch in loader][-1] == ("text 350000", "text 399999", 50000)
""")


# With numpy.random.seed(3), Paddle 2.6.2 gives these.
SEEDED = ["[[5, 842, 223], [2, 594, 215]]", "[[4, 913, 92], [0, 687, 682]]", "[[3, 425, 536], [1, 949, 418]]",
          "789"]


@pytest.mark.parametrize("kernel", ["today's", "4.18"])
def test_pythons_that_were_built_on_an_old_linux_have_workers_too(run, kernel):
    """conda's and others' os has neither memfd_create() nor pidfd_open()."""
    run(f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'support')!r}); kernel = {kernel!r}" + """
import os, signal
del os.memfd_create, os.pidfd_open
if kernel == "4.18":
    from old_kernel import AFTER_5_0, forbid
    forbid(AFTER_5_0)
""" + HEAD + """
loader = DataLoader(Examples(lambda i: i), batch_size=2, num_workers=2)
assert [plain(batch) for batch in loader] == [[0, 1], [2, 3], [4]]
def killed(i):
    if i == 2: os.kill(os.getpid(), signal.SIGKILL)
    return i
try:
    list(DataLoader(Examples(killed), num_workers=1))
except paddle.Error as error:
    assert "was killed by SIGKILL" in str(error), error
else:
    raise AssertionError("the end of a worker is not seen")
ready, told = os.pipe()
owner = os.fork()
if owner == 0:
    threading.excepthook = lambda _: os._exit(1)
    def work():  # forked by another thread than the main one
        batches = iter(DataLoader(Examples(lambda i: i), num_workers=1))
        os.write(told, b"%d" % len(next(batches)))
        threading.Event().wait()
    threading.Thread(target=work, daemon=True).start()
    threading.Event().wait()
os.close(told)
assert os.read(ready, 20) == b"1"
os.kill(owner, signal.SIGKILL)
os.waitpid(owner, 0)
assert os.read(ready, 1) == b""  # who has the other end, the worker, has ended too
""")


def test_workers_draw_the_numbers_that_paddles_draw(run):
    done = run(HEAD + """
import random
np.random.seed(3)
for batch in DataLoader(Examples(lambda i: np.array([i, np.random.randint(1000), random.randrange(1000)]), 6), batch_size=2,
                        shuffle=True, num_workers=2):
    print(plain(batch))
print(np.random.randint(1000))
""")
    assert done.stdout.splitlines() == SEEDED


def test_workers_know_who_they_are(run):
    run(HEAD + """
import dataclasses
told = []
def init(number):
    told.append((number, get_worker_info().id))
def example(i):
    info = get_worker_info()
    try:
        info.id = 5
    except dataclasses.FrozenInstanceError:
        return info.id, info.num_workers, len(info.dataset), info.seed, told[0][0], told[0][1], len(told), os.getpid()
assert get_worker_info() is None
batches = [plain(batch) for batch in DataLoader(Examples(example, 4), num_workers=2, worker_init_fn=init)]
assert [batch[0][0] for batch in batches] == [0, 1, 0, 1] and all(batch[1:3] == [[2], [4]] for batch in batches)
assert len({batch[3][0] for batch in batches}) == 1 and len({batch[7][0] for batch in batches}) == 2
assert all(batch[4] == batch[5] == batch[0] and batch[6] == [1] for batch in batches) and told == []
assert get_worker_info() is None
""")


def test_streams_are_shared_out_by_the_workers(run):
    run(HEAD + """
def batches(lengths, **options):
    return [plain(batch) for batch in DataLoader(Stream(*lengths), **options)]
assert batches([5], batch_size=2) == [[0, 1], [2, 3], [4]]
assert batches([5], batch_size=2, drop_last=True) == [[0, 1], [2, 3]]
assert batches([3], batch_size=None) == [0, 1, 2]
assert batches([3, 7, 0], batch_size=2, num_workers=3) == [[0, 1], [10, 11], [2], [12, 13], [14, 15], [16]]
assert batches([3, 7, 0], batch_size=2, num_workers=3, drop_last=True) == [[0, 1], [10, 11], [12, 13], [14, 15]]
assert batches([0, 0], num_workers=2) == []
loader = DataLoader(Stream(3, 4), batch_size=2, num_workers=2, persistent_workers=True)
assert [plain(batch) for batch in loader] == [plain(batch) for batch in loader] == [[0, 1], [10, 11], [2], [12, 13]]
try:
    len(loader)
except TypeError as error:
    print(error)
""")


def test_infinite_reading_goes_on_with_the_next_epoch(run):
    run(HEAD + """
for workers in 0, 2:
    sampler = DistributedBatchSampler(range(7), 2, 1, 0, True)
    expected = [*sampler, *sampler, *sampler]
    sampler.set_epoch(0)
    loader = DataLoader(Examples(lambda i: i, 7), batch_sampler=sampler, num_workers=workers, infinite=True)
    assert [plain(batch) for batch in itertools.islice(loader, 12)] == expected and len(loader) == 4
    stream = DataLoader(Stream(3, 2), num_workers=workers, infinite=True)
    expected = [[0], [1], [2]] * 3 if workers == 0 else [[0], [10], [1], [11], [2], [10], [0], [11], [1]]
    assert [plain(batch) for batch in itertools.islice(stream, 9)] == expected
assert multiprocessing.active_children() == []
""")


def test_persistent_workers_serve_the_next_pass(run):
    run(HEAD + """
loader = DataLoader(Examples(lambda i: (i, os.getpid()), 8), num_workers=2, persistent_workers=True)
first = [plain(batch) for batch in loader]
children = {child.pid for child in multiprocessing.active_children()}
for batch in loader:
    break
assert [plain(batch) for batch in loader] == first, "what a pass that was left had asked for is dropped"
assert {batch[1][0] for batch in first} == children == {child.pid for child in multiprocessing.active_children()}
for batch in DataLoader(Examples(lambda i: i), num_workers=2, persistent_workers=True):
    pass  # the pass keeps its DataLoader
loader.close()
del loader
assert multiprocessing.active_children() == []
""")


def test_leaving_a_pass_ends_its_workers(run):
    run(HEAD + """
for batch in DataLoader(Examples(lambda i: i, 1000), num_workers=3):
    assert len(multiprocessing.active_children()) == 3
    break
assert multiprocessing.active_children() == []
pass_ = iter(DataLoader(Examples(lambda i: i, 1000), num_workers=2))
next(pass_)
pass_.close()
assert multiprocessing.active_children() == [] and list(pass_) == []
threads = threading.active_count()
batches = iter(DataLoader(Examples(lambda i: i, 10**9)))
next(batches)
thread = next(one for one in threading.enumerate() if one.name == "fleetrun-loader")
del batches
thread.join()
assert threading.active_count() == threads
""")


def test_the_thread_reads_ahead_and_only_so_far(run):
    run(HEAD + """
read, asked = threading.Semaphore(0), []
def example(i):
    asked.append(i)
    read.release()
    return i
batches = iter(DataLoader(Examples(example, 100), batch_size=2, prefetch_factor=3))
for _ in range(6):
    read.acquire()
assert asked[:6] == list(range(6)), "three batches are made before the first is asked for"
for _ in range(2):
    next(batches)
for _ in range(4):
    read.acquire()
assert len(asked) == 10, "and one more for each that is taken"
asked.clear()
batches = iter(DataLoader(Examples(example, 100), batch_size=2, use_buffer_reader=False))
assert asked == [] and plain(next(batches)) == [0, 1] and asked == [0, 1]
""")


def test_torch_tensors_share_the_memory(run):
    if not have_torch():
        pytest.skip("PyTorch is not installed")
    run(HEAD + """
import torch
for workers in 0, 2:
    loader = DataLoader(Examples(lambda i: (np.full((3, 4), i, "uint8"), torch.full((2,), i / 2), {"n": i}), 7), batch_size=2,
                        num_workers=workers, to="torch")
    arrays = DataLoader(loader.dataset, batch_size=2, num_workers=workers)
    for (image, half, more), (a, b, c) in zip(loader, arrays):
        assert image.dtype == torch.uint8 and half.dtype == torch.float32 and more["n"].dtype == torch.int64
        assert image.tolist() == a.tolist() and half.tolist() == b.tolist() and more["n"].tolist() == c["n"].tolist()
        if workers:
            maps = [line.split()[0].split("-") for line in open("/proc/self/maps") if "fleetrun-batch" in line]
            for tensor in image, half, more["n"]:
                assert any(int(begin, 16) <= tensor.data_ptr() < int(end, 16) for begin, end in maps)
    half = lambda batch: torch.ones(30000).bfloat16()
    halves = next(iter(DataLoader(Examples(lambda i: i), num_workers=workers, collate_fn=half)))
    assert halves.dtype == torch.bfloat16 and halves.float().sum() == 30000 and len(halves) == 30000
    own = DataLoader(Examples(lambda i: torch.tensor([i, 2])), batch_size=2, num_workers=workers, collate_fn=torch.stack)
    assert [batch.tolist() for batch in own] == [[[0, 2], [1, 2]], [[2, 2], [3, 2]], [[4, 2]]]
""")


def test_document_001_reads_its_share(run, package):
    # The data set, the sampler and the loader are the document's, smaller; its model needs the dynamic mode.
    code = """
import numpy as np
import paddle
from paddle.distributed import fleet, get_rank
from paddle.io import Dataset, DistributedBatchSampler, DataLoader
batch_num, batch_size, class_dim = 6, 4, 102
class RandomDataset(Dataset):
    def __init__(self, num_samples):
        self.num_samples = num_samples
    def __getitem__(self, idx):
        image = np.random.random([3, 22, 22]).astype('float32')
        label = np.random.randint(0, class_dim - 1, (1, )).astype('int64')
        return image, label
    def __len__(self):
        return self.num_samples
dataset = RandomDataset(batch_num * batch_size)
sampler = DistributedBatchSampler(dataset, rank=get_rank(),
                                  batch_size=batch_size, shuffle=False, drop_last=True)
train_loader = DataLoader(dataset,
                          batch_sampler=sampler,
                          num_workers=1)
for eop in range(2):
    for batch_id, data in enumerate(train_loader()):
        img, label = data
        assert img.shape == (4, 3, 22, 22) and img.dtype == "float32" and label.shape == (4, 1) and label.dtype == "int64"
    print(eop, batch_id, list(sampler))
"""
    done = run(code, PYTHONPATH=package + "/_compat", PADDLE_TRAINERS_NUM=2, PADDLE_TRAINER_ID=1)
    assert done.stdout.splitlines() == [f"{epoch} 2 [[4, 5, 6, 7], [12, 13, 14, 15], [20, 21, 22, 23]]"
                                        for epoch in (0, 1)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_goes_on_with_the_batch_after_the_last_that_came_out(run, workers):
    run(HEAD + f"workers = {workers}\n" + """
import json, random
class Odd:  # a sampler of somebody else's
    def __iter__(self):
        order = list(range(20)); random.shuffle(order)
        for i in range(0, 20, 4): yield [order[i], order[i + 1], np.int64(order[i + 2])]
    def __len__(self): return 5
makers = {
    "distributed": lambda: DistributedBatchSampler(range(20), 3, 1, 0, shuffle=True),
    "shuffled": lambda: BatchSampler(range(20), shuffle=True, batch_size=3),
    "in order": lambda: BatchSampler(range(20), batch_size=3),
    "odd": Odd,
}
def loader(maker, **options):
    return DataLoader(Examples(lambda i: i, 20), batch_sampler=maker(), num_workers=workers, **options)
for name, maker in makers.items():
    for infinite in (False, True) if name in ("distributed", "in order") else (False,):
        for taken in (0, 1, 3, 5, 9) if infinite else (0, 1, 3, 5):
            np.random.seed(3); random.seed(4)
            one = loader(maker, infinite=infinite)
            batches = iter(one)
            seen = [plain(next(batches)) for _ in range(taken)]
            state = json.loads(json.dumps(one.state_dict()))
            rest = [plain(batch) for batch in itertools.islice(batches, 8)]
            batches.close()
            other = loader(maker, infinite=infinite)
            np.random.seed(77)
            if not taken: np.random.seed(3); random.seed(4)
            other.load_state_dict(state)
            assert other.state_dict() == state, (name, taken)
            again = iter(other)
            if taken: assert other.state_dict() == state, (name, taken, state, other.state_dict())
            assert [plain(batch) for batch in itertools.islice(again, 8)] == rest, (name, infinite, taken)
            again.close()
one = loader(makers["distributed"])
for epoch in range(2): list(one)
assert one.state_dict()["batch_sampler"]["epoch"] == 2 and one.state_dict()["batch_sampler"]["cuts"] == []
""")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_goes_on_and_what_does_not_fit_is_refused(run, workers):
    run(HEAD + f"workers = {workers}\n" + """
def stream(): return DataLoader(Stream(7, 5), batch_size=2, num_workers=workers)
one = stream()
batches = iter(one)
first = [plain(next(batches)) for _ in range(2)]
state = one.state_dict()
rest = [plain(batch) for batch in batches]
other = stream()
other.load_state_dict(state)
assert [plain(batch) for batch in other] == rest and len(rest) >= 2
assert other.state_dict()["batches"] == 0
def says(call):
    try: call()
    except paddle.Error as error: return str(error)
    raise SystemExit("nothing was refused")
state["num_workers"] = 7
assert "for a stream that 7 workers read" in says(lambda: other.load_state_dict(state))
numbers = DataLoader(Examples(lambda i: i, 9), batch_size=2, num_workers=workers)
assert "its state has batch_sampler" in says(lambda: DataLoader(
    Examples(lambda i: i, 9), batch_sampler=DistributedBatchSampler(range(9), 2, 1, 0)).load_state_dict({"batches": 1}))
class Unsteady:
    def __iter__(self): return iter([[int(i)] for i in np.frombuffer(os.urandom(80), "uint64") % 9])
odd = DataLoader(Examples(lambda i: i, 9), batch_sampler=Unsteady(), num_workers=workers)
running = iter(odd)
for _ in range(8): next(running)
odd.load_state_dict(odd.state_dict())
assert "its first 8 batches are of other examples" in says(lambda: next(iter(odd)))
""")
