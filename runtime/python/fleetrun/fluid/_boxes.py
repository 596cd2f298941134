"""fluid.layers: boxes in pictures, and pairs of them (runtime/engine/operators/box_operators.cc,
match_operators.cc, suppression_operators.cc). A box is x and y of its first corner, then of its last."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._types import Any, Sequence, Variable

__all__ = [
    "bipartite_match", "box_coder", "iou_similarity", "mine_hard_examples", "multiclass_nms", "prior_box",
    "target_assign",
]  # fmt: skip


def _made(
    operator: str, inputs: Sequence[Variable | None], attributes: dict[str, Any], outputs: int = 1
) -> Any:
    layer = framework.unique_name(operator)
    names = framework.temporaries(layer, outputs)
    made = framework.append(layer, operator, inputs, attributes, names)
    for one in [made] if outputs == 1 else made:
        one.stop_gradient = True
    return made


def _listed(given: Any) -> list[float]:
    return [float(one) for one in (given if isinstance(given, (list, tuple)) else [given])]


def iou_similarity(
    x: Variable, y: Variable, box_normalized: bool = True, name: str | None = None
) -> Variable:
    """The area that two boxes share, divided by that of both. box_normalized=False: sides are whole pixels,
    with the last one. Shape: x[n, 4], y[m, 4] -> [n, m]; sequences are those of x."""
    return _made("iou_similarity", [x, y], {"box_normalized": bool(box_normalized)})


def box_coder(
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None,
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Variable:
    """How far each box of target_box is from each of prior_box, divided by prior_box_var; with
    decode_center_size the boxes of such distances, prior_box along `axis` of them.

    Shape: prior_box[m, 4]; target_box[n, 4], to decode [n, m, 4] -> [n, m, 4]."""
    apart = prior_box_var if isinstance(prior_box_var, Variable) else None
    same = [] if apart is not None or prior_box_var is None else _listed(prior_box_var)
    encodes = code_type.lower() == "encode_center_size"
    attributes = {
        "encodes": encodes,
        "box_normalized": bool(box_normalized),
        "axis": int(axis),
        "variance": same,
    }
    return _made("box_coder", [prior_box, target_box, apart], attributes)


def prior_box(
    input: Variable,
    image: Variable,
    min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable]:
    """(boxes around each place of the feature map `input`, in parts of the picture `image`; their variances).
    Of each of min_sizes there is one for 1 and each of aspect_ratios, with `flip` also of its inverse, and
    one between it and max_sizes. Shape: [n, c, h, w] -> [h, w, boxes, 4]."""
    ratios = [1.0]
    for ratio in _listed(aspect_ratios):
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1.0 / ratio] if flip else [ratio]
    larger = [] if max_sizes is None else _listed(max_sizes)
    attributes = {
        "min_sizes": _listed(min_sizes),
        "max_sizes": larger if larger and larger[0] > 0 else [],
        "aspect_ratios": ratios,
        "variances": _listed(variance),
        "clip": bool(clip),
        "steps": _listed(steps),
        "offset": float(offset),
        "min_max_aspect_ratios_order": bool(min_max_aspect_ratios_order),
    }
    boxes, variances = _made("prior_box", [input, image], attributes, 2)
    return boxes, variances


def bipartite_match(
    dist_matrix: Variable,
    match_type: str | None = None,
    dist_threshold: float | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """(the row of its picture that each column has, -1 for none; how near it is): each row takes the nearest
    column that is free, the nearest pair first. With match_type="per_prediction" each column that is left
    takes its nearest row, if that is as near as dist_threshold.

    Shape: [rows, m] with lod_level 1 -> [n, m]."""
    attributes = {
        "match_type": match_type or "bipartite",
        "dist_threshold": 0.5 if dist_threshold is None else float(dist_threshold),
    }
    rows, distances = _made("bipartite_match", [dist_matrix], attributes, 2)
    return rows, distances


def target_assign(
    input: Variable,
    matched_indices: Variable,
    negative_indices: Variable | None = None,
    mismatch_value: int | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """(the values of each column's row, mismatch_value for one without; weights: 1 for a row and for
    negative_indices, else 0).

    Shape: input[rows, m or 1, k] with lod_level 1, matched_indices[n, m] -> [n, m, k], [n, m, 1]."""
    whole = input if len(input.shape) == 3 else tensor.unsqueeze(input, 1)
    inputs = [whole, matched_indices, negative_indices]
    targets, weights = _made("target_assign", inputs, {"mismatch_value": int(mismatch_value or 0)}, 2)
    return targets, weights


def mine_hard_examples(
    loss: Variable, pairs: Variable, distances: Variable, neg_pos_ratio: float, neg_dist_threshold: float
) -> Variable:
    """Of each picture the columns without a row whose loss is largest, neg_pos_ratio for each that has one.
    Shape: [n, m] -> [some, 1] with lod_level 1."""
    attributes = {"neg_pos_ratio": float(neg_pos_ratio), "neg_dist_threshold": float(neg_dist_threshold)}
    found: Variable = _made("mine_hard_examples", [loss, pairs, distances], attributes)
    return found


def multiclass_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
    return_index: bool = False,
) -> Any:
    """The class, score and corners of the boxes that are found: of those of a class that overlap by more than
    nms_threshold the one with the best score. [[-1]] where there is none. With return_index also the place of
    each among all boxes.

    Shape: bboxes[n, m, 4], scores[n, classes, m] -> [found, 6] with lod_level 1."""
    attributes = {
        "score_threshold": float(score_threshold),
        "nms_top_k": int(nms_top_k),
        "keep_top_k": int(keep_top_k),
        "nms_threshold": float(nms_threshold),
        "normalized": bool(normalized),
        "nms_eta": float(nms_eta),
        "background_label": int(background_label),
    }
    found = _made("multiclass_nms", [bboxes, scores], attributes, 2)
    return found if return_index else found[0]
