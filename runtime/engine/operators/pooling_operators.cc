// The largest or the mean value under a window that slides over images and sequences, float32.

#include <algorithm>
#include <limits>

#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/window.h"

namespace fleetrun::engine {

namespace {

bool is_adaptive(const Operator& op) {
  return attribute(op, "adaptive", false);
}

/// Of an adaptive pool the windows along each axis, 0 where there are as many as values.
std::vector<std::int64_t> kernel_of(const Operator& op) {
  auto kernel = attribute<std::vector<std::int64_t>>(op, "ksize");
  const std::int64_t least = is_adaptive(op) ? 0 : 1;
  if (kernel.empty() || kernel.size() > 2 ||
      std::count_if(kernel.begin(), kernel.end(), [least](auto k) { return k < least; })) {
    fail(op, "attribute 'ksize' is " + to_string(kernel) + "; it has one or two numbers of " +
                 std::to_string(least) + " and more");
  }
  return kernel;
}

Window pool_window(const Operator& op) {
  return is_adaptive(op) ? Window{} : window_of(op, kernel_of(op));
}

Shape pooled_shape(const Operator& op, const Shape& x) {
  if (!is_adaptive(op)) return pool_window(op).places(x, x[1], attribute(op, "ceil_mode", false));
  Shape shape = x;
  const auto kernel = kernel_of(op);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (kernel[i] > 0) shape[i + 2] = kernel[i];
  }
  return shape;
}

/// Where one window lies within the image, cut to it, and how many values it has with the padding.
struct Place {
  std::int64_t top, bottom, left, right;
  std::int64_t padded;
  std::int64_t count() const noexcept { return std::max<std::int64_t>((bottom - top) * (right - left), 0); }
};

class Pool {
 public:
  Pool(const Operator& op, const Tensor& x)
      : adaptive_(is_adaptive(op)),
        window_(pool_window(op)),
        behind_high_(attribute(op, "mirrored", false) ? window_.high.before : window_.high.after),
        behind_wide_(attribute(op, "mirrored", false) ? window_.wide.before : window_.wide.after),
        x_(x.shape()),
        shape_(pooled_shape(op, x.shape())),
        out_(shape_) {
    if (out_.plane() == 0 && x_.examples > 0) {
      fail(op, "the window is larger than the padded input " + to_string(x.shape()));
    }
  }

  const Shape& shape() const noexcept { return shape_; }

  /// body(out, channel, place): position in Out, X's channel's first position, the window.
  template <class Body>
  void for_each_window(const Body& body) const {
    std::size_t out = 0;
    for (std::size_t channel = 0; channel < x_.examples * x_.channels; ++channel) {
      for (std::size_t row = 0; row < out_.high; ++row) {
        for (std::size_t column = 0; column < out_.wide; ++column, ++out) {
          body(out, channel * x_.plane(), place(row, column));
        }
      }
    }
  }
  /// body(position within the channel) for each value under the window.
  template <class Body>
  void for_each_value(const Place& place, const Body& body) const {
    for (std::int64_t y = place.top; y < place.bottom; ++y) {
      for (std::int64_t x = place.left; x < place.right; ++x) {
        body(static_cast<std::size_t>(y) * x_.wide + static_cast<std::size_t>(x));
      }
    }
  }

 private:
  Place place(std::size_t row, std::size_t column) const noexcept {
    const auto high = static_cast<std::int64_t>(x_.high), wide = static_cast<std::int64_t>(x_.wide);
    if (adaptive_) {
      const auto [top, bottom] = part(row, out_.high, x_.high);
      const auto [left, right] = part(column, out_.wide, x_.wide);
      return {top, bottom, left, right, (bottom - top) * (right - left)};
    }
    const std::int64_t top = window_.high.start(static_cast<std::int64_t>(row));
    const std::int64_t left = window_.wide.start(static_cast<std::int64_t>(column));
    const std::int64_t bottom = std::min(top + window_.high.kernel, high + behind_high_);
    const std::int64_t right = std::min(left + window_.wide.kernel, wide + behind_wide_);
    return {std::max<std::int64_t>(top, 0), std::min(bottom, high), std::max<std::int64_t>(left, 0),
            std::min(right, wide), (bottom - top) * (right - left)};
  }

  /// Where the i-th of n windows that cover `size` values begins and ends.
  static std::pair<std::int64_t, std::int64_t> part(std::size_t i, std::size_t n, std::size_t size) noexcept {
    return {static_cast<std::int64_t>(i * size / n), static_cast<std::int64_t>(((i + 1) * size + n - 1) / n)};
  }

