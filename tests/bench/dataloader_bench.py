#!/usr/bin/env python3
"""usage: scripts/bench dataloader [--rounds 5] [--batches 300] [--batch-size 32] [--workers 0,1,2] [--work
copy|flip]

Images/s of uint8 224 x 224 x 3 images through a DataLoader: fleetrun's, Paddle 3.3.1's and PyTorch's, one
after the other in every round, each in a process of its own, which reads --batches batches of --batch-size
after 20 that are not counted.

  copy   an example is an image of an array in memory, so that stacking and handing over is all the work
  flip   and mirrored, one image in two, as augmentation does

ours, torch: numpy arrays, and with --to-torch tensors; one byte of each page is read. Paddle's batches are
not touched. A figure is the median of the rounds; the ratio is that of fleetrun to the other in one round:
median, smallest, largest. Environments: scripts/bench setup-peers paddle33 torch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import peers

READER = '''
import json, sys, time
import numpy as np
kind, workers, batch_size, batches, work, prefetch = json.loads(sys.argv[1])
if kind.startswith("fleetrun"):
    from fleetrun.io import DataLoader, Dataset
    options = {"to": "torch"} if kind == "fleetrun-torch" else {}
    touch = lambda batch: int(np.asarray(batch[0]).reshape(-1)[::4096].sum())
elif kind == "torch":
    import torch
    from torch.utils.data import DataLoader, Dataset
    options = {}
    touch = lambda batch: int(batch[0].numpy().reshape(-1)[::4096].sum())
else:
    import paddle
    from paddle.io import DataLoader, Dataset
    paddle.set_device("cpu")
    options = {}
    touch = lambda batch: batch[0].shape

class Images(Dataset):
    def __init__(self, count):
        self.images = np.random.default_rng(0).integers(0, 256, (256, 224, 224, 3), np.uint8)
        self.count = count
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        image = self.images[index % 256]
        if work == "flip" and index % 2:
            image = np.ascontiguousarray(image[:, ::-1])
        return image, index

def main():
    warm = 20
    more = {} if workers == 0 and kind == "torch" else {"prefetch_factor": prefetch}
    loader = DataLoader(Images((warm + batches) * batch_size), batch_size=batch_size, num_workers=workers, **more, **options)
    seen = 0
    for place, batch in enumerate(loader):
        touch(batch)
        if place + 1 == warm:
            begin = time.perf_counter()
        seen += 1
    seconds = time.perf_counter() - begin
    assert seen == warm + batches
    print(json.dumps(batches * batch_size / seconds))

main()
'''


def measure(kind, python, workers, options):
    words = [kind, workers, options.batch_size, options.batches, options.work, options.prefetch]
    clean = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, "-c", READER, json.dumps(words)], capture_output=True, text=True,
                          timeout=600, env=clean)
    if done.returncode:
        sys.exit(f"dataloader_bench: error: {kind} failed\n{done.stderr[-3000:]}")
    return float(done.stdout.splitlines()[-1])


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=lambda text: [int(word) for word in text.split(",")],
                        default=[0, 1, 2])
    parser.add_argument("--work", choices=["copy", "flip"], default="copy")
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--to-torch", action="store_true",
                        help="fleetrun gives tensors; run by an interpreter with PyTorch")
    options = parser.parse_args()
    kinds = {"fleetrun-torch" if options.to_torch else "fleetrun": sys.executable}
    for kind, name in (("paddle", "paddle33"), ("torch", "torch")):
        if peers.is_there(name):
            kinds[kind] = os.path.join(peers.folder_of(name), "bin", "python")
        else:
            print(f"{kind}: left out, scripts/bench setup-peers {name} makes it")
    for workers in options.workers:
        found = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, python in kinds.items():
                found[kind].append(measure(kind, python, workers, options))
        ours, *others = kinds
        print(f"{options.work}, {workers} workers, images/s:", flush=True)
        for kind in kinds:
            line = f"  {kind:15} {spread(found[kind], ',.0f')}"
            if kind in others:
                line += (f"   fleetrun is {spread([a / b for a, b in zip(found[ours], found[kind])], '.2f')} "
                         "times as fast")
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
