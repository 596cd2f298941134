"""fluid.layers: labels of sequences, as a linear chain learns and finds them, and pieces of them counted
(runtime/engine/operators/crf_operators.cc, chunk_operators.cc)."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import ParamLike, Sequence, Variable
from fleetrun.static.sequences import in_sequences

__all__ = ["chunk_eval", "crf_decoding", "linear_chain_crf"]


def linear_chain_crf(
    input: Variable, label: Variable, param_attr: ParamLike = None, length: Variable | None = None
) -> Variable:
    """-log of the chance of each sequence of labels, [n, 1].

    Shape: input[total, classes] and label[total, 1] with lod_level 1; with length[n], the number of labels of
    each, input[n, most, classes] and label[n, most]. The parameter is [classes + 2, classes]: weights of the
    first label, of the last, and of each label after another.
    """
    layer = framework.unique_name("linear_chain_crf")
    classes = int(input.shape[-1])
    weight = framework.make_parameter(
        layer, [classes + 2, classes], "float32", param_attr, False, None, named=True
    )
    inputs = [_emission(input, length, "linear_chain_crf"), weight, _whole(label), _whole(length)]
    return framework.append(layer, "linear_chain_crf", inputs, {}, framework.temporaries(layer, 1))


def crf_decoding(
    input: Variable,
    param_attr: ParamLike,
    label: Variable | None = None,
    length: Variable | None = None,
) -> Variable:
    """The likeliest labels under the parameter of a linear_chain_crf, which param_attr names: int64
    [total, 1], or [n, most] with `length`; with `label` 1 where they are those labels, else 0.

    Shapes: those of linear_chain_crf. Throws: Error(config) where the program has no such parameter."""
    name = param_attr if isinstance(param_attr, str) else getattr(param_attr, "name", None)
    program = framework.default_main_program()
    if not name or not program.has_var(name):
        raise Error(
            "config",
            f"fluid.layers.crf_decoding: the program has no parameter {name!r}",
            "name the one of linear_chain_crf: param_attr=ParamAttr(name=…)",
        )
    inputs = [_emission(input, length, "crf_decoding"), program.var(name), _whole(label), _whole(length)]
    layer = framework.unique_name("crf_decoding")
    return framework.append(layer, "crf_decoding", inputs, {}, framework.temporaries(layer, 1))


def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
) -> tuple[Variable, ...]:
    """(precision, recall, F1, pieces of input, of label, of both), each [1]: a label is type * places of the
    scheme (IOB, IOE, IOBES, plain) + place.

    Shape: input and label int64, sequences, or [n, most] with seq_length[n]."""
    found = input if seq_length is not None else in_sequences(input, "chunk_eval")
    attributes = {
        "chunk_scheme": chunk_scheme,
        "num_chunk_types": int(num_chunk_types),
        "excluded_chunk_types": [int(one) for one in excluded_chunk_types or ()],
    }
    layer = framework.unique_name("chunk_eval")
    inputs = [_whole(found), _whole(label), _whole(seq_length)]
    return tuple(framework.append(layer, "chunk_eval", inputs, attributes, framework.temporaries(layer, 6)))


def _emission(input, length, call):
    return input if length is not None else in_sequences(input, call)


def _whole(labels):
    """Labels as int64; None for none."""
    if labels is None or labels.dtype.name == "int64":
        return labels
    return tensor.cast(labels, "int64")