  bool adaptive_;
  Window window_;
  std::int64_t behind_high_, behind_wide_;  // padding that counts
  ImageSize x_;
  Shape shape_;
  ImageSize out_;
};

float divisor(const Place& place, bool exclusive) {
  return static_cast<float>(std::max<std::int64_t>(exclusive ? place.count() : place.padded, 1));
}

void infer_pool(Inference& inference) {
  const bool largest = inference.op().type == "max_pool2d";
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, largest ? 2 : 1);
  inference.expect_type(0, DataType::float32);
  const Shape& x = inference.input(0).shape;
  const auto axes = kernel_of(inference.op()).size();
  if (x.size() != axes + 2) {
    inference.fail("a window of " + std::to_string(axes) + " axes needs an input of " +
                   std::to_string(axes + 2) + " dimensions");
  }
  const Shape shape = pooled_shape(inference.op(), x);
  if (std::count(shape.begin() + 2, shape.end(), 0) > 0) {
    inference.fail("the window is larger than the padded input");
  }
  inference.set_output(0, DataType::float32, shape);
  if (inference.op().outputs.size() > 1) inference.set_output(1, DataType::int32, shape);
}

Kernel prepare_max_pool(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), mask = p.output(1),
          plan = PlanByShape<Pool, 1>()]() mutable {
    const Pool& pool = plan.of(*op, *x);
    out->resize(DataType::float32, pool.shape());
    if (mask != nullptr) mask->resize(DataType::int32, pool.shape());
    const float* from = x->values<float>().data();
    pool.for_each_window([&](std::size_t at, std::size_t channel, const Place& place) {
      float largest = -std::numeric_limits<float>::max();
      std::size_t where = 0;
      pool.for_each_value(place, [&](std::size_t i) {
        if (from[channel + i] <= largest) return;
        largest = from[channel + i];
        where = i;
      });
      out->values<float>()[at] = largest;
      if (mask != nullptr) mask->values<std::int32_t>()[at] = static_cast<std::int32_t>(where);
    });
  };
}

/// (X, Mask, dOut) -> dX
Kernel prepare_max_pool_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), mask = p.input(1), g = p.input(2), dx = p.output(0),
          plan = PlanByShape<Pool, 1>()]() mutable {
    const Pool& pool = plan.of(*op, *x);
    dx->resize(DataType::float32, x->shape());
    const auto to = dx->values<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    pool.for_each_window([&](std::size_t at, std::size_t channel, const Place& place) {
      if (place.count() == 0) return;
      to[channel + static_cast<std::size_t>(mask->values<std::int32_t>()[at])] += g->values<float>()[at];
    });
  };
}

Kernel prepare_avg_pool(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), exclusive = attribute(p.op, "exclusive", true),
          plan = PlanByShape<Pool, 1>()]() mutable {
    const Pool& pool = plan.of(*op, *x);
    out->resize(DataType::float32, pool.shape());
    const float* from = x->values<float>().data();
    pool.for_each_window([&](std::size_t at, std::size_t channel, const Place& place) {
      float sum = 0.0f;
      pool.for_each_value(place, [&](std::size_t i) { sum += from[channel + i]; });
      out->values<float>()[at] = sum / divisor(place, exclusive);
    });
  };
}

/// (X, dOut) -> dX
Kernel prepare_avg_pool_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), g = p.input(1), dx = p.output(0),
          exclusive = attribute(p.op, "exclusive", true), plan = PlanByShape<Pool, 1>()]() mutable {
    const Pool& pool = plan.of(*op, *x);
    dx->resize(DataType::float32, x->shape());
    const auto to = dx->values<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    pool.for_each_window([&](std::size_t at, std::size_t channel, const Place& place) {
      const float share = g->values<float>()[at] / divisor(place, exclusive);
      pool.for_each_value(place, [&](std::size_t i) { to[channel + i] += share; });
    });
  };
}

void max_pool_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  if (op.outputs.size() < 2)
    fail(op, "a max_pool2d that is differentiated needs its second output, the mask");
  builder.append({.type = "max_pool2d_grad",
                  .inputs = {op.inputs[0], op.outputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

void avg_pool_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "avg_pool2d_grad",
                  .inputs = {op.inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

}  // namespace

std::span<const OperatorDefinition> pooling_operators() {
  static constexpr OperatorDefinition all[] = {
      {"max_pool2d",
       infer_pool,
       prepare_max_pool,
       max_pool_gradient,
       {"(X [n, c, h, w] or [n, c, w]) -> Out, Mask int32",
        "largest value under a window; Mask: where in its channel it was",
        "ksize for each axis; strides = 1 for each axis; paddings = 0 before and after each; ceil_mode = "
        "false: true keeps the last window that is not whole; adaptive = false: true makes ksize the number "
        "of windows along each axis (0: of values), window i of k over n values from i * n / k to (i + 1) "
        "* n / k, rounded up"}},
      {"max_pool2d_grad", infer_gradient, prepare_max_pool_gradient, nullptr},
      {"avg_pool2d",
       infer_pool,
       prepare_avg_pool,
       avg_pool_gradient,
       {"(X [n, c, h, w] or [n, c, w]) -> Out", "mean value under a window",
        "ksize for each axis; strides = 1 for each axis; paddings = 0 before and after each; ceil_mode = "
        "false: true keeps the last window that is not whole; exclusive = true: padding is not counted; "
        "mirrored = false: true counts behind each axis as much padding as there is before it; adaptive = "
        "false: true makes ksize the number of windows along each axis, as in max_pool2d"}},
      {"avg_pool2d_grad", infer_gradient, prepare_avg_pool_gradient, gradient_of_linear},
  };
  return all;
}

}  // namespace fleetrun::engine
