// Shows and clicks of the examples that keys are looked up for.

#include <algorithm>
#include <cmath>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"

namespace fleetrun::engine {

namespace {

constexpr std::size_t kStatistics = 2;

/// One value for each example, as float32.
class PerExample {
 public:
  PerExample(const Operator& op, const Tensor* tensor, std::string name)
      : op_(&op), tensor_(tensor), name_(std::move(name)) {}

  void require(std::size_t examples) const {
    if (tensor_->size() == examples) return;
    fail(*op_, "'" + name_ + "' has " + std::to_string(tensor_->size()) + " values for " +
                   std::to_string(examples) + " examples");
  }
  float operator[](std::size_t example) const {
    return tensor_->type() == DataType::int64 ? static_cast<float>(tensor_->values<std::int64_t>()[example])
                                              : tensor_->values<float>()[example];
  }

 private:
  const Operator* op_;
  const Tensor* tensor_;
  std::string name_;
};

void infer_row_statistics(Inference& inference) {
  inference.expect_inputs(3, std::size_t{1} << 16);
  inference.expect_outputs(2, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const DataType type = inference.input(i).type;
    if (type != DataType::float32 && type != DataType::int64) {
      inference.fail("shows and clicks are float32 or int64");
    }
    inference.set_output(i, DataType::float32, {-1});
  }
}

Kernel prepare_row_statistics(const Preparation& p) {
  std::vector<const Tensor*> lookups;
  for (std::size_t i = 2; i < p.inputs(); ++i) lookups.push_back(p.input(i));
  return [lookups = std::move(lookups), show = PerExample(p.op, p.input(0), p.op.inputs[0]),
          click = PerExample(p.op, p.input(1), p.op.inputs[1]), shows = p.output(0), clicks = p.output(1),
          paddings = attribute<std::vector<std::int64_t>>(p.op, "paddings")] {
    std::size_t total = 0;
    for (const Tensor* ids : lookups) total += ids->size();
    shows->resize(DataType::float32, {static_cast<std::int64_t>(total)});
    clicks->resize(DataType::float32, {static_cast<std::int64_t>(total)});
    float* to_shows = shows->values<float>().data();
    float* to_clicks = clicks->values<float>().data();
    std::size_t kept = 0;
    for (std::size_t lookup = 0; lookup < lookups.size(); ++lookup) {
      const Tensor* const ids = lookups[lookup];
      const std::int64_t padding = paddings.at(lookup);
      const auto keys = ids->values<std::int64_t>();
      const bool by_offsets = !ids->offsets.empty();
      const std::size_t examples =
          by_offsets ? ids->offsets.size() - 1 : static_cast<std::size_t>(ids->shape()[0]);
      show.require(examples);
      click.require(examples);
      const std::size_t each = examples == 0 ? 0 : keys.size() / examples;
      for (std::size_t e = 0; e < examples; ++e) {
        const std::size_t begin = by_offsets ? ids->offsets[e] : e * each;
        const std::size_t end = by_offsets ? ids->offsets[e + 1] : begin + each;
        for (std::size_t i = begin; i < end; ++i) {
          if (padding >= 0 && keys[i] == padding) continue;
          to_shows[kept] = show[e];
          to_clicks[kept++] = click[e];
        }
      }
    }
    shows->resize(DataType::float32, {static_cast<std::int64_t>(kept)});
    clicks->resize(DataType::float32, {static_cast<std::int64_t>(kept)});
  };
}

void infer_cvm(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::float32);
  Shape shape = inference.input(0).shape;
  if (shape.size() != 2 || shape[1] <= static_cast<std::int64_t>(kStatistics)) {
    inference.fail("the input has not the shape [n, 2 + values]");
  }
  if (!attribute(inference.op(), "use_cvm", true)) shape[1] -= static_cast<std::int64_t>(kStatistics);
  inference.set_output(0, DataType::float32, shape, inference.input(0).lod_level);
}

Kernel prepare_cvm(const Preparation& p) {
  return [x = p.input(0), y = p.output(0), use = attribute(p.op, "use_cvm", true)] {
    const auto rows = static_cast<std::size_t>(x->shape()[0]),
               width = static_cast<std::size_t>(x->shape()[1]);
    const std::size_t skipped = use ? 0 : kStatistics;
    y->resize(DataType::float32, {x->shape()[0], static_cast<std::int64_t>(width - skipped)});
    y->offsets = x->offsets;
    const float* from = x->values<float>().data();
    float* to = y->values<float>().data();
    for (std::size_t r = 0; r < rows; ++r, from += width, to += width - skipped) {
      std::copy_n(from + skipped, width - skipped, to);
      if (!use) continue;
      to[0] = std::log(from[0] + 1.0f);
      to[1] = std::log(from[1] + 1.0f) - to[0];
    }
  };
}

/// (X, CVM, dY) -> dX
Kernel prepare_cvm_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), cvm = p.input(1), g = p.input(2), dx = p.output(0),
          use = attribute(p.op, "use_cvm", true)] {
    const auto rows = static_cast<std::size_t>(x->shape()[0]),
               width = static_cast<std::size_t>(x->shape()[1]);
    dx->resize(DataType::float32, x->shape());
    dx->offsets = x->offsets;
    const std::size_t examples = x->offsets.empty() ? rows : x->offsets.size() - 1;
    if (!x->offsets.empty() && x->offsets.back() != rows)
      fail(*op, "its sequences are not those of its rows");
    if (cvm->size() != examples * kStatistics) {
      fail(*op,
           std::to_string(cvm->size()) + " values in '" + op->inputs[1] + "' for " +
               std::to_string(examples) + " examples",
           "give it [show, click] of each example");
    }
    const float* statistics = cvm->values<float>().data();
    const float* from = g->values<float>().data();
    float* to = dx->values<float>().data();
    const std::size_t skipped = use ? kStatistics : 0;
    std::size_t example = 0;
    for (std::size_t r = 0; r < rows; ++r, to += width, from += width - kStatistics + skipped) {
      if (x->offsets.empty()) example = r;
      while (!x->offsets.empty() && x->offsets[example + 1] <= r) ++example;
      std::copy_n(statistics + example * kStatistics, kStatistics, to);
      std::copy_n(from + skipped, width - kStatistics, to + kStatistics);
    }
  };
}

void cvm_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  if (!builder.wants(0)) return;
  builder.append({.type = "cvm_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

}  // namespace

std::span<const OperatorDefinition> statistics_operators() {
  static constexpr OperatorDefinition all[] = {
      {"row_statistics",
       infer_row_statistics,
       prepare_row_statistics,
       nullptr,
       {"(Show [examples, 1], Click [examples, 1], Ids1, Ids2, ...) -> Shows [n], Clicks [n]",
        "those of the example of each key of the row_gradient of these lookups; float32, from float32 or "
        "int64",
        "paddings: the padding_idx of each lookup"}},
      {"cvm",
       infer_cvm,
       prepare_cvm,
       cvm_gradient,
       {"(X [n, width], CVM [examples, 2]) -> Y",
        "the first two columns of X, a row's show and click, transformed or left out; X is by example, or "
        "has offsets; the gradient of the two columns is the example's CVM: a table that keeps statistics "
        "does not learn from it",
        "use_cvm = true: log(show + 1) and log(click + 1) - log(show + 1) take their place; false: they "
        "are left out"}},
      {"cvm_grad", infer_gradient, prepare_cvm_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
