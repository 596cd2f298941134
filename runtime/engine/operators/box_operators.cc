// Boxes in pictures: those of each place of a feature map, how far two overlap, and the distances that a
// model learns instead of corners. A box is x and y of its first corner, then of its last. No gradients.
//
// Source: Liu et al., SSD: Single Shot MultiBox Detector, 2016.

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/boxes.h"
#include "runtime/engine/operators/sequences.h"

namespace fleetrun::engine {

namespace {

constexpr std::size_t kCorners = 4;

void expect_boxes(const Inference& inference, std::size_t index, std::size_t dimensions) {
  inference.expect_type(index, DataType::float32);
  const Shape& shape = inference.input(index).shape;
  if (shape.size() != dimensions || shape.back() != std::int64_t{kCorners}) {
    inference.fail("'" + inference.op().inputs[index] + "' is not boxes of four values");
  }
}

std::size_t boxes_of(const Tensor& tensor) {
  return tensor.size() / kCorners;
}

void infer_iou_similarity(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  for (std::size_t i = 0; i < 2; ++i) expect_boxes(inference, i, 2);
  const Variable& x = inference.input(0);
  inference.set_output(0, DataType::float32, {x.shape[0], inference.input(1).shape[0]}, x.lod_level);
}

Kernel prepare_iou_similarity(const Preparation& p) {
  const float rim = attribute(p.op, "box_normalized", true) ? 0.0f : 1.0f;
  return [x = p.input(0), y = p.input(1), out = p.output(0), rim] {
    const auto rows = static_cast<std::int64_t>(boxes_of(*x));
    const auto columns = static_cast<std::int64_t>(boxes_of(*y));
    out->resize(DataType::float32, {rows, columns});
    out->offsets = x->offsets;
    const float* a = x->values<float>().data();
    float* to = out->values<float>().data();
    for (std::int64_t i = 0; i < rows; ++i, a += kCorners) {
      const float* b = y->values<float>().data();
      for (std::int64_t j = 0; j < columns; ++j, b += kCorners) *to++ = overlap_of(a, b, rim);
    }
  };
}

/// A box as what a model learns: its middle and its sides.
struct Middle {
  Middle(const float* box, float rim)
      : width(box[2] - box[0] + rim),
        height(box[3] - box[1] + rim),
        x(box[0] + width / 2),
        y(box[1] + height / 2) {}
  float width, height, x, y;
};

struct Coder {
  enum : std::size_t { kPrior, kTarget, kVariance };
};

void infer_box_coder(Inference& inference) {
  inference.expect_inputs(2, 3);
  inference.expect_outputs(1, 1);
  const bool encodes = attribute(inference.op(), "encodes", true);
  expect_boxes(inference, Coder::kPrior, 2);
  expect_boxes(inference, Coder::kTarget, encodes ? 2 : 3);
  if (is_given(inference.op(), Coder::kVariance)) expect_boxes(inference, Coder::kVariance, 2);
  const Variable& target = inference.input(Coder::kTarget);
  const std::int64_t priors = inference.input(Coder::kPrior).shape[0];
  inference.set_output(0, DataType::float32,
                       encodes ? Shape{target.shape[0], priors, kCorners} : Shape(target.shape),
                       target.lod_level);
}

void encode(const Middle& prior, const float* target, float rim, const float* variance, float* to) {
  const float width = target[2] - target[0] + rim;
  const float height = target[3] - target[1] + rim;
  to[0] = ((target[0] + target[2]) / 2 - prior.x) / prior.width / variance[0];
  to[1] = ((target[1] + target[3]) / 2 - prior.y) / prior.height / variance[1];
  to[2] = std::log(std::fabs(width / prior.width)) / variance[2];
  to[3] = std::log(std::fabs(height / prior.height)) / variance[3];
}

void decode(const Middle& prior, const float* target, float rim, const float* variance, float* to) {
  const float x = variance[0] * target[0] * prior.width + prior.x;
  const float y = variance[1] * target[1] * prior.height + prior.y;
  const float width = std::exp(variance[2] * target[2]) * prior.width;
  const float height = std::exp(variance[3] * target[3]) * prior.height;
  to[0] = x - width / 2;
  to[1] = y - height / 2;
  to[2] = x + width / 2 - rim;
  to[3] = y + height / 2 - rim;
}

Kernel prepare_box_coder(const Preparation& p) {
  const bool encodes = attribute(p.op, "encodes", true);
  const bool by_row = !encodes && attribute(p.op, "axis", std::int64_t{0}) == 1;
  const float rim = attribute(p.op, "box_normalized", true) ? 0.0f : 1.0f;
  std::vector<double> same = attribute(p.op, "variance", std::vector<double>{});
  same.resize(kCorners, 1.0);
  return [op = &p.op, prior = p.input(Coder::kPrior), target = p.input(Coder::kTarget),
          variance = p.input(Coder::kVariance), out = p.output(0), encodes, by_row, rim,
          all = std::vector<float>(same.begin(), same.end())] {
    const std::size_t priors = boxes_of(*prior);
    const std::size_t rows = encodes ? boxes_of(*target) : static_cast<std::size_t>(target->shape()[0]);
    const std::size_t columns = encodes ? priors : static_cast<std::size_t>(target->shape()[1]);
    check_size(*op, prior, (by_row ? rows : columns) * kCorners, "tensor of prior boxes");
    check_size(*op, variance, prior->size(), "tensor of variances");
    out->resize(DataType::float32,
                {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), kCorners});
    out->offsets = target->offsets;
    const float* from = target->values<float>().data();
    const float* boxes = prior->values<float>().data();
    float* to = out->values<float>().data();
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j, to += kCorners) {
        const std::size_t at = (by_row ? i : j) * kCorners;
        const float* shares = variance == nullptr ? all.data() : data_of(variance) + at;
        const float* box = from + (encodes ? i : i * columns + j) * kCorners;
        (encodes ? encode : decode)(Middle(boxes + at, rim), box, rim, shares, to);
      }
    }
  };
}

