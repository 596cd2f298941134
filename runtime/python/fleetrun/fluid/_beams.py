"""fluid.layers: beam search step by step, over variables with lod_level 2."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Variable
from fleetrun.fluid._arrays import TensorArray
from fleetrun.static import groups
from fleetrun.static.sequences import lengths_of, with_lengths

__all__ = ["beam_search", "beam_search_decode"]


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> Any:
    """The best `beam_size` continuations of each source: (ids, scores), with return_parent_idx the rows that
    they continue, too. ids: of the candidates, None for their places. is_accumulated: scores are those of
    whole sequences; else chances of one id.

    Shape: pre_ids, pre_scores[rows, 1] with lod_level 2, ids, scores[rows, candidates] -> [n, 1] with
    lod_level 2.
    """
    refuse("fluid.layers.beam_search", level=(level, 0))
    known = [one for one in (pre_ids, pre_scores, scores) if groups.groups_of(one) is not None]
    if not known:
        raise Error(
            "config",
            f"fluid.layers.beam_search: {pre_ids.name} has no groups of sequences",
            "let the first ids and scores be inputs with lod_level=2, one group for each source",
        )
    rows = with_lengths(tensor.cast(pre_ids, "int64"), lengths_of(known[0], "beam_search"))
    candidates = None if ids is None else tensor.cast(ids, "int64")
    outputs = framework.temporaries(framework.unique_name("beam_search"), 4)
    found, totals, parents, sources = framework.append(
        "beam_search",
        "beam_search",
        [rows, pre_scores, candidates, scores, groups.groups_of(known[0])],
        {"beam_size": int(beam_size), "end_id": int(end_id), "is_accumulated": bool(is_accumulated)},
        outputs,
    )
    made = groups.put(found, sources), groups.put(totals, sources)
    return (*made, parents) if return_parent_idx else made


def beam_search_decode(
    ids: TensorArray, scores: TensorArray, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """The sequences that beam_search() has found, the best of each source first: (ids, scores), [n, 1] with
    lod_level 2. `ids`, `scores`: arrays of its results of all steps. Throws: Error(config) for others."""
    steps, totals = ids.pack(), scores.pack()
    if steps.lengths is None or steps.groups is None:
        raise Error(
            "config",
            "fluid.layers.beam_search_decode: the first ids of its array have no groups of sequences",
            "write what is fed with lod_level=2, or what beam_search() gives",
        )
    inputs = [tensor.cast(steps.rows.values, "int64"), totals.rows.values, steps.rows.counts]
    for part in (steps.lengths, steps.groups):
        inputs += [part.values, part.counts]
    outputs = framework.temporaries(framework.unique_name("beam_search_decode"), 3)
    attributes = {"beam_size": int(beam_size), "end_id": int(end_id)}
    found, points, sources = framework.append(
        "beam_search_decode", "beam_search_decode", inputs, attributes, outputs
    )
    return groups.put(found, sources), groups.put(points, sources)
