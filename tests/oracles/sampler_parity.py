#!/usr/bin/env python3
"""The samplers of fleetrun.io beside Paddle's: the same numbers in the same order, index by index.

usage: tests/oracles/sampler_parity.py --paddle=VENV [--golden]

VENV is a virtual environment with Paddle (2.6.2 or 3.3.1). fleetrun is the package of the interpreter that
runs this. Compares DistributedBatchSampler (sizes, trainers, batches, shuffle, drop_last, three epochs and
set_epoch), BatchSampler, RandomSampler and WeightedRandomSampler after numpy.random.seed, and the seeds of
workers. Prints how many lists were equal; exits 1 at the first that was not, 77 without Paddle. --golden
prints the few cases that the tests keep, from Paddle.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys

# Runs under both; gives {case: lists of numbers}.
CASES = '''
import itertools, json, sys
import numpy as np

def cases(io, sizes, ranks, batches):
    found = {}
    for n, size, batch, shuffle, drop_last in itertools.product(sizes, ranks, batches, (False, True), (False, True)):
        for rank in range(size):
            sampler = io.DistributedBatchSampler(range(n), batch, size, rank, shuffle, drop_last)
            passes = [list(sampler), list(sampler)]
            sampler.set_epoch(7)
            passes += [list(sampler), sampler.epoch, len(sampler), sampler.num_samples, sampler.total_size]
            found[f"distributed {n} {size} {batch} {shuffle} {drop_last} {rank}"] = passes
    for n, batch, shuffle, drop_last in itertools.product(sizes, batches, (False, True), (False, True)):
        if n:
            np.random.seed(n + batch)
            sampler = io.BatchSampler(dataset=range(n), shuffle=shuffle, batch_size=batch, drop_last=drop_last)
            found[f"batch {n} {batch} {shuffle} {drop_last}"] = [list(sampler), list(sampler), len(sampler)]
    for n in sizes:
        if n:
            np.random.seed(n)
            with_replacement = io.RandomSampler(range(n), replacement=True, num_samples=2 * n)
            weights = np.random.random(n) + 0.01
            found[f"random {n}"] = [
                list(io.RandomSampler(range(n))), list(with_replacement), list(io.SequenceSampler(range(n))),
                list(io.RandomSampler(range(n), generator=iter(range(n)))),
                list(io.WeightedRandomSampler(weights, 3 * n)), list(io.WeightedRandomSampler(weights, n, False)),
                list(io.SubsetRandomSampler([4])), len(io.WeightedRandomSampler(weights, 5))]
    return found
'''
THEIRS = CASES + '''
import paddle
from paddle.io.dataloader.worker import _generate_states
found = cases(paddle.io, *json.loads(sys.argv[1]))
for base, worker in itertools.product((0, 5, 2**32, 2**62 + 12345), range(4)):
    found[f"seeds {base} {worker}"] = _generate_states(base, worker)
print(json.dumps(found))
'''
WIDE = [[0, 1, 2, 3, 7, 10, 16, 33, 100, 1001], [1, 2, 3, 4, 7, 16], [1, 2, 3, 4, 16, 64]]
FEW = [[1, 5, 11], [1, 2, 3], [2, 4]]


def theirs(python, sizes):
    done = subprocess.run([python, "-c", THEIRS, json.dumps(sizes)], capture_output=True, text=True,
                          timeout=600)
    if done.returncode:
        raise SystemExit(f"sampler_parity: error: {python} failed\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(sizes):
    import fleetrun
    from fleetrun.io._seeds import worker_words

    space = {}
    exec(CASES, space)  # the same text that Paddle runs
    found = space["cases"](fleetrun.io, *sizes)
    for base, worker in itertools.product((0, 5, 2**32, 2**62 + 12345), range(4)):
        found[f"seeds {base} {worker}"] = worker_words(base, worker)
    return json.loads(json.dumps(found))


def count(value):
    return sum(count(one) for one in value) if isinstance(value, list) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--paddle", required=True)
    parser.add_argument("--golden", action="store_true")
    options = parser.parse_args()
    python = os.path.join(options.paddle, "bin", "python")
    if not os.path.exists(python):
        print(f"sampler_parity: no Paddle in {options.paddle}")
        return 77
    if options.golden:
        print(json.dumps(theirs(python, FEW), separators=(",", ":")).replace('],"', '],\n"'))
        return 0
    expected, got = theirs(python, WIDE), ours(WIDE)
    for case, value in expected.items():
        if got.get(case) != value:
            print(f"different: {case}\n  Paddle:   {value}\n  fleetrun: {got.get(case)}")
            return 1
    print(f"equal: {len(expected)} cases, {count(list(expected.values()))} numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
