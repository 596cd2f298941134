#!/usr/bin/env python3
"""Made-up rows of the shape of Criteo's log of a week: a label, 13 counts and 26 columns of ids, of which few
are in most rows. Counts and ids decide how likely a click is, so that there is something to learn.

usage: criteo_rows.py FOLDER [--rows=N] [--most=N] [--seed=N]

Writes labels.npy [rows] float32, counts.npy [rows, 13] int32, ids.npy [rows, 26] int32 and sizes.npy [26],
how many ids a column has; the same arguments write the same bytes. The files beside them, train_day_count.npz
and kaggleAdDisplayChallenge_processed.npz, are what facebookresearch/dlrm reads of
--raw-data-file=FOLDER/train.txt: the same rows as seven days.
"""

import argparse
import pathlib

import numpy

DAYS = 7
# How many ids the columns of the week have.
SIZES = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306,
         10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572)
COUNTS = 13


def make(rows, most, seed):
    """(labels, counts, ids, sizes); a column has at most `most` ids."""
    random = numpy.random.default_rng(seed)
    sizes = numpy.minimum(SIZES, most)
    ids = numpy.empty((rows, len(sizes)), numpy.int32)
    score = numpy.full(rows, -1.2, numpy.float32)
    for column, size in enumerate(sizes):
        # The fourth power: half of a column's rows have a sixteenth of its ids.
        ids[:, column] = size * random.random(rows) ** 4
        score += random.normal(0, 0.35, size).astype(numpy.float32)[ids[:, column]]
    counts = random.exponential(1.0, (rows, COUNTS)) ** 3
    score += numpy.log1p(counts).astype(numpy.float32) @ random.normal(0, 0.25, COUNTS).astype(numpy.float32)
    labels = random.random(rows) < 1 / (1 + numpy.exp(-score))
    return labels.astype(numpy.float32), counts.astype(numpy.int32), ids, sizes.astype(numpy.int64)


def write(folder, rows, most, seed):
    labels, counts, ids, sizes = make(rows, most, seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in (("labels", labels), ("counts", counts), ("ids", ids), ("sizes", sizes)):
        numpy.save(folder / f"{name}.npy", values)
    days = numpy.full(DAYS, rows // DAYS)
    days[-1] += rows % DAYS
    numpy.savez(folder / "train_day_count.npz", total_per_file=days)
    numpy.savez(folder / "kaggleAdDisplayChallenge_processed.npz", X_int=counts, X_cat=ids, y=labels,
                counts=sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_200_000)
    parser.add_argument("--most", type=int, default=100_000, help="ids of a column, at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.folder, options.rows, options.most, options.seed)


if __name__ == "__main__":
    main()
