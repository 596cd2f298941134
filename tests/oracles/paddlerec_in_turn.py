#!/usr/bin/env python3
"""Runs a script of PaddleRec so that two runs of it compute the same.

usage: paddlerec_in_turn.py SCRIPT ARGUMENT…

Some readers draw numbers from Python's and numpy's global generators, and PaddleRec's trainer begins its
loader twice: Paddle's two threads then draw from one generator, in any order. Here each batch is read when
it is asked for. Nothing is dropped out, as the numbers for that are others in each framework.
"""
import itertools
import os
import runpy
import sys

import numpy
import paddle


class InTurn:
    """The batches of a data set, each made when it is asked for."""

    def __init__(self, dataset, places=None, *, batch_size=1, drop_last=False, num_workers=0):
        if num_workers:
            raise SystemExit("paddlerec_in_turn.py: reads in one process, and has num_workers")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last

    def __iter__(self):
        numbered = not isinstance(self.dataset, paddle.io.IterableDataset)
        examples = map(self.dataset.__getitem__, range(len(self.dataset))) if numbered else iter(self.dataset)
        while batch := list(itertools.islice(examples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield [numpy.stack([numpy.asarray(value) for value in column]) for column in zip(*batch)]

    __call__ = __iter__


def main(script, *arguments):
    paddle.io.DataLoader = InTurn
    paddle.nn.functional.dropout = lambda x, *_, **__: x
    sys.argv[:], sys.path[0] = [script, *arguments], os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
