"""Operators on boxes of Paddle by their types: what computes each here."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._types import Any
from fleetrun.fluid import _boxes

__all__ = ["box_table"]


def _coder(op):
    apart = op.get("PriorBoxVar")
    variance = op.at("variance", []) if apart is None else apart
    code = op.at("code_type", "encode_center_size")
    return _boxes.box_coder(
        op["PriorBox"],
        variance,
        op["TargetBox"],
        code,
        bool(op.at("box_normalized", True)),
        axis=op.at("axis", 0),
    )


def _prior(op):
    return _boxes.prior_box(
        op["Input"],
        op["Image"],
        op.at("min_sizes"),
        op.at("max_sizes", []),
        op.at("aspect_ratios", [1.0]),
        op.at("variances", [0.1, 0.1, 0.2, 0.2]),
        bool(op.at("flip", False)),
        bool(op.at("clip", False)),
        [op.at("step_w", 0.0), op.at("step_h", 0.0)],
        op.at("offset", 0.5),
        min_max_aspect_ratios_order=bool(op.at("min_max_aspect_ratios_order", False)),
    )


def _found(op):
    op.without("RoisNum")
    return _boxes.multiclass_nms(
        op["BBoxes"],
        op["Scores"],
        op.at("score_threshold"),
        op.at("nms_top_k"),
        op.at("keep_top_k"),
        op.at("nms_threshold", 0.3),
        bool(op.at("normalized", True)),
        op.at("nms_eta", 1.0),
        op.at("background_label", 0),
        return_index=True,
    )


def _mined(op):
    op.only(mining_type="max_negative")
    ratio, distance = op.at("neg_pos_ratio", 1.0), op.at("neg_dist_threshold", 0.5)
    pairs = op["MatchIndices"]
    return _boxes.mine_hard_examples(op["ClsLoss"], pairs, op["MatchDist"], ratio, distance), pairs


def box_table() -> dict[str, Any]:
    return {
        "bipartite_match": (
            lambda op: _boxes.bipartite_match(op["DistMat"], op.at("match_type"), op.at("dist_threshold")),
            "ColToRowMatchIndices ColToRowMatchDist",
        ),
        "box_coder": (_coder, "OutputBox"),
        "iou_similarity": lambda op: _boxes.iou_similarity(
            op["X"], op["Y"], bool(op.at("box_normalized", True))
        ),
        "mine_hard_examples": (_mined, "NegIndices UpdatedMatchIndices"),
        **dict.fromkeys(("multiclass_nms", "multiclass_nms2", "multiclass_nms3"), (_found, "Out Index")),
        "prior_box": (_prior, "Boxes Variances"),
        "target_assign": (
            lambda op: _boxes.target_assign(
                op["X"], op["MatchIndices"], op.get("NegIndices"), op.at("mismatch_value", 0)
            ),
            "Out OutWeight",
        ),
    }


__getattr__, __dir__ = _lazy.attach(__name__)