/// Half the sides of the boxes of a place, in pixels of the picture.
std::vector<std::array<double, 2>> prior_sides(const Operator& op) {
  const auto ratios = attribute<std::vector<double>>(op, "aspect_ratios");
  const auto small = attribute<std::vector<double>>(op, "min_sizes");
  const auto large = attribute(op, "max_sizes", std::vector<double>{});
  const bool square_first = attribute(op, "min_max_aspect_ratios_order", false);
  std::vector<std::array<double, 2>> all;
  for (std::size_t i = 0; i < small.size(); ++i) {
    std::vector<std::array<double, 2>> shaped;
    for (const double ratio : ratios) {
      if (square_first && std::fabs(ratio - 1.0) < 1e-6) continue;
      shaped.push_back({small[i] * std::sqrt(ratio) / 2, small[i] / std::sqrt(ratio) / 2});
    }
    if (square_first) all.push_back({small[i] / 2, small[i] / 2});
    if (!square_first) all.insert(all.end(), shaped.begin(), shaped.end());
    if (!large.empty()) {
      const double side = std::sqrt(small[i] * large[i]) / 2;
      all.push_back({side, side});
    }
    if (square_first) all.insert(all.end(), shaped.begin(), shaped.end());
  }
  return all;
}

void infer_prior_box(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(2, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (inference.input(i).shape.size() != 4) inference.fail("a feature map or picture is [n, c, h, w]");
  }
  const auto size_of_list = [&](const char* name) {
    return attribute(inference.op(), name, std::vector<double>{}).size();
  };
  if (size_of_list("variances") != kCorners) inference.fail("variances are not four");
  if (size_of_list("steps") != 2) inference.fail("steps are not two, along x and y");
  if (size_of_list("max_sizes") != 0 && size_of_list("max_sizes") != size_of_list("min_sizes")) {
    inference.fail("max_sizes are not as many as min_sizes");
  }
  const Shape& map = inference.input(0).shape;
  const auto boxes = static_cast<std::int64_t>(prior_sides(inference.op()).size());
  for (std::size_t i = 0; i < 2; ++i)
    inference.set_output(i, DataType::float32, {map[2], map[3], boxes, kCorners});
}

