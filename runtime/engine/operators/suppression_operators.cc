// The boxes that a model finds: of those that overlap much the one with the best score. No gradients.
//
// Source: Liu et al., SSD: Single Shot MultiBox Detector, 2016.

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/boxes.h"
#include "runtime/engine/operators/channels.h"

namespace fleetrun::engine {

namespace {

struct Suppression {
  enum : std::size_t { kBoxes, kScores };
};

/// What the attributes say.
struct Rules {
  explicit Rules(const Operator& op)
      : background(attribute(op, "background_label", std::int64_t{0})),
        score(static_cast<float>(attribute<double>(op, "score_threshold"))),
        overlap(static_cast<float>(attribute(op, "nms_threshold", 0.3))),
        shrink(static_cast<float>(attribute(op, "nms_eta", 1.0))),
        best(attribute<std::int64_t>(op, "nms_top_k")),
        most(attribute<std::int64_t>(op, "keep_top_k")),
        rim(attribute(op, "normalized", true) ? 0.0f : 1.0f) {}
  std::int64_t background;
  float score, overlap, shrink;
  std::int64_t best, most;
  float rim;

  /// How many of so many are kept; below 0: all.
  static std::size_t within(std::int64_t limit, std::size_t size) {
    return limit < 0 ? size : std::min(size, static_cast<std::size_t>(limit));
  }
  float overlapping(const float* a, const float* b) const {
    if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return 0.0f;
    return overlap_of(a, b, rim);
  }

  /// The boxes of a class that are kept, the best first.
  std::vector<std::size_t> keep(const float* boxes, const float* scores, std::size_t count) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < count; ++i) {
      if (scores[i] > score) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return scores[i]; });
    order.resize(within(best, order.size()));
    std::vector<std::size_t> kept;
    float limit = overlap;
    for (const std::size_t i : order) {
      const bool near = std::ranges::any_of(
          kept, [&](std::size_t j) { return overlapping(boxes + 4 * i, boxes + 4 * j) > limit; });
      if (near) continue;
      kept.push_back(i);
      if (shrink < 1.0f && limit > 0.5f) limit *= shrink;
    }
    return kept;
  }
};

/// A box that was found, of a class.
struct Found {
  std::size_t label, box;
  float score;
};

void infer_multiclass_nms(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(2, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    inference.expect_type(i, DataType::float32);
    if (inference.input(i).shape.size() != 3)
      inference.fail("boxes are [n, boxes, 4], scores [n, classes, boxes]");
  }
  const std::int64_t width = inference.input(Suppression::kBoxes).shape[2];
  if (width != 4) inference.fail("boxes have " + std::to_string(width) + " values, not four");
  inference.set_output(0, DataType::float32, {-1, 6}, 1);
  inference.set_output(1, DataType::int32, {-1, 1}, 1);
}

std::vector<Found> found_in(const Rules& rules, const float* boxes, const float* scores, std::size_t classes,
                            std::size_t count) {
  std::vector<Found> all;
  for (std::size_t label = 0; label < classes; ++label) {
    if (static_cast<std::int64_t>(label) == rules.background) continue;
    const float* own = scores + label * count;
    for (const std::size_t i : rules.keep(boxes, own, count)) all.push_back({label, i, own[i]});
  }
  const std::size_t most = Rules::within(rules.most, all.size());
  if (most < all.size()) {
    std::ranges::stable_sort(all, std::greater(), &Found::score);
    all.resize(most);
    std::ranges::stable_sort(all, std::less(), &Found::label);
  }
  return all;
}

Kernel prepare_multiclass_nms(const Preparation& p) {
  return [op = &p.op, boxes = p.input(Suppression::kBoxes), scores = p.input(Suppression::kScores),
          out = p.output(0), index = p.output(1), rules = Rules(p.op)] {
    const auto pictures = static_cast<std::size_t>(scores->shape()[0]);
    const auto classes = static_cast<std::size_t>(scores->shape()[1]);
    const auto count = static_cast<std::size_t>(scores->shape()[2]);
    check_size(*op, boxes, pictures * count * 4, "tensor of boxes");
    std::vector<float> rows;
    std::vector<std::int32_t> places;
    std::vector<std::size_t> offsets{0};
    for (std::size_t n = 0; n < pictures; ++n) {
      const float* own = boxes->values<float>().data() + n * count * 4;
      const float* chances = scores->values<float>().data() + n * classes * count;
      for (const auto& [label, box, score] : found_in(rules, own, chances, classes, count)) {
        rows.insert(rows.end(), {static_cast<float>(label), score});
        rows.insert(rows.end(), own + 4 * box, own + 4 * box + 4);
        places.push_back(static_cast<std::int32_t>(n * count + box));
      }
      offsets.push_back(places.size());
    }
    const auto found = static_cast<std::int64_t>(places.size());
    index->resize(DataType::int32, {found, 1});
    std::ranges::copy(places, index->values<std::int32_t>().begin());
    index->offsets = offsets;
    // As Paddle has it: a single -1 where there is no box in any picture.
    out->resize(DataType::float32, found == 0 ? Shape{1, 1} : Shape{found, 6});
    if (found == 0) {
      rows = {-1.0f};
      offsets = {0, 1};
    }
    std::ranges::copy(rows, out->values<float>().begin());
    out->offsets = std::move(offsets);
  };
}

}  // namespace

std::span<const OperatorDefinition> suppression_operators() {
  static constexpr OperatorDefinition all[] = {
      {"multiclass_nms",
       infer_multiclass_nms,
       prepare_multiclass_nms,
       nullptr,
       {"(Boxes [n, m, 4], Scores [n, classes, m]) -> Out [found, 6], Index int32 [found, 1]",
        "the class, score and corners of each box that is found, in the order of classes and scores: a box "
        "of a class that overlaps a better one by more than nms_threshold is left out; -1 [1, 1] where none "
        "is found. Index: its place in Boxes [n * m, 4]",
        "score_threshold: no box has this score or less; nms_top_k: the most of a class before; keep_top_k: "
        "the most of a picture, -1 for all; nms_threshold = 0.3; nms_eta = 1: nms_threshold times this after "
        "each box that is kept, down to 0.5; background_label = 0: a class that is left out; normalized = "
        "true: false where sides are whole pixels, with the last one"}},
  };
  return all;
}

}  // namespace fleetrun::engine
