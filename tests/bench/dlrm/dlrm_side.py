"""One side of scripts/bench dlrm: trains DLRM (Naumov et al., 2019) for an epoch on rows of criteo_rows.py.

usage: dlrm_side.py servers|prefetch|torch FOLDER BATCH STEPS MODE, alone or as a process of a job

servers, prefetch: fleetrun.torch.EmbeddingBag, the rows on servers, without and with prefetch() of the next
batch;
torch: nn.EmbeddingBag(sparse=True), under DistributedDataParallel where there are several ranks. All begin
with the same values and see the same batches: the six days' rows in their order, each rank its part of
BATCH. STEPS: how many, 0 for the whole epoch and the AUC of the last day. MODE: of the servers.
Rank 0 prints a line of JSON: examples/s of all ranks together, losses, the AUC, peak memory in MiB.
"""

import json
import os
import pathlib
import resource
import sys
import time

import numpy
import torch
from torch import nn

WIDTH, RATE, SEED = 16, 0.1, 7
BOTTOM, TOP = (13, 512, 256, 64, WIDTH), (512, 256, 1)


def layers(widths, last):
    pairs = zip(widths, widths[1:])
    parts = [part for before, after in pairs for part in (nn.Linear(before, after), nn.ReLU())]
    return nn.Sequential(*parts[:-1], *last)