Kernel prepare_prior_box(const Preparation& p) {
  const auto variances = attribute<std::vector<double>>(p.op, "variances");
  const auto steps = attribute(p.op, "steps", std::vector<double>{0.0, 0.0});
  return [map = p.input(0), picture = p.input(1), out = p.output(0), shares = p.output(1), steps, variances,
          sides = prior_sides(p.op), clips = attribute(p.op, "clip", false),
          offset = attribute(p.op, "offset", 0.5)] {
    const std::int64_t high = map->shape()[2], wide = map->shape()[3];
    const auto height = static_cast<double>(picture->shape()[2]);
    const auto width = static_cast<double>(picture->shape()[3]);
    const bool own = steps[0] == 0.0 || steps[1] == 0.0;
    const double step_x = own ? width / static_cast<double>(wide) : steps[0];
    const double step_y = own ? height / static_cast<double>(high) : steps[1];
    const Shape shape{high, wide, static_cast<std::int64_t>(sides.size()), kCorners};
    out->resize(DataType::float32, shape);
    shares->resize(DataType::float32, shape);
    float* to = out->values<float>().data();
    const auto put = [&](double value) {
      *to++ = static_cast<float>(clips ? std::min(std::max(value, 0.0), 1.0) : value);
    };
    for (std::int64_t i = 0; i < high; ++i) {
      for (std::int64_t j = 0; j < wide; ++j) {
        const double x = (static_cast<double>(j) + offset) * step_x;
        const double y = (static_cast<double>(i) + offset) * step_y;
        for (const auto& [half_width, half_height] : sides) {
          put((x - half_width) / width);
          put((y - half_height) / height);
          put((x + half_width) / width);
          put((y + half_height) / height);
        }
      }
    }
    const auto values = shares->values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(variances[i % kCorners]);
  };
}

}  // namespace

std::span<const OperatorDefinition> box_operators() {
  static constexpr OperatorDefinition all[] = {
      {"iou_similarity",
       infer_iou_similarity,
       prepare_iou_similarity,
       nullptr,
       {"(X [n, 4], Y [m, 4]) -> Out [n, m]", "the area that two boxes share, divided by that of both",
        "box_normalized = true: false where sides are whole pixels, with the last one"}},
      {"box_coder",
       infer_box_coder,
       prepare_box_coder,
       nullptr,
       {"(Prior [m, 4], Target [n, 4], [Variance [m, 4]]) -> Out [n, m, 4]",
        "how far the middle of Target is from that of Prior, in its sides, and the logarithms of the ratios "
        "of sides, divided by Variance; without `encodes` the boxes of such distances, Target [n, m, 4]",
        "encodes = true; box_normalized = true; variance: four for all where there is no Variance; axis = 0: "
        "Prior goes along this axis of Target"}},
      {"prior_box",
       infer_prior_box,
       prepare_prior_box,
       nullptr,
       {"(Map [n, c, h, w], Picture [n, k, height, width]) -> Boxes, Variances [h, w, boxes, 4]",
        "the boxes around each place of the map, in parts of the picture: of each of min_sizes one for each "
        "of aspect_ratios, and one as large as it and max_sizes on average",
        "min_sizes; max_sizes; aspect_ratios; variances; clip = false: true keeps them within the picture; "
        "steps = [0, 0]: pixels between places, 0 for those of the picture; offset = 0.5; "
        "min_max_aspect_ratios_order = false: true puts those of max_sizes second"}},
  };
  return all;
}

}  // namespace fleetrun::engine
