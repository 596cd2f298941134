"""Averages the gradients of a module over the ranks while backward computes them.

plan      buckets in the order in which gradients become ready: at first the parameters backwards, after the
          first backward the order that rank 0 has seen; joined by the rule of fuse_all_reduce_ops
          (collective/base/bucket_plan.h), a layer being a module
backward  a gradient that is ready goes into its bucket; a full bucket starts, beside backward, when those
          before it have; not the last one, beside which there is nothing left to compute
end       what is left starts, all are waited for, and every gradient is the mean

A parameter that no rank has used keeps what gradient it had, also None. Reentrant backward
(torch.utils.checkpoint with use_reentrant=True) is not for this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
import torch

from fleetrun import _native
from fleetrun._types import Any
from fleetrun.distributed._arrays import view
from fleetrun.distributed.parallel.buckets import Bucket, RowBucket
from fleetrun.distributed.parallel.compression import CompressedBucket
from fleetrun.distributed.parallel.options import ParallelOptions

if TYPE_CHECKING:
    pass

__all__ = ["Reducer"]

_KIND = _native.CallKind
_TYPES = {
    torch.float32: _native.DataType.float32,
    torch.float64: _native.DataType.float64,
    torch.float16: _native.DataType.float16,
    torch.bfloat16: _native.DataType.bfloat16,
}


class Reducer:
    """parameters: (name, parameter) of those with gradients. communicators: buckets take them in turn.
    row_names: of parameters whose gradients are sparse."""

    def __init__(
        self,
        parameters: list[torch.nn.Parameter],
        row_names: Any,
        communicators: list[_native.Communicator],
        options: ParallelOptions,
    ) -> None:
        self.is_enabled = True
        self._names = [name for name, _ in parameters]
        self._parameters = [parameter for _, parameter in parameters]
        self._row_names = row_names
        self._communicators = communicators
        self._options = options
        self.compression = options.compression
        self._order = None  # in which gradients became ready in the first backward
        self._is_in_backward = False
        self._buckets: list[Any] = []
        self._places: dict[Any, Any] = {}
        self._next = 0
        self._plan(list(reversed(range(len(parameters)))))
        # AccumulateGrad nodes live as long as somebody holds them.
        self._nodes = [
            parameter.expand_as(parameter).grad_fn.next_functions[0][0] for parameter in self._parameters
        ]
        for index, node in enumerate(self._nodes):
            node.register_hook(lambda *_, index=index: self._take(index))

    def _plan(self, order):
        """Makes the buckets of parameters in this order."""
        rows = [index for index in order if self._names[index] in self._row_names]
        alone = [
            index
            for index in order
            if self.compression and index not in rows and self.compression.fits(self._parameters[index])
        ]
        dense = [index for index in order if index not in rows and index not in alone]
        groups = self._join(dense)
        self._buckets, self._places = [], {}
        for group in groups + [[index] for index in alone + rows]:
            communicator = self._communicators[len(self._buckets) % len(self._communicators)]
            parameters = [self._parameters[index] for index in group]
            bucket: Any
            if group[0] in rows:
                bucket = RowBucket(parameters[0], communicator)
            elif group[0] in alone:
                assert self.compression is not None
                bucket = CompressedBucket(parameters[0], communicator, self.compression)
            else:
                bucket = Bucket(parameters, communicator, self._options.half_precision)
            for slot, index in enumerate(group):
                self._places[index] = (bucket, slot)
            self._buckets.append(bucket)

    def _join(self, order):
        """Groups of indices: the first is small, so that something is under way early."""
        if not self._options.joins_gradients:
            return [[index] for index in order]
        layers = [self._layer(index) for index in order]
        counts = [self._parameters[index].numel() for index in order]
        types = [_TYPES[self._parameters[index].dtype] for index in order]
        memory, groups = self._options.memory_mib, self._options.groups_size
        plan = _native.plan_buckets(layers, counts, types, memory, groups)
        if memory > self._options.first_mib > 0 and plan:
            # All but the first bucket are planned again, without the layers that the first one has.
            first = _native.plan_buckets(layers, counts, types, self._options.first_mib, groups)[0]
            rest = [place for place in range(len(order)) if place not in set(first)]
            later = _native.plan_buckets(
                [layers[place] for place in rest],
                [counts[place] for place in rest],
                [types[place] for place in rest],
                memory,
                groups,
            )
            plan = [first] + [[rest[place] for place in bucket] for bucket in later]
        return [[order[place] for place in bucket] for bucket in plan]

    def _layer(self, index):
        """A name by the planner's rule, for which a layer ends at the first '.'."""
        module, _, name = self._names[index].rpartition(".")
        return module.replace(".", "/") + "." + name

    @property
    def bucket_sizes(self) -> list[int]:
        """The number of parameters of each bucket, in their order."""
        return [len(bucket.parameters) for bucket in self._buckets]

    def _take(self, index):
        if not self.is_enabled:
            return
        if not self._is_in_backward:
            self._is_in_backward = True
            self._next = 0
            self._seen = []
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        self._seen.append(index)
        bucket, slot = self._places[index]
        bucket.take(slot)
        while self._next < len(self._buckets) - 1 and self._buckets[self._next].is_full():
            self._buckets[self._next].start()
            self._next += 1

    def _finish(self):
        self._is_in_backward = False
        *others, last = self._buckets
        for bucket in others[self._next :]:
            bucket.start()
        if isinstance(last, Bucket):
            last.exchange()
        else:
            last.start()
            others.append(last)
        for bucket in others:
            bucket.finish()
        if self.compression:
            self.compression.step()
        if self._order is None:
            self._follow_first_backward()

    def _follow_first_backward(self):
        """Plans again, in the order in which rank 0's gradients became ready; those that did not come
        last."""
        order = list(dict.fromkeys(self._seen)) + [index for index in self._places if index not in self._seen]
        shared = numpy.array(order, dtype=numpy.int64)
        values = view(shared)
        self._communicators[0].run(_native.Call(_KIND.broadcast, values, values, values.count))
        self._order = shared.tolist()
        if self._order != list(self._places):
            self._plan(self._order)
