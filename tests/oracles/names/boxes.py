"""Boxes in pictures: fluid.layers here, and in the real Paddle the operators."""

import numpy
from name_cases import values_of
from name_operators import operator

SHARES = [0.1, 0.1, 0.2, 0.2]


def _boxes(name, count):
    """Boxes with corners between 0 and 1."""
    middles = values_of(name + " middles", [count, 2]) * 0.6 + 0.5
    halves = abs(values_of(name + " halves", [count, 2])) * 0.6 + 0.05
    return numpy.concatenate([middles - halves, middles + halves], axis=1)


def _overlaps(paddle, x, y, whole=False):
    made = operator(paddle, "iou_similarity", {"X": x, "Y": y}, {"Out": "float32"},
                    {"box_normalized": not whole},
                    older=lambda layers: {"Out": layers.iou_similarity(x, y, box_normalized=not whole)})
    return made["Out"]


def overlaps(paddle, net):
    x, y = net.data("x", _boxes("x", 4)), net.data("y", _boxes("y", 6))
    pixels = net.data("pixels", numpy.round(_boxes("pixels", 5) * 20))
    return {"shares": _overlaps(paddle, x, y), "pixels": _overlaps(paddle, pixels, pixels, whole=True)}


def coded(paddle, net):
    prior, target = net.data("prior", _boxes("prior", 5)), net.data("target", _boxes("target", 3))
    shares = net.data("shares", numpy.tile(SHARES, [5, 1]) + 0.01 * _boxes("shares", 5))
    learnt, turned = (net.data(name, values_of(name, shape)) for name, shape in
                      (("learnt", [2, 5, 4]), ("turned", [5, 2, 4])))
    made = {}
    for name, boxes, variance, kind, whole, axis in (
        ("encoded", target, shares, "encode_center_size", False, 0),
        ("evenly", target, SHARES, "encode_center_size", True, 0),
        ("decoded", learnt, shares, "decode_center_size", False, 0),
        ("by row", turned, SHARES, "decode_center_size", True, 1),
    ):
        inputs = {"PriorBox": prior, "TargetBox": boxes}
        attributes = {"code_type": kind, "box_normalized": not whole, "axis": axis}
        if variance is shares:
            inputs["PriorBoxVar"] = shares
        else:
            attributes["variance"] = SHARES
        made[name] = operator(
            paddle, "box_coder", inputs, {"OutputBox": "float32"}, attributes,
            older=lambda layers: {"OutputBox": layers.box_coder(prior, variance, boxes, kind, not whole,
                                                                axis=axis)})["OutputBox"]
    return made


def around(paddle, net):
    """Boxes of places, with each of the settings."""
    map_ = net.data("map", values_of("map", [1, 2, 2, 3]), shape=[1, 2, 2, 3])
    picture = net.data("picture", values_of("picture", [1, 3, 20, 30]), shape=[1, 3, 20, 30])
    made = {}
    for name, larger, ratios, flip, clip, steps, second in (
        ("plain", [], [1.0], False, False, [0.0, 0.0], False),
        ("shaped", [8.0, 20.0], [2.0, 3.0, 1.0], True, True, [0.0, 0.0], False),
        ("second", [8.0, 20.0], [2.0], True, False, [9.0, 11.0], True),
    ):
        attributes = {"min_sizes": [4.0, 12.0], "max_sizes": larger, "aspect_ratios": ratios,
                      "variances": SHARES, "flip": flip, "clip": clip, "step_w": steps[0],
                      "step_h": steps[1], "offset": 0.5, "min_max_aspect_ratios_order": second}
        both = operator(
            paddle, "prior_box", {"Input": map_, "Image": picture},
            {"Boxes": "float32", "Variances": "float32"}, attributes,
            older=lambda layers: dict(zip(("Boxes", "Variances"), layers.prior_box(
                map_, picture, [4.0, 12.0], larger, ratios, SHARES, flip, clip, steps,
                min_max_aspect_ratios_order=second))))
        made |= {name: both["Boxes"], name + " variances": both["Variances"]}
    return made


def paired(paddle, net):
    """Pairs of each picture, and places without one that are worth learning."""
    truth = net.data("truth", _boxes("truth", 5), lengths=[3, 2])
    prior = net.data("prior", _boxes("prior", 8), shape=[8, 4])
    loss = net.data("loss", values_of("loss", [2, 8]))
    matched = {}
    for kind in ("bipartite", "per_prediction"):
        near = _overlaps(paddle, truth, prior)
        attributes = {"match_type": kind, "dist_threshold": 0.2}
        names = ("ColToRowMatchIndices", "ColToRowMatchDist")
        found = operator(paddle, "bipartite_match", {"DistMat": near}, dict(zip(names, ("int32", "float32"))),
                         attributes,
                         older=lambda layers: dict(zip(names, layers.bipartite_match(near, kind, 0.2))))
        matched |= {kind: found[names[0]], kind + " near": found[names[1]]}
    pairs, near = matched["bipartite"], matched["bipartite near"]

    def mined(layers):
        from fleetrun.fluid._boxes import mine_hard_examples

        return {"NegIndices": mine_hard_examples(loss, pairs, near, 1.5, 0.9)}

    free = operator(paddle, "mine_hard_examples", {"ClsLoss": loss, "MatchIndices": pairs, "MatchDist": near},
                    {"NegIndices": "int32", "UpdatedMatchIndices": "int32"},
                    {"neg_pos_ratio": 1.5, "neg_dist_threshold": 0.9, "mining_type": "max_negative",
                     "sample_size": 0}, older=mined)["NegIndices"]
    return {**matched, "free": paddle.transpose(free, [1, 0])}


def found(paddle, net):
    """The best of boxes that overlap, with each of the limits."""
    boxes = net.data("boxes", numpy.stack([_boxes("first", 12), _boxes("then", 12)]))
    scores = net.data("scores", values_of("scores", [2, 3, 12]) + 0.5)
    made = {}
    for name, least, best, most, near, shrink, whole, background in (
        ("all", 0.2, -1, -1, 0.3, 1.0, False, 0),
        ("few", 0.05, 6, 4, 0.5, 1.0, False, -1),
        ("shrinking", 0.05, 10, 100, 0.8, 0.6, True, 2),
        ("none", 2.0, 10, 10, 0.3, 1.0, False, 0),
    ):
        attributes = {"score_threshold": least, "nms_top_k": best, "keep_top_k": most, "nms_threshold": near,
                      "nms_eta": shrink, "normalized": not whole, "background_label": background}
        one = operator(
            paddle, "multiclass_nms", {"BBoxes": boxes, "Scores": scores}, {"Out": "float32"}, attributes,
            older=lambda layers: {"Out": layers.multiclass_nms(
                boxes, scores, least, best, most, near, not whole, shrink, background)})["Out"]
        made[name] = paddle.transpose(one, [1, 0])  # without sequences, which are not fetched as arrays
    return made
