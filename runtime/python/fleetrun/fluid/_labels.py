"""fluid.layers: sequences of labels without places in the input (runtime/engine/operators/
alignment_operators.cc)."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn._alignment import aligned_loss
from fleetrun.static.sequence_lod import lod_reset

__all__ = ["ctc_greedy_decoder", "edit_distance", "warpctc"]


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """-log of the chance of all alignments of labels with frames, whose logits `input` has: sequences [total,
    C], or with lengths [most, n, C] and label[n, most]. norm_by_times: gradients are divided by the frames.
    Shape: [n, 1]."""
    return aligned_loss(input, label, blank, norm_by_times, input_length, label_length)


def ctc_greedy_decoder(
    input: Variable,
    blank: int,
    input_length: Variable | None = None,
    padding_value: int = 0,
    name: str | None = None,
) -> Any:
    """The best label of each frame, repeated ones made one and blanks left out: sequences [total, 1] int64,
    of a sequence without labels [-1] where none has any; with input_length of [n, most, C] a pair: [n, most],
    filled up with padding_value, and [n, 1], how many there are."""
    best = tensor.argmax(input, -1)
    attributes = {"blank": int(blank), "merge_repeated": True, "padding_value": int(padding_value)}
    layer = framework.unique_name("ctc_align")
    if input_length is None:
        rows = lod_reset(tensor.reshape(best, [-1, 1]), input)
        return framework.append("ctc_align", "ctc_align", [rows], attributes, framework.temporaries(layer, 1))
    outputs = framework.temporaries(layer, 2)
    inputs = [best, tensor.reshape(input_length, [-1])]
    labels, counts = framework.append("ctc_align", "ctc_align", inputs, attributes, outputs)
    return labels, counts


def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
    """(how many labels to put in, leave out or replace, over label's length when normalized [n, 1]; how many
    sequences [1] int64). input, label: sequences, or [n, most] with lengths."""
    inputs = [input, label] if input_length is None else [input, label, input_length, label_length]
    attributes = {
        "normalized": bool(normalized),
        "ignored_tokens": [int(one) for one in ignored_tokens or ()],
    }
    outputs = framework.temporaries(framework.unique_name("edit_distance"), 2)
    distance, count = framework.append("edit_distance", "edit_distance", inputs, attributes, outputs)
    return distance, count
