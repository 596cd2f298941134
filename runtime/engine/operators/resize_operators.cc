// Images, sequences and volumes in another size: each axis of space is a linear map of its own, from some
// neighbours of a place to its value. float32; places and weights as Paddle has them, in float.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/second_gradients.h"

namespace fleetrun::engine {

namespace {

/// The neighbours of a place and what each counts.
struct Taps {
  std::array<std::size_t, 4> at{};
  std::array<float, 4> weight{};
  std::size_t count = 0;

  void add(std::int64_t index, std::int64_t size, float factor) {
    at[count] = static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, size - 1));
    weight[count++] = factor;
  }
};

struct Sampling {
  explicit Sampling(const Operator& op)
      : method(attribute<std::string>(op, "interp_method")),
        aligned(attribute(op, "align_corners", true)),
        centred(attribute(op, "align_mode", std::int64_t{1}) == 0 && !aligned) {
    if (method != "nearest" && method != "linear" && method != "cubic") {
      fail(op, "there is no interp_method '" + method + "'", "use nearest, linear or cubic");
    }
  }

  std::string method;
  bool aligned, centred;
};

/// The weights of four neighbours, `t` behind the second. Source: Keys, Cubic convolution interpolation,
/// 1981.
std::array<float, 4> cubic_weights(float t) {
  constexpr float kA = -0.75f;
  const auto near = [](float x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// Of `ratio` times as many values as places.
Taps taps_of(const Sampling& sampling, float ratio, std::int64_t place, std::int64_t size) {
  Taps taps;
  const auto k = static_cast<float>(place);
  if (sampling.method == "nearest") {
    taps.add(static_cast<std::int64_t>(sampling.aligned ? ratio * k + 0.5f : ratio * k), size, 1.0f);
  } else if (sampling.method == "linear") {
    const float at = sampling.centred ? std::max(ratio * (k + 0.5f) - 0.5f, 0.0f) : ratio * k;
    const auto first = static_cast<std::int64_t>(at);
    const float part = at - static_cast<float>(first);
    taps.add(first, size, 1.0f - part);
    taps.add(first + 1, size, part);
  } else {
    const float at = sampling.aligned ? ratio * k : ratio * (k + 0.5f) - 0.5f;
    const float first = std::floor(at);
    const auto weights = cubic_weights(at - first);
    for (std::int64_t i = 0; i < 4; ++i) {
      taps.add(static_cast<std::int64_t>(first) - 1 + i, size, weights[static_cast<std::size_t>(i)]);
    }
  }
  return taps;
}

/// One axis of a tensor, from `size` values to `places`.
struct AxisMap {
  AxisMap(const Sampling& sampling, std::int64_t size, std::int64_t places, float scale) : taps_(places) {
    float ratio = 0.0f;
    if (places > 1) {
      const auto from = static_cast<float>(size), to = static_cast<float>(places);
      ratio = sampling.aligned ? (from - 1) / (to - 1) : scale > 0.0f ? 1.0f / scale : from / to;
    }
    for (std::int64_t k = 0; k < places; ++k)
      taps_[static_cast<std::size_t>(k)] = taps_of(sampling, ratio, k, size);
  }

  /// body(value, place, weight) for lines of [outer, size or places, inner].
  template <class Body>
  void for_each(std::size_t outer, std::size_t size, std::size_t inner, const Body& body) const {
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t k = 0; k < taps_.size(); ++k) {
        for (std::size_t tap = 0; tap < taps_[k].count; ++tap) {
          body((o * size + taps_[k].at[tap]) * inner, (o * taps_.size() + k) * inner, taps_[k].weight[tap]);
        }
      }
    }
  }

 private:
  std::vector<Taps> taps_;
};

/// The sizes of the axes of space behind it. `given`: int32 or int64, null where attributes say it.
Shape resized_shape(const Operator& op, const Shape& x, const Tensor* given) {
  const auto sizes = attribute(op, "sizes", std::vector<std::int64_t>());
  const auto scales = attribute(op, "scales", std::vector<double>());
  const std::size_t axes = x.size() - 2;
  if (given != nullptr && given->size() != axes) {
    fail(op, std::to_string(given->size()) + " sizes for " + std::to_string(axes) + " axes of space");
  }
  Shape shape = x;
  for (std::size_t i = 0; i < axes; ++i) {
    std::int64_t& size = shape[i + 2];
    if (given != nullptr) {
      size = given->type() == DataType::int32 ? given->values<std::int32_t>()[i]
                                              : given->values<std::int64_t>()[i];
    } else if (!sizes.empty()) {
      size = sizes.at(i);
    } else if (size >= 0) {
      size = static_cast<std::int64_t>(static_cast<float>(size) * static_cast<float>(scales.at(i)));
    }
    if (size == 0 || size < -1) fail(op, "a size of " + std::to_string(size), "give sizes above 0");
  }
  return shape;
}