class Dense(nn.Module):
    """What is not an embedding: both networks, and products of all pairs of vectors between them."""

    def __init__(self, columns):
        super().__init__()
        self.bottom = layers(BOTTOM, [nn.ReLU()])
        vectors = columns + 1
        self.top = layers((WIDTH + vectors * (vectors - 1) // 2, *TOP), [])
        self.pairs = torch.tril_indices(vectors, vectors, -1)

    def forward(self, counts, bags):
        dense = self.bottom(counts)
        vectors = torch.stack([dense, *bags], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([dense, products], dim=1)).squeeze(1)


class Bags(nn.Module):
    """A layer for each column: of one process, or those of the servers."""

    def __init__(self, layers_of_columns):
        super().__init__()
        self.columns = nn.ModuleList(layers_of_columns)

    def forward(self, ids):
        return [layer(column) for layer, column in zip(self.columns, ids)]


class Dlrm(nn.Module):
    def __init__(self, bags, columns):
        super().__init__()
        self.bags, self.dense = bags, Dense(columns)

    def forward(self, counts, ids):
        return self.dense(counts, self.bags(ids))


def first_rows(size, column):
    """The first values of a column's rows: those of DLRM's own."""
    bound = float(numpy.sqrt(1 / size))
    random = numpy.random.default_rng([SEED, column])
    return torch.from_numpy(random.uniform(-bound, bound, (size, WIDTH)).astype(numpy.float32))


class Side:
    """nn.EmbeddingBag, in this process alone."""

    def __init__(self, sizes):
        self.rank, self.ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        torch.manual_seed(SEED)
        self.model = Dlrm(self.bags(sizes), len(sizes))

    def bags(self, sizes):
        made = nn.EmbeddingBag.from_pretrained
        return Bags([made(first_rows(size, column), freeze=False, mode="sum", sparse=True)
                     for column, size in enumerate(sizes)])

    def wrap(self):
        if self.ranks > 1:
            torch.distributed.init_process_group("gloo")
            self.model = nn.parallel.DistributedDataParallel(self.model)

    def ahead(self, ids):
        """The next batch's, or None."""

    def end(self):
        if self.ranks > 1:
            torch.distributed.destroy_process_group()


class Servers(Side):
    """fleetrun.torch.EmbeddingBag; the rest averaged by torch's DDP."""

    def __init__(self, sizes, mode):
        from fleetrun import ps

        self.ps, self.mode = ps, mode
        super().__init__(sizes)

    def tables(self, sizes):
        return [self.ps.SparseTable(f"column{column}", WIDTH, rule=self.ps.Rule("sgd", learning_rate=RATE))
                for column in range(len(sizes))]

    def bags(self, sizes):
        from fleetrun.torch import EmbeddingBag

        if self.ps.is_server():
            self.ps.Server(self.tables(sizes), mode=self.mode).wait()
            sys.exit(0)
        self.client = self.ps.Client(self.tables(sizes), mode=self.mode)
        self.ranks, self.rank = self.client.trainers, self.client.trainer
        columns = [EmbeddingBag(self.client, f"column{column}", mode="sum") for column in range(len(sizes))]
        if self.rank == 0:
            for column, (layer, size) in enumerate(zip(columns, sizes)):
                layer.assign(numpy.arange(size), first_rows(size, column))
        self.client.barrier()
        self.client.begin_pass()
        return Bags(columns)

    def wrap(self):
        if self.ranks > 1:
            torch.distributed.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store",
                                                 rank=self.rank, world_size=self.ranks)
            self.model.dense = nn.parallel.DistributedDataParallel(self.model.dense)

    def end(self):
        self.client.leave_pass()
        super().end()
        self.client.goodbye()


class Prefetching(Servers):
    def ahead(self, ids):
        from fleetrun.torch import prefetch

        if ids is not None:
            prefetch(dict(zip(self.model.bags.columns, ids)))


def auc(labels, scores):
    """The part of pairs of a click and none that are in order."""
    order = numpy.argsort(scores, kind="stable")
    _, place, count = numpy.unique(scores[order], return_inverse=True, return_counts=True)
    ranks = (numpy.cumsum(count) - (count - 1) / 2)[place]
    clicks = labels[order] > 0
    hits = int(clicks.sum())
    return float((ranks[clicks].sum() - hits * (hits + 1) / 2) / (hits * (len(labels) - hits)))


SIDES = {"torch": lambda sizes, _: Side(sizes), "servers": Servers, "prefetch": Prefetching}


class Rows:
    """Batches of a folder's rows: (counts, ids by column, labels)."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        names = "labels", "counts", "ids", "sizes"
        self.labels, self.counts, self.ids, self.sizes = (
            numpy.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
        self.days = numpy.load(folder / "train_day_count.npz")["total_per_file"]

    def batch(self, begin, end):
        ids = torch.from_numpy(self.ids[begin:end].T.astype(numpy.int64))
        counts = torch.from_numpy(numpy.log1p(self.counts[begin:end].astype(numpy.float32)))
        labels = torch.from_numpy(self.labels[begin:end].copy())
        return counts, [column.unsqueeze(1) for column in ids], labels


def train(side, rows, batch, steps):
    """(seconds of the steps after the first tenth, losses)."""
    optimizer = torch.optim.SGD(side.model.parameters(), lr=RATE)
    part = batch // side.ranks
    begins = [begin + side.rank * part for begin in range(0, int(rows.days[:-1].sum()) - batch + 1, batch)]
    begins = begins[:steps or None]
    losses, warm, following = [], len(begins) // 10, rows.batch(begins[0], begins[0] + part)
    begin = time.perf_counter()
    for step in range(len(begins)):
        if step == warm:
            begin = time.perf_counter()
        counts, ids, labels = following
        loss = nn.functional.binary_cross_entropy_with_logits(side.model(counts, ids), labels)
        following = rows.batch(begins[step + 1], begins[step + 1] + part) if step + 1 < len(begins) else None
        side.ahead(following and following[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return (time.perf_counter() - begin) / (len(begins) - warm), losses


def test(side, rows, batch):
    """The AUC of the last day."""
    scores, first = [], int(rows.days[:-1].sum())
    side.model.eval()
    with torch.no_grad():
        for begin in range(first, len(rows.labels), batch):
            counts, ids, _ = rows.batch(begin, min(begin + batch, len(rows.labels)))
            scores.append(side.model(counts, ids).numpy())
    return auc(rows.labels[first:], numpy.concatenate(scores))


def main():
    name, folder, batch, steps, mode = sys.argv[1:]
    batch, steps = int(batch), int(steps)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    rows = Rows(folder)
    side = SIDES[name](rows.sizes, mode)
    side.wrap()
    seconds, losses = train(side, rows, batch, steps)
    area = test(side, rows, 4096) if side.rank == 0 and not steps else 0.0
    side.end()
    if side.rank == 0:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"step": seconds, "examples": batch / seconds, "losses": losses, "auc": area,
                          "memory": memory}), flush=True)


if __name__ == "__main__":
    main()
