"""BasicDecoder of Paddle 1.8, and the helpers that say what goes into its steps."""

from __future__ import annotations

import collections

from fleetrun import tensor
from fleetrun._types import Any, Callable, Variable
from fleetrun.fluid._decoding import Decoder
from fleetrun.fluid._odd_layers import sampling_id
from fleetrun.nn import functional
from fleetrun.utils import nest

__all__ = ["BasicDecoder", "DecodeHelper", "GreedyEmbeddingHelper", "SampleEmbeddingHelper", "TrainingHelper"]


class DecodeHelper:
    """What BasicDecoder asks for; a subclass has these."""

    def initialize(self) -> tuple[Any, Any]:
        """(inputs, finished) of the first step."""
        raise NotImplementedError(f"{type(self).__name__}.initialize")

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        """The words of a step."""
        raise NotImplementedError(f"{type(self).__name__}.sample")

    def next_inputs(self, time: Any, outputs: Any, states: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        """(finished, inputs, states) of the next step."""
        raise NotImplementedError(f"{type(self).__name__}.next_inputs")


class TrainingHelper(DecodeHelper):
    """The steps' inputs are `inputs`, [n, steps, ..] or with time_major [steps, n, ..]; sequences end after
    sequence_length, [n]."""

    def __init__(self, inputs: Any, sequence_length: Variable, time_major: bool = False) -> None:
        self.inputs, self.sequence_length, self.time_major = inputs, sequence_length, time_major

    def _at(self, place):
        axis = 0 if self.time_major else 1

        def taken(x: Variable) -> Variable:
            last = tensor.cast(tensor.shape(x)[axis], "int64") - 1
            at = tensor.minimum(tensor.reshape(tensor.cast(place, "int64"), [1]), tensor.reshape(last, [1]))
            return tensor.squeeze(tensor.gather(x, at, axis), axis)

        return nest.map_structure(taken, self.inputs)

    def initialize(self) -> tuple[Any, Any]:
        return self._at(tensor.full([1], 0, "int64")), self.sequence_length <= 0

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        return tensor.argmax(outputs, -1)

    def next_inputs(self, time: Any, outputs: Any, states: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        following = tensor.cast(time, "int64") + 1
        finished = tensor.less_equal(tensor.cast(self.sequence_length, "int64"), following)
        return finished, self._at(following), states


class GreedyEmbeddingHelper(DecodeHelper):
    """The inputs of a step are embedding_fn of the likeliest words of the step before, of start_tokens, [n],
    for the first; sequences end with end_token."""

    def __init__(self, embedding_fn: Callable[[Any], Any], start_tokens: Variable, end_token: int) -> None:
        self.embedding_fn, self.start_tokens, self.end_token = embedding_fn, start_tokens, end_token

    def initialize(self) -> tuple[Any, Any]:
        return self.embedding_fn(self.start_tokens), tensor.not_equal(self.start_tokens, self.start_tokens)

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        return tensor.argmax(outputs, -1)

    def next_inputs(self, time: Any, outputs: Any, states: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        finished = tensor.equal(sample_ids, tensor.full([1], self.end_token, sample_ids.dtype))
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Words are drawn: by softmax(outputs / softmax_temperature)."""

    def __init__(
        self,
        embedding_fn: Callable[[Any], Any],
        start_tokens: Variable,
        end_token: int,
        softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature, self.seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        if self.softmax_temperature is not None:
            outputs = outputs / self.softmax_temperature
        words = sampling_id(functional.softmax(outputs), seed=self.seed or 0, dtype="int64")
        return tensor.cast(words, self.start_tokens.dtype)


class BasicDecoder(Decoder):
    """Steps of a cell, whose outputs, or output_fn of them, a helper makes words and the next inputs of."""

    OutputWrapper = collections.namedtuple("OutputWrapper", ("cell_outputs", "sample_ids"))

    def __init__(
        self, cell: Any, helper: DecodeHelper, output_fn: Callable[[Any], Any] | None = None
    ) -> None:
        self.cell, self.helper, self.output_fn = cell, helper, output_fn

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """`inits`: the cell's first states."""
        inputs, finished = self.helper.initialize()
        return inputs, inits, finished

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """(outputs and words, next states, next inputs, finished)."""
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        words = self.helper.sample(time=time, outputs=outputs, states=states)
        words.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(
            time=time, outputs=outputs, states=states, sample_ids=words
        )
        return self.OutputWrapper(outputs, words), states, inputs, finished
