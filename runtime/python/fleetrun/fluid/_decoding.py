"""Decoding with a cell: steps whose inputs are the outputs of the step before, until all sequences end."""

from __future__ import annotations

import collections
import contextlib

import numpy

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Variable
from fleetrun.nn import functional
from fleetrun.static import loops
from fleetrun.utils import nest

__all__ = ["BeamSearchDecoder", "Decoder", "dynamic_decode", "gather_tree"]

_States = collections.namedtuple("_States", ("cell_states", "log_probs", "finished", "lengths"))
_Outputs = collections.namedtuple("_Outputs", ("scores", "predicted_ids", "parent_ids"))


class Decoder:
    """What dynamic_decode() asks for; a subclass has these."""

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """(inputs, states, finished) of the first step."""
        raise NotImplementedError(f"{type(self).__name__}.initialize")

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """(outputs, next states, next inputs, finished)."""
        raise NotImplementedError(f"{type(self).__name__}.step")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(outputs, states) from those of all steps."""
        raise NotImplementedError(f"{type(self).__name__}.finalize")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether step() says of all sequences which have ended, not only of those that end in it."""
        return False


class BeamSearchDecoder(Decoder):
    """Keeps the beam_size likeliest beginnings of each sequence. cell(inputs, states) gives the scores of the
    next word, or output_fn of what it gives; embedding_fn makes inputs of words."""

    def __init__(
        self,
        cell: Any,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[[Any], Any] | None = None,
        output_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.cell, self.beam_size = cell, int(beam_size)
        self.start_token, self.end_token = start_token, end_token
        self.embedding_fn, self.output_fn = embedding_fn, output_fn

    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable:
        """Each row of x beam_size times. Shape: [n, ..] -> [n * beam_size, ..]."""
        rows = tensor.shape(x)[0]
        places = tensor.arange(0, tensor.cast(rows, "int64") * beam_size, 1, "int64")
        return tensor.gather(x, tensor.floor_divide(places, tensor.full([1], beam_size, "int64")))

    def _split(self, x):
        return tensor.reshape(x, [-1, self.beam_size, *x.shape[1:]])

    def _merged(self, x):
        return tensor.reshape(x, [-1, *x.shape[2:]])

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """`inits`: the cell's first states, [n, ..] each."""
        count = tensor.shape(nest.flatten(inits)[0])[0]
        size = self.beam_size
        words = tensor.full([count, size], self.start_token, "int64")
        first = numpy.array([[0.0] + [-1e9] * (size - 1)], dtype="float32")
        chances = tensor.full([count, size], 0.0, "float32") + tensor.assign(first)
        lengths = tensor.zeros_like(words)
        finished = tensor.not_equal(lengths, lengths)
        cells = nest.map_structure(lambda one: self._split(self.tile_beam_merge_with_batch(one, size)), inits)
        inputs = words if self.embedding_fn is None else self.embedding_fn(words)
        return inputs, _States(cells, chances, finished, lengths), finished

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """The likeliest beginnings, each a word longer."""
        merged = nest.map_structure(self._merged, inputs)
        cells = nest.map_structure(self._merged, states.cell_states)
        given, cells = self.cell(merged, cells, **kwargs)
        scores = nest.map_structure(self._split, given)
        cells = nest.map_structure(self._split, cells)
        if self.output_fn is not None:
            scores = self.output_fn(scores)
        outputs, following = self._chosen(scores, cells, states)
        words = outputs.predicted_ids
        inputs = words if self.embedding_fn is None else self.embedding_fn(words)
        return outputs, following, inputs, following.finished

    def _chosen(self, scores, cells, states):
        size, words = self.beam_size, scores.shape[-1]
        over = tensor.unsqueeze(tensor.cast(states.finished, "float32"), 2)
        # What has ended goes on with the word that ends it alone.
        end = numpy.full([1, 1, words], -1e9, dtype="float32")
        end[0, 0, self.end_token] = 0.0
        chances = functional.log_softmax(scores) * (1.0 - over) + tensor.assign(end) * over
        total = chances + tensor.unsqueeze(states.log_probs, 2)
        best, places = tensor.topk(tensor.reshape(total, [-1, size * words]), size)
        wide = tensor.full([1], words, "int64")
        beams, found = tensor.floor_divide(places, wide), tensor.mod(places, wide)
        rows = tensor.arange(0, tensor.shape(places)[0], 1, "int64") * size
        flat = tensor.reshape(beams + tensor.unsqueeze(rows, 1), [-1])

        def of_beams(x):
            return self._split(tensor.gather(self._merged(x), flat))

        cells = nest.map_structure(of_beams, cells)
        finished = of_beams(states.finished)
        lengths = of_beams(states.lengths) + tensor.cast(tensor.logical_not(finished), "int64")
        finished = tensor.logical_or(finished, tensor.equal(found, tensor.full([1], self.end_token, "int64")))
        return _Outputs(best, found, beams), _States(cells, best, finished, lengths)

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(words [steps, n, beam_size] of whole sequences, states)."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change places."""
        return True


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """The words of whole sequences from those of each step and the beams that they follow. Shape: [steps, n,
    beams] each, int64."""
    count, beams = tensor.shape(ids)[0], ids.shape[2]
    own = tensor.zeros_like(tensor.squeeze(tensor.gather(ids, tensor.full([1], 0, "int64")), 0))
    first = own + tensor.assign(numpy.arange(beams, dtype="int64").reshape(1, beams))

    def step(index, beam):
        place = tensor.cast(count, "int64") - 1 - index
        now, before = (tensor.squeeze(tensor.gather(one, place), 0) for one in (ids, parents))
        rows = tensor.arange(0, tensor.shape(beam)[0], 1, "int64") * beams
        flat = tensor.reshape(beam + tensor.unsqueeze(rows, 1), [-1])
        pick = [
            tensor.reshape(tensor.gather(tensor.reshape(one, [-1]), flat), [-1, beams])
            for one in (now, before)
        ]
        return [pick[1]], [pick[0]]

    _, (words,) = loops.scan(step, [first], count)
    return tensor.flip(words, [0])


def dynamic_decode(
    decoder: Any,
    inits: Any = None,
    max_step_num: int | Variable | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> Any:
    """(outputs of all steps, the last states), with return_length the lengths, too: steps of the decoder
    until all sequences have ended, at most max_step_num + 1. Shape of outputs: [n, steps, ..], [steps, n,
    ..] for output_time_major."""
    inputs, states, finished = decoder.initialize(inits)
    lengths = tensor.cast(tensor.zeros_like(tensor.cast(finished, "int64")), "int64")
    parts = [inputs, states, finished, lengths]
    first = nest.flatten(parts)
    limit: Any = None
    if max_step_num is not None:
        limit = tensor.cast(tensor.reshape(tensor.to_tensor(max_step_num), [1]), "int64")
    structure: Any = None

    def step(index, *given):
        nonlocal structure
        inputs, states, finished, lengths = nest.pack_sequence_as(parts, list(given))
        structure, following, inputs, over = decoder.step(index, inputs, states, **kwargs)
        if decoder.tracks_own_finished:
            lengths = getattr(following, "lengths", lengths)
        else:
            lengths = lengths + tensor.cast(tensor.logical_not(finished), "int64")
            over = tensor.logical_or(over, finished)
            if impute_finished:
                following = nest.map_structure(lambda a, b: _imputed(a, b, finished), states, following)
        again = tensor.logical_not(tensor.all(over))
        if limit is not None:
            again = tensor.logical_and(tensor.reshape(again, [1]), index + 1 <= limit)
        leaves = nest.flatten([inputs, following, over, lengths])
        if len(leaves) != len(first):
            raise Error(
                "config",
                f"dynamic_decode: the decoder begins with {len(first)} inputs and states, and a step gives "
                f"{len(leaves)}",
                "let step() give what initialize() does",
            )
        return again, leaves, nest.flatten(structure)

    begins = tensor.reshape(tensor.logical_not(tensor.all(finished)), [1])
    ended, collected = loops.counted(begins, first, step, is_test)
    _, final, _, lengths = nest.pack_sequence_as(parts, ended)
    outputs = nest.pack_sequence_as(structure, collected)
    with contextlib.suppress(NotImplementedError):
        outputs, final = decoder.finalize(outputs, final, lengths)
    if not output_time_major:
        outputs = nest.map_structure(lambda x: tensor.transpose(x, [1, 0, *range(2, x.ndim)]), outputs)
    return (outputs, final, lengths) if return_length else (outputs, final)


def _imputed(before, after, finished):
    """`after` but where the sequence had ended."""
    over = tensor.reshape(tensor.cast(finished, after.dtype.name), [-1] + [1] * (after.ndim - 1))
    return after * (1 - over) + before * over