void infer_interpolate(Inference& inference) {
  inference.expect_inputs(1, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  static_cast<void>(Sampling(inference.op()));
  const Shape x = inference.input(0).shape;
  if (x.size() < 3 || x.size() > 5) inference.fail("the input is not [n, channels] and one to three axes");
  const std::size_t axes = x.size() - 2;
  if (inference.op().inputs.size() == 2) {
    if (inference.input(1).type != DataType::int32) inference.expect_type(1, DataType::int64);
    Shape unknown = x;
    std::fill(unknown.begin() + 2, unknown.end(), -1);
    return inference.set_output(0, DataType::float32, unknown);
  }
  const auto sizes = attribute(inference.op(), "sizes", std::vector<std::int64_t>());
  const auto scales = attribute(inference.op(), "scales", std::vector<double>());
  if (sizes.size() != axes && (!sizes.empty() || scales.size() != axes)) {
    inference.fail("it needs " + std::to_string(axes) + " sizes or scales");
  }
  inference.set_output(0, DataType::float32, resized_shape(inference.op(), x, nullptr));
}

/// body(map, outer, size before, inner, size behind) for each axis of space of a tensor on its way from x to
/// out.
template <class Body>
void for_each_axis(const Operator& op, const Shape& x, const Shape& out, const Body& body) {
  const Sampling sampling(op);
  const bool by_size = attribute(op, "by_size", false);
  const auto scales = by_size ? std::vector<double>() : attribute(op, "scales", std::vector<double>());
  Shape now = x;
  for (std::size_t axis = 2; axis < x.size(); ++axis) {
    const float scale = scales.empty() ? 0.0f : static_cast<float>(scales[axis - 2]);
    const AxisMap map(sampling, x[axis], out[axis], scale);
    body(map, product(now, 0, axis), static_cast<std::size_t>(x[axis]), product(now, axis + 1, now.size()),
         static_cast<std::size_t>(out[axis]));
    now[axis] = out[axis];
  }
}

Kernel prepare_interpolate(const Preparation& p) {
  return [op = &p.op, x = p.input(0), sizes = p.input(1), out = p.output(0)] {
    const Shape shape = resized_shape(*op, x->shape(), sizes);
    std::vector<float> now(x->values<float>().begin(), x->values<float>().end()), next;
    for_each_axis(
        *op, x->shape(), shape,
        [&](const AxisMap& map, std::size_t outer, std::size_t size, std::size_t inner, std::size_t places) {
          next.assign(outer * places * inner, 0.0f);
          map.for_each(outer, size, inner, [&](std::size_t from, std::size_t to, float weight) {
            for (std::size_t i = 0; i < inner; ++i) next[to + i] += weight * now[from + i];
          });
          now.swap(next);
        });
    out->resize(DataType::float32, shape);
    std::ranges::copy(now, out->values<float>().begin());
  };
}

/// (X, dOut) -> dX: the maps transposed, the last axis first.
Kernel prepare_interpolate_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), g = p.input(1), dx = p.output(0)] {
    struct Step {
      AxisMap map;
      std::size_t outer, size, inner;
    };
    std::vector<Step> steps;
    for_each_axis(
        *op, x->shape(), g->shape(),
        [&](const AxisMap& map, std::size_t outer, std::size_t size, std::size_t inner, std::size_t) {
          steps.push_back({map, outer, size, inner});
        });
    std::vector<float> now(g->values<float>().begin(), g->values<float>().end()), next;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      next.assign(step->outer * step->size * step->inner, 0.0f);
      step->map.for_each(step->outer, step->size, step->inner,
                         [&](std::size_t to, std::size_t from, float weight) {
                           for (std::size_t i = 0; i < step->inner; ++i)
                             next[to + i] += weight * now[from + i];
                         });
      now.swap(next);
    }
    dx->resize(DataType::float32, x->shape());
    std::ranges::copy(now, dx->values<float>().begin());
  };
}

void interpolate_gradient(GradientBuilder& builder) {
  if (!builder.wants(0)) return;
  builder.append({.type = "interpolate_grad",
                  .inputs = {builder.op().inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

}  // namespace

std::span<const OperatorDefinition> resize_operators() {
  static constexpr OperatorDefinition all[] = {
      {"interpolate",
       infer_interpolate,
       prepare_interpolate,
       interpolate_gradient,
       {"(X [n, channels, ..], [Sizes int32 or int64]) -> Out", "X with its axes of space in other sizes",
        "interp_method: nearest, linear or cubic, along each axis; sizes, or scales, where there are no "
        "Sizes; "
        "align_corners = true: the corners' values stay; align_mode = 1, 0 for places that lie in the middle "
        "of values, with linear and without align_corners; by_size = false: true has places as far apart as "
        "the "
        "sizes say, and not the scales"}},
      {"interpolate_grad", infer_gradient, prepare_interpolate_gradient, gradient_of_linear},
  };
  return all;
}

}  // namespace fleetrun::engine
