// Gradient clipping, float32, between the backward operators and the updates.

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/merged_rows.h"

namespace fleetrun::engine {

namespace {

void infer_squares(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.set_output(0, DataType::float32, {});
}

float sum_of_squares(const float* values, std::size_t size) {
  double sum = 0.0;
  for (std::size_t i = 0; i < size; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return static_cast<float>(sum);
}

Kernel prepare_squares(const Preparation& p) {
  return [gradient = p.input(0), keys = p.input(1), out = p.output(0), merged = MergedRows()]() mutable {
    out->resize(DataType::float32, {});
    const float* values = gradient->values<float>().data();
    std::size_t size = gradient->size();
    if (keys != nullptr) {
      const auto width = static_cast<std::size_t>(gradient->shape().back());
      merged.merge(*keys, *gradient, width, std::numeric_limits<std::size_t>::max());
      values = merged.values();
      size = merged.keys().size() * width;
    }
    out->values<float>()[0] = sum_of_squares(values, size);
  };
}

void infer_factor(Inference& inference) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  if (!(attribute(inference.op(), "norm", 0.0) > 0.0)) inference.fail("the norm to clip to is not above 0");
  inference.set_output(0, DataType::float32, {});
}

Kernel prepare_factor(const Preparation& p) {
  std::vector<const Tensor*> squares;
  for (std::size_t i = 0; i < p.inputs(); ++i) squares.push_back(p.input(i));
  return [squares = std::move(squares), out = p.output(0),
          norm = static_cast<float>(attribute<double>(p.op, "norm"))] {
    float sum = 0.0f;
    for (const Tensor* one : squares) sum += one->values<float>()[0];
    out->resize(DataType::float32, {});
    const float size = std::sqrt(sum);
    // NaN where a gradient is, so that no parameter takes a step that was not clipped.
    out->values<float>()[0] = norm / (norm > size ? norm : size);
  };
}

void infer_rows(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(2, 2);
  inference.expect_type(0, DataType::float32);
  inference.set_output(0, DataType::float32, {-1, inference.input(0).shape.back()});
  inference.set_output(1, DataType::int64, {-1});
}

Kernel prepare_rows(const Preparation& p) {
  return [gradient = p.input(0), keys = p.input(1), rows = p.output(0), named = p.output(1),
          least = static_cast<float>(attribute<double>(p.op, "min")),
          most = static_cast<float>(attribute<double>(p.op, "max")), merged = MergedRows()]() mutable {
    const std::int64_t width = gradient->shape().back();
    merged.merge(*keys, *gradient, static_cast<std::size_t>(width), std::numeric_limits<std::size_t>::max());
    const auto count = static_cast<std::int64_t>(merged.keys().size());
    rows->resize(DataType::float32, {count, width});
    named->resize(DataType::int64, {count});
    std::ranges::copy(merged.keys(), named->values<std::int64_t>().begin());
    const float* values = merged.values();
    for (float& to : rows->values<float>()) {
      const float value = *values++;
      to = value < least ? least : value > most ? most : value;
    }
  };
}

}  // namespace

std::span<const OperatorDefinition> clip_operators() {
  static constexpr OperatorDefinition all[] = {
      {"gradient_squares",
       infer_squares,
       prepare_squares,
       nullptr,
       {"(Gradient, Keys int64 or none) -> Out []",
        "sum of the squares of a parameter's gradient; with Keys, Gradient [n, width] is that of the rows "
        "that they name, and those of equal keys are added up first"}},
      {"clip_factor",
       infer_factor,
       prepare_factor,
       nullptr,
       {"(Squares1 [], Squares2 [], ...) -> Out []", "norm / max(norm, sqrt(Squares1 + Squares2 + ...))",
        "norm"}},
      {"clip_rows",
       infer_rows,
       prepare_rows,
       nullptr,
       {"(Gradient [n, width], Keys int64 [n]) -> Rows [m, width], Keys int64 [m]",
        "the gradient of the rows that Keys name, those of equal keys added up, then at least min and at "
        "most max",
        "min; max"}},
  };
  return all;
}

}  // namespace fleetrun::engine
