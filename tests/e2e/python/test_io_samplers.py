"""Data sets and samplers of fleetrun.io: Paddle's numbers (tests/golden/io, by
tests/oracles/sampler_parity.py), fleetrun's own options, and what they refuse."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

HEAD = """
import itertools
import numpy as np
import fleetrun as paddle
from fleetrun import io

def refused(call):
    try:
        call()
    except paddle.Error as error:
        return str(error)
    raise SystemExit("nothing was refused")

class Squares(io.Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return i * i
class Stream(io.IterableDataset):
    def __init__(self, *values): self.values = values
    def __iter__(self): return iter(self.values)
"""


def test_the_numbers_are_paddles(run):
    done = run(f"""
import json, sys
sys.path.insert(0, {str(ROOT / "tests/oracles")!r})
import sampler_parity
expected = json.load(open({str(ROOT / "tests/golden/io/samplers.json")!r}))
got = sampler_parity.ours(sampler_parity.FEW)
assert got.keys() == expected.keys() and len(got) > 150
for case in expected:
    assert got[case] == expected[case], (case, got[case], expected[case])
print(got["distributed 11 3 2 True False 1"][0])
""")
    assert done.stdout == "[[4, 10], [9, 3]]\n"


def test_rank_and_size_come_from_the_job(run):
    code = HEAD + """
sampler = io.DistributedBatchSampler(range(10), 2)
print(sampler.nranks, sampler.local_rank, list(sampler))
"""
    assert run(code, PADDLE_TRAINERS_NUM=3, PADDLE_TRAINER_ID=2).stdout == "3 2 [[4, 5], [0, 1]]\n"
    assert run(code).stdout == "1 0 [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]\n"


def test_uneven_examples_are_padded_dropped_or_kept(run):
    run(HEAD + """
for n, size, batch, shuffle, when in itertools.product((0, 1, 5, 12, 31), (1, 2, 3, 4), (1, 3, 8), (False, True),
                                                       ("before_split", "after_split")):
    def parts(uneven, **options):
        samplers = [io.DistributedBatchSampler(range(n), batch, size, rank, shuffle, shuffle_when=when, uneven=uneven, **options)
                    for rank in range(size)]
        batches = [list(sampler) for sampler in samplers]
        assert [len(sampler) for sampler in samplers] == [len(one) for one in batches]
        flat = [list(itertools.chain(*one)) for one in batches]
        if not options:
            assert [sampler.num_samples for sampler in samplers] == [len(one) for one in flat]
        return batches, flat
    batches, flat = parts("pad")
    assert len({len(one) for one in flat}) == 1 and set(itertools.chain(*flat)) == set(range(n))
    batches, flat = parts("drop")
    assert len({len(one) for one in flat}) == 1
    assert len(set(itertools.chain(*flat))) == sum(map(len, flat)) == n // size * size
    batches, flat = parts("keep")
    assert sorted(itertools.chain(*flat)) == list(range(n))
    assert max(map(len, flat)) - min(map(len, flat)) <= 1
    batches, flat = parts("keep", drop_last=True)
    assert all(len(one) == batch for part in batches for one in part)
""")


def test_what_drop_leaves_out_changes_with_the_epoch(run):
    run(HEAD + """
sampler = io.DistributedBatchSampler(range(11), 2, 2, 0, True, uneven="drop")
other = io.DistributedBatchSampler(range(11), 2, 2, 1, True, uneven="drop")
left_out = [set(range(11)) - set(itertools.chain(*sampler, *other)) for _ in range(8)]
assert all(len(one) == 1 for one in left_out) and len(set(map(frozenset, left_out))) > 2
""")


def test_shuffled_after_the_split_a_trainer_keeps_its_part(run):
    run(HEAD + """
def epochs(rank, when, seed=0):
    sampler = io.DistributedBatchSampler(range(40), 4, 2, rank, True, shuffle_when=when, seed=seed)
    return [tuple(itertools.chain(*sampler)) for _ in range(4)]
first, second = epochs(0, "after_split"), epochs(1, "after_split")
assert len({frozenset(one) for one in first}) == 1 and len(set(first)) == 4
assert set(first[0]) | set(second[0]) == set(range(40)) and not set(first[0]) & set(second[0])
assert [one // 4 for one in first[0]] != [(one - 4) // 4 for one in second[0]], "each has an order of its own"
assert epochs(0, "after_split") == first and epochs(0, "after_split", seed=9) != first
assert len({frozenset(one) for one in epochs(0, "before_split")}) == 4
assert epochs(0, "before_split", seed=1)[:3] == epochs(0, "before_split")[1:]
""")


def test_infinite_batches_are_the_epochs_one_after_the_other(run):
    run(HEAD + """
make = lambda: io.DistributedBatchSampler(range(10), 3, 2, 1, True)
epochs = make()
expected = [*epochs, *epochs, *epochs]
endless = io.InfiniteBatchSampler(make())
assert list(itertools.islice(endless, len(expected))) == expected and len(endless) == 2
resumed = make()
resumed.set_epoch(2)
assert list(itertools.islice(io.InfiniteBatchSampler(resumed), 2)) == expected[4:]
plain = io.InfiniteBatchSampler(io.BatchSampler(range(3), batch_size=2))
assert list(itertools.islice(plain, 5)) == [[0, 1], [2], [0, 1], [2], [0, 1]]
empty = io.InfiniteBatchSampler(io.BatchSampler(range(3), batch_size=4, drop_last=True))
assert "an epoch without a batch" in refused(lambda: list(empty))
""")


def test_data_sets_made_of_others(run):
    run(HEAD + """
assert list(io.Subset(Squares(9), [2, 0])) == [4, 0] and len(io.Subset(Squares(9), [2, 0])) == 2
joined = io.ConcatDataset([Squares(2), Squares(0), Squares(3)])
assert [joined[i] for i in range(len(joined))] == [0, 1, 0, 1, 4] and joined[-1] == 4 and list(joined) == [0, 1, 0, 1, 4]
both = io.ComposeDataset([Squares(3), io.Subset(Squares(9), [3, 4, 5])])
assert [both[i] for i in range(3)] == [(0, 9), (1, 16), (4, 25)]
assert list(io.ChainDataset([Stream(1, 2), Stream(), Stream(3)])) == [1, 2, 3]
tensors = io.TensorDataset([np.arange(4), np.arange(8).reshape(4, 2)])
assert len(tensors) == 4 and tensors[1][0] == 1 and tensors[1][1].tolist() == [2, 3]
np.random.seed(3)
a, b = io.random_split(range(10), [3, 7])
assert sorted([*a, *b]) == list(range(10)) and len(a) == 3 and [*a] != [0, 1, 2]
assert [*io.random_split(range(10), [3, 7], np.random.RandomState(3))[0]] == [*a]
assert [len(part) for part in io.random_split(range(11), [0.5, 0.3, 0.2])] == [6, 3, 2]
""")


@pytest.mark.parametrize("code, what", [
    ("io.DistributedBatchSampler(range(4), 0)", "batch_size=0"),
    ("io.DistributedBatchSampler(range(4), 2, 2, 2)", "rank=2 of 2 trainers"),
    ("io.DistributedBatchSampler(range(4), 2, 0)", "num_replicas=0"),
    ("io.DistributedBatchSampler(range(4), 2, 2, 0, uneven='cut')",
     "uneven='cut'\n  hint: it is one of 'pad', 'drop', 'keep'"),
    ("io.DistributedBatchSampler(range(4), 2, 2, 0, shuffle_when='never')", "shuffle_when='never'"),
    ("io.BatchSampler()", "either a dataset or a sampler"),
    ("io.BatchSampler(Stream(1))", "Stream is an IterableDataset"),
    ("io.BatchSampler(sampler=range(3), shuffle=True)", "shuffle=True and a sampler"),
    ("io.BatchSampler(range(3), batch_size=True)", "batch_size=True"),
    ("io.RandomSampler(range(3), num_samples=4)", "num_samples=4, the data set has 3"),
    ("io.WeightedRandomSampler([0.0, 1.0], 2, False)", "num_samples=2, and 1 weights are above 0"),
    ("io.WeightedRandomSampler([1.0, float('nan')], 2)", "cannot be drawn from"),
    ("io.WeightedRandomSampler([[1.0, 1.0], [0.0, 0.0]], 2)", "cannot be drawn from"),
    ("io.SubsetRandomSampler([])", "no indices are given"),
    ("io.random_split(range(4), [3, 2])", "make 5, the data set has 4"),
    ("io.TensorDataset([np.zeros(3), np.zeros(4)])", "first sizes are [3, 4]"),
    ("io.ComposeDataset([Squares(3), Squares(4)])", "the lengths are [3, 4]"),
    ("io.ConcatDataset([Stream(1)])", "Stream is an IterableDataset"),
    ("io.ConcatDataset([])", "no data set is given"),
    ("io.ChainDataset([Squares(1)])", "Squares is not an IterableDataset"),
    ("io.Dataset()[0]", "Dataset has no __getitem__"),
])
def test_what_samplers_and_data_sets_refuse(run, code, what):
    assert what in run(HEAD + f"print(refused(lambda: {code}))").stdout


def test_other_trainers_go_on_where_a_state_says(run):
    run(HEAD + """
def trainers(size, batch, state=None, **options):
    each = [io.DistributedBatchSampler(range(n), batch, size, rank, **options) for rank in range(size)]
    for one in each:
        one.set_epoch(5)
        if state: one.load_state_dict(state)
    return each
def taken(each, batches=None):
    passes = [itertools.islice(one, batches) for one in each]
    return [[number for batch in one for number in batch] for one in passes]
def flat(parts): return [number for part in parts for number in part]

for n, before, after, shuffle, when, uneven in itertools.product(
        (0, 7, 24, 61), ((1, 3), (2, 4), (4, 2), (3, 5)), ((1, 2), (2, 4), (3, 3), (5, 1)), (False, True),
        ("before_split", "after_split"), ("pad", "drop", "keep")):
    options = {"shuffle": shuffle, "shuffle_when": when, "uneven": uneven, "seed": 9}
    whole = taken(trainers(*before, **options))
    for batches in (0, 1, 3, 100):
        first = trainers(*before, **options)
        running = [iter(one) for one in first]
        seen = [flat(itertools.islice(one, batches)) for one in running]
        state = first[0].state_dict()
        case = (n, before, after, options, batches, state)
        # As many go on exactly as if nothing had happened; the state of every trainer is the same.
        if not batches or state["cuts"]:
            assert all(one.state_dict() == state for one in first if len(whole[one.local_rank]) > batches * before[1]), case
            rest = taken(trainers(*before, state, **options))
            assert [a + b for a, b in zip(seen, rest)] == whole, case
            rest = flat(taken(trainers(*after, state, **options)))
            seen, pads = flat(seen), before[0] + after[0] if uneven == "pad" else 0
            if uneven == "drop":
                assert len(set(seen + rest)) == len(seen + rest) > n - after[0], case
            else:
                assert set(seen + rest) == set(range(n)) and len(seen + rest) <= n + pads, case
            if before != after and batches:
                assert not set(seen) & set(rest), case
        else:
            assert state["epoch"] == 5 + shuffle, case  # it is over
""")


def test_a_third_number_of_trainers_and_the_next_epoch(run):
    run(HEAD + """
def give(state, ranks, batches, batch=3):
    each = [io.DistributedBatchSampler(range(100), batch, ranks, rank, shuffle=True) for rank in range(ranks)]
    for one in each: one.load_state_dict(state)
    running = [iter(one) for one in each]
    numbers = [number for one in running for part in itertools.islice(one, batches) for number in part]
    return numbers, each[-1]
fresh = io.DistributedBatchSampler(range(100), 3, 4, 0, shuffle=True)
fresh.set_epoch(2)
first, one = give(fresh.state_dict(), 4, 3)
second, one = give(one.state_dict(), 3, 2, batch=5)
third, one = give(one.state_dict(), 3, 1, batch=5)
last, one = give(one.state_dict(), 2, 100)
assert sorted(set(first + second + third + last)) == list(range(100))
assert len(first + second + third + last) == 101  # 19 were left for two: one is padded
assert one.state_dict()["epoch"] == 3 and len({n for batch in one for n in batch}) == 50 and len(one) == 17
# set_epoch of that epoch keeps the place, of another one leaves it; a broken off pass begins anew.
one.load_state_dict({**one.state_dict(), "epoch": 2, "cuts": [[2, 3, 16]]})
one.set_epoch(2)
assert [len(batch) for batch in one] == [2]
one.load_state_dict({**one.state_dict(), "epoch": 2, "cuts": [[2, 3, 16]]})
one.set_epoch(3)
assert len(list(one)) == 17
next(iter(one))
assert len(list(one)) == 17
assert "examples=99, and in the state 100" in refused(
    lambda: io.DistributedBatchSampler(range(99), 3, 2, 0, shuffle=True).load_state_dict(one.state_dict()))
""")
