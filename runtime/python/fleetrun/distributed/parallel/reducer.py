"""Averages the gradients of a module over the ranks while backward computes them.

plan      buckets in the order in which gradients become ready: at first the parameters backwards, after the
          first backward the order that rank 0 has seen; joined by the rule of fuse_all_reduce_ops
          (collective/base/bucket_plan.h), a layer being a module
backward  a gradient that is ready goes into its bucket; a full bucket starts, beside backward, when those
          before it have; not the last one, beside which there is nothing left to compute
end       what is left starts, all are waited for, every gradient is the mean, and the ranks tell each other
          how their step went (distributed/parallel/sentinel.py)

A backward is exchanged where it comes from outputs of a forward that says so, or is the first one since such
a forward: not one of the module alone, which other ranks need not make.

A parameter that no rank has used keeps what gradient it had, also None and one that the script has set.
A backward within a backward (torch.utils.checkpoint with use_reentrant=True) is exchanged for itself.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy
import torch

from fleetrun import _native
from fleetrun._types import Any
from fleetrun.distributed._arrays import view
from fleetrun.distributed.parallel.buckets import Bucket, RowBucket
from fleetrun.distributed.parallel.compression import CompressedBucket
from fleetrun.distributed.parallel.hooks import CommunicationHook, HookBucket
from fleetrun.distributed.parallel.options import ParallelOptions
from fleetrun.distributed.parallel.sentinel import Sentinel, State

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
    row_names: of parameters whose gradients are sparse. hook: what exchanges buckets in our place.
    after: a method, called at the end of every backward whose gradients were averaged."""

    def __init__(
        self,
        parameters: list[tuple[str, torch.nn.Parameter]],
        row_names: set[str],
        communicators: list[_native.Communicator],
        options: ParallelOptions,
        keeps_views: bool,
        hook: CommunicationHook | None,
        after: Any,
    ) -> None:
        self._is_armed = False  # by a forward whose gradients are averaged, until a backward has been
        self._has_exchanged = False
        # How many outputs the backwards under way have come from, by whether gradients are averaged.
        self._from_outputs = {False: 0, True: 0}
        self._names = [name for name, _ in parameters]
        self._parameters = [parameter for _, parameter in parameters]
        self._row_names = row_names
        self._communicators = communicators
        self._options = options
        self._keeps_views = keeps_views
        self._hook = hook
        self._after = weakref.WeakMethod(after)  # of the model that has this reducer
        self.compression = options.compression
        self._sentinel = Sentinel(parameters, communicators[0], hook is None or hook.averages)
        self._order = None  # in which gradients became ready in the first backward
        self._is_in_backward = False
        self._seen: list[int] = []
        self._buckets: list[Any] = []
        self._places: dict[Any, Any] = {}
        self._next = 0
        self._plan(list(reversed(range(len(parameters)))))
        # AccumulateGrad nodes live as long as somebody holds them.
        self._nodes = [
            parameter.expand_as(parameter).grad_fn.next_functions[0][0] for parameter in self._parameters
        ]
        this = weakref.ref(self)
        self._handles = [
            node.register_hook(lambda *_, index=index: _take(this, index))
            for index, node in enumerate(self._nodes)
        ]

    def close(self) -> None:
        """Gradients are left alone from here on."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._nodes = [], []

    def _plan(self, order):
        """Makes the buckets of parameters in this order."""
        rows = [index for index in order if self._names[index] in self._row_names]
        compression = self.compression if self._hook is None else None
        alone = [
            index
            for index in order
            if compression and index not in rows and compression.fits(self._parameters[index])
        ]
        # Their numbers are pairs, which the planner does not know.
        pairs = [index for index in order if self._parameters[index].is_complex()]
        dense = [index for index in order if index not in {*rows, *alone, *pairs}]
        groups = self._join(dense) + [[index] for index in pairs]
        self._buckets, self._places = [], {}
        for group in groups + [[index] for index in alone + rows]:
            communicator = self._communicators[len(self._buckets) % len(self._communicators)]
            parameters = [self._parameters[index] for index in group]
            bucket: Any
            if group[0] in rows:
                bucket = RowBucket(parameters[0], communicator)
            elif group[0] in alone:
                assert compression is not None
                bucket = CompressedBucket(parameters[0], communicator, compression)
            elif self._hook is not None and not self._hook.averages:
                bucket = HookBucket(parameters, communicator, self._hook, self._keeps_views)
            else:
                wire = self._wire(parameters[0])
                bucket = Bucket(parameters, communicator, wire, self._keeps_views)
            for slot, index in enumerate(group):
                self._places[index] = (bucket, slot)
            self._buckets.append(bucket)
        for number, bucket in enumerate(self._buckets):
            if isinstance(bucket, HookBucket):
                bucket.index, bucket.is_last = number, number == len(self._buckets) - 1

    def _wire(self, parameter):
        """The type on the way: a hook has it for all gradients, Paddle's option for those of float32."""
        if self._hook is not None:
            return self._hook.wire
        return torch.float16 if self._options.half_precision and parameter.dtype == torch.float32 else None

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

    def set_scale(self, scale: float) -> None:
        """Means are multiplied by it from here on."""
        for bucket in self._buckets:
            bucket.scale = scale

    @torch.no_grad()
    def take(self, index: int) -> None:
        """The gradient of this parameter is ready."""
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

    def use(self, index: int) -> None:
        """The gradient of this parameter is ready, in a backward whose gradients stay here."""
        bucket, slot = self._places[index]
        bucket.use(slot)

    def arm(self, averages: bool) -> None:
        """A forward begins, whose gradients are averaged or stay local."""
        self._is_armed = averages

    def follow(self, outputs: Any, averages: bool) -> None:
        """What that forward has given."""
        this = weakref.ref(self)
        for node in {tensor.grad_fn for tensor in _tensors(outputs) if tensor.grad_fn is not None}:
            node.register_hook(lambda *_: _enter(this, averages))

    def enter(self, averages: bool) -> None:
        """A backward comes from an output."""
        self._from_outputs[averages] += 1
        torch.autograd.Variable._execution_engine.queue_callback(lambda: self._leave(averages))

    def _leave(self, averages):
        self._from_outputs[averages] -= 1
        self._disarm()

    def _disarm(self):
        if self._has_exchanged and not any(self._from_outputs.values()):
            self._is_armed = self._has_exchanged = False

    def is_averaging(self) -> bool:
        """Whether the gradients of the backward under way are averaged."""
        return self._from_outputs[True] > 0 or (self._is_armed and self._from_outputs[False] == 0)

    def settle(self) -> None:
        """After a backward that raised: takes part in its step to the end, so that no rank waits, and the
        next step is one of all ranks again. The others' backward raises, too, unless theirs did before."""
        self._from_outputs = {False: 0, True: 0}
        if self._is_in_backward:
            self._finish(State.abandoned)

    def shadow(self) -> None:
        """Takes part in a step of the others without gradients."""
        self._next, self._seen = 0, []
        self._finish(State.idle)

    @torch.no_grad()
    def _finish(self, state=0):
        self._is_in_backward = False
        if state != State.trained:
            for bucket in self._buckets:
                bucket.mute()
        *others, last = self._buckets
        for bucket in others[self._next :]:
            bucket.start()
        if isinstance(last, Bucket):
            count = last.exchange()
        else:
            last.start()
            others.append(last)
            count = 0
        count += sum(bucket.finish() for bucket in others)
        if self.compression:
            self.compression.step()
        if self._order is None:
            self._follow_first_backward()
        self._has_exchanged = True
        self._disarm()
        if (after := self._after()) is not None:
            after()
        self._sentinel.report(state, count)

    def _follow_first_backward(self):
        """Plans again, in the order in which rank 0's gradients became ready; those that did not come
        last."""
        order = list(dict.fromkeys(self._seen)) + [index for index in self._places if index not in self._seen]
        shared = numpy.array(order, dtype=numpy.int64)
        values = view(shared)
        self._communicators[0].run(_native.Call(_KIND.broadcast, values, values, values.count))
        self._order = shared.tolist()
        if self._order != list(self._places):
            scale = self._buckets[0].scale
            self._plan(self._order)
            self.set_scale(scale)


def _take(reducer, index):
    """A hook of a gradient: it must not keep the reducer."""
    this = reducer()
    if this is None:
        return
    if this.is_averaging():
        this.take(index)
    else:
        this.use(index)


def _enter(reducer, averages):
    """A hook of an output."""
    this = reducer()
    if this is not None:
        this.enter(averages)


def _tensors(value, depth=6):
    """Those in tuples, lists, dicts and objects such as dataclasses."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.nn.Module, type)):
        value = vars(value).values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for each in value for tensor in _tensors(each, depth - 1)] if depth else []
