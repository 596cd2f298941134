"""fluid.layers: models that find objects in pictures, of the kind of SSD (Liu et al., SSD: Single Shot
MultiBox Detector, 2016)."""

from __future__ import annotations

import math

from fleetrun import tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable
from fleetrun.fluid import _boxes
from fleetrun.fluid._losses import smooth_l1
from fleetrun.nn import functional
from fleetrun.static.nn import conv2d

__all__ = ["detection_output", "multi_box_head", "ssd_loss"]


def _each(what: str, given: Any, count: int) -> list[Any]:
    """One of `given` for each feature map."""
    if not isinstance(given, (list, tuple)) or len(given) != count:
        raise Error(
            "config", f"fluid.layers.multi_box_head: {what} is not a list of {count}, one for each input"
        )
    return list(given)


def _sizes(base_size: int, min_ratio: int, max_ratio: int, count: int) -> tuple[list[float], list[float]]:
    """Sides of the boxes of each feature map, evenly between two percentages of the picture."""
    step = math.floor((max_ratio - min_ratio) / (count - 2))
    ratios = range(min_ratio, max_ratio + 1, step)
    small = [base_size * ratio / 100.0 for ratio in ratios]
    large = [base_size * (ratio + step) / 100.0 for ratio in ratios]
    return [base_size * 0.1, *small], [base_size * 0.2, *large]


def _of_boxes(map_: Variable, boxes: int, width: int, kernel_size: int, stride: int, pad: int) -> Variable:
    """A convolution with `width` values for each box of each place, [n, all boxes, width]."""
    made = conv2d(map_, boxes * width, kernel_size, stride, pad)
    return tensor.reshape(tensor.transpose(made, [0, 2, 3, 1]), [0, -1, width])


def multi_box_head(
    inputs: Sequence[Variable],
    image: Variable,
    base_size: int,
    num_classes: int,
    aspect_ratios: Sequence[Any],
    min_ratio: int | None = None,
    max_ratio: int | None = None,
    min_sizes: Sequence[Any] | None = None,
    max_sizes: Sequence[Any] | None = None,
    steps: Sequence[float] | None = None,
    step_w: Sequence[float] | None = None,
    step_h: Sequence[float] | None = None,
    offset: float = 0.5,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = True,
    clip: bool = False,
    kernel_size: int = 1,
    pad: int = 0,
    stride: int = 1,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable, Variable, Variable]:
    """(distances [n, m, 4], scores [n, m, num_classes], boxes [m, 4], variances [m, 4]) of the m boxes around
    all places of the feature maps `inputs`; a convolution of each makes the first two. Sides of boxes are
    min_sizes and max_sizes, else min_ratio to max_ratio percent of base_size."""
    count = len(inputs)
    if (
        min_sizes is None
        and max_sizes is None
        and min_ratio is not None
        and max_ratio is not None
        and count > 2
    ):
        min_sizes, max_sizes = _sizes(base_size, min_ratio, max_ratio, count)
    small, large = _each("min_sizes", min_sizes, count), _each("max_sizes", max_sizes, count)
    ratios = _each("aspect_ratios", aspect_ratios, count) if aspect_ratios else [[]] * count
    across = steps if steps is not None else step_w or [0.0] * count
    down = steps if steps is not None else step_h or [0.0] * count
    pairs = zip(_each("step_w", across, count), _each("step_h", down, count))
    parts = []
    for map_, least, most, shapes, step in zip(inputs, small, large, ratios, pairs):
        boxes, variances = _boxes.prior_box(
            map_, image, least, most, shapes, variance, flip, clip, step, offset,
            min_max_aspect_ratios_order=min_max_aspect_ratios_order,
        )  # fmt: skip
        each, shape = int(boxes.shape[2]), (kernel_size, stride, pad)
        parts.append((
            _of_boxes(map_, each, 4, *shape), _of_boxes(map_, each, num_classes, *shape),
            tensor.reshape(boxes, [-1, 4]), tensor.reshape(variances, [-1, 4]),
        ))  # fmt: skip
    distances, scores, boxes, variances = (
        tensor.concat(list(part), axis) for part, axis in zip(zip(*parts), (1, 1, 0, 0))
    )
    boxes.stop_gradient = variances.stop_gradient = True
    return distances, scores, boxes, variances


def ssd_loss(
    location: Variable,
    confidence: Variable,
    gt_box: Variable,
    gt_label: Variable,
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None = None,
    background_label: int = 0,
    overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0,
    neg_overlap: float = 0.5,
    loc_loss_weight: float = 1.0,
    conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction",
    mining_type: str = "max_negative",
    normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:
    """The loss of each picture, [n, 1]: of the distances of boxes that have a box of the truth, and of the
    classes of these and of neg_pos_ratio times as many without one, whose loss is largest. `normalize`:
    divided by the number of boxes that have one, in all pictures.

    Shape: location[n, m, 4], confidence[n, m, classes], prior_box[m, 4]; gt_box[some, 4] and
    gt_label[some, 1] with lod_level 1."""
    refuse("fluid.layers.ssd_loss", mining_type=(mining_type, "max_negative"))
    overlaps = _boxes.iou_similarity(gt_box, prior_box)
    pairs, nearness = _boxes.bipartite_match(overlaps, match_type, overlap_threshold)
    labels = tensor.reshape(gt_label, [-1, 1, 1])
    count = confidence.shape[1] if confidence.shape[1] > 0 else prior_box.shape[0]

    def class_loss(negatives: Variable | None) -> tuple[Variable, Variable]:
        wanted, weights = _boxes.target_assign(labels, pairs, negatives, background_label)
        wanted = tensor.cast(tensor.reshape(wanted, [-1, 1]), "int64")
        wanted.stop_gradient = True
        scores = tensor.reshape(confidence, [-1, int(confidence.shape[2])])
        return functional.softmax_with_cross_entropy(scores, wanted), tensor.reshape(weights, [-1, 1])

    guess = tensor.reshape(class_loss(None)[0], [-1, int(count)])
    guess.stop_gradient = True
    negatives = _boxes.mine_hard_examples(guess, pairs, nearness, neg_pos_ratio, neg_overlap)
    of_classes, weights = class_loss(negatives)
    encoded = _boxes.box_coder(prior_box, prior_box_var, gt_box)
    targets, learnt = _boxes.target_assign(encoded, pairs, None, background_label)
    learnt = tensor.reshape(learnt, [-1, 1])
    for one in (weights, targets, learnt):
        one.stop_gradient = True
    apart = smooth_l1(tensor.reshape(location, [-1, 4]), tensor.reshape(targets, [-1, 4]))
    loss = of_classes * weights * conf_loss_weight + apart * learnt * loc_loss_weight
    loss = tensor.sum(tensor.reshape(loss, [-1, int(count)]), axis=1, keepdim=True)
    return loss / tensor.sum(learnt) if normalize else loss


def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None,
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    return_index: bool = False,
) -> Any:
    """multiclass_nms() of distances from prior_box, and of scores before their softmax.

    Shape: loc[n, m, 4], scores[n, m, classes] -> [found, 6] with lod_level 1."""
    boxes = _boxes.box_coder(prior_box, prior_box_var, loc, "decode_center_size")
    chances = tensor.transpose(functional.softmax(scores), [0, 2, 1])
    limits = (score_threshold, nms_top_k, keep_top_k, nms_threshold)
    return _boxes.multiclass_nms(
        boxes, chances, *limits, nms_eta=nms_eta, background_label=background_label, return_index=return_index
    )
