// Columns brought to the mean and the variance of all data seen so far, which are kept as sums, float32.
//
// What the backward operator gives for the sums is what a batch adds to them: a table on servers whose rule
// is `summary` adds it up (ps/base/table_config.h); an optimizer takes it for a gradient, as in Paddle.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/channels.h"

namespace fleetrun::engine {

namespace {

struct In {
  enum : std::size_t { kX, kSize, kSum, kSquareSum, kScale, kBias, kInputs };
};

/// Shows of at most this are none.
constexpr float kNoShow = 1e-7f;

std::int64_t slot_width(const Operator& op) {
  return attribute(op, "slot_dim", std::int64_t{-1});
}

void infer_data_norm(Inference& inference) {
  inference.expect_inputs(In::kInputs, In::kInputs);
  inference.expect_outputs(3, 3);
  inference.expect_type(In::kX, DataType::float32);
  const Variable x = inference.input(In::kX);
  if (x.shape.size() != 2) inference.fail("the input is not [n, columns]");
  const std::int64_t columns = x.shape[1], slot = slot_width(inference.op());
  if (slot > 0 && columns >= 0 && columns % slot != 0) {
    inference.fail(std::to_string(columns) + " columns are no slots of " + std::to_string(slot));
  }
  constexpr std::array<const char*, In::kInputs> kNames{"", "size", "sum", "square sum", "scale", "bias"};
  for (std::size_t i = In::kSize; i < In::kInputs; ++i) expect_size(inference, i, columns, kNames[i]);
  inference.set_output(0, DataType::float32, x.shape, x.lod_level);
  inference.set_output(1, DataType::float32, {columns});
  inference.set_output(2, DataType::float32, {columns});
}

/// X as rows of slots; without `slot_dim` a row is one slot that always counts.
struct Slots {
  Slots(const Operator& op, const Tensor& x)
      : rows(static_cast<std::size_t>(x.shape()[0])),
        columns(static_cast<std::size_t>(x.shape()[1])),
        has_shows(slot_width(op) > 0),
        width(has_shows ? static_cast<std::size_t>(slot_width(op)) : columns) {
    if (has_shows && columns % width != 0) {
      fail(op, std::to_string(columns) + " columns are no slots of " + std::to_string(width));
    }
  }

  /// body(position, column, whether the slot was shown) for every value.
  template <class Body>
  void for_each(const float* x, const Body& body) const {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t first = 0; first < columns; first += width) {
        const bool is_shown = !has_shows || std::abs(x[row * columns + first]) >= kNoShow;
        for (std::size_t c = first; c < first + width; ++c) body(row * columns + c, c, is_shown);
      }
    }
  }

  std::size_t rows, columns;
  bool has_shows;
  std::size_t width;
};

Kernel prepare_data_norm(const Preparation& p) {
  std::array<const Tensor*, In::kInputs> in{};
  for (std::size_t i = 0; i < In::kInputs; ++i) in[i] = p.input(i);
  return [op = &p.op, in, y = p.output(0), means = p.output(1), scales = p.output(2)] {
    const Slots slots(*op, *in[In::kX]);
    for (std::size_t i = In::kSize; i < In::kInputs; ++i) check_size(*op, in[i], slots.columns, "parameter");
    const float *size = data_of(in[In::kSize]), *sum = data_of(in[In::kSum]),
                *squares = data_of(in[In::kSquareSum]);
    float *mean = filled(means, slots.columns), *scale = filled(scales, slots.columns);
    for (std::size_t c = 0; c < slots.columns; ++c) {
      mean[c] = sum[c] / size[c];
      scale[c] = std::sqrt(size[c] / squares[c]);
    }
    y->resize(DataType::float32, in[In::kX]->shape());
    y->offsets = in[In::kX]->offsets;
    const float *x = data_of(in[In::kX]), *weight = data_of(in[In::kScale]), *bias = data_of(in[In::kBias]);
    float* to = y->values<float>().data();
    slots.for_each(x, [=](std::size_t at, std::size_t c, bool is_shown) {
      const float normal = (x[at] - mean[c]) * scale[c];
      const float moved = weight == nullptr ? normal : normal * weight[c] + bias[c];
      to[at] = is_shown ? moved : 0.0f;
    });
  };
}

/// What the backward operator writes: X's gradient, what the batch adds to the three sums, and the gradients
/// of scale and bias.
struct Summaries {
  float *size, *sum, *squares;

  /// Slots that are not always shown count as one value, their mean; else every row counts.
  void finish(const Slots& slots, float epsilon) const {
    for (std::size_t c = 0; c < slots.columns; ++c) {
      const float n = slots.has_shows ? size[c] : static_cast<float>(slots.rows);
      const bool is_mean = slots.has_shows && n >= 1.0f;
      size[c] = is_mean ? 1.0f : n;
      sum[c] = is_mean ? sum[c] / n : sum[c];
      squares[c] = (is_mean ? squares[c] / n : squares[c]) + n * epsilon;
    }
  }
};

/// The forward inputs, Means, Scales, dY -> the gradients of the forward inputs
Kernel prepare_data_norm_gradient(const Preparation& p) {
  std::array<const Tensor*, In::kInputs + 3> in{};
  std::array<Tensor*, In::kInputs> to{};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = p.input(i);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = p.output(i);
  return [op = &p.op, in, to, epsilon = static_cast<float>(attribute(p.op, "epsilon", 1e-5)),
          spare = std::array<std::vector<float>, 3>()]() mutable {
    const Slots slots(*op, *in[In::kX]);
    const auto sums = [&](std::size_t i) {
      if (to[i] != nullptr) return filled(to[i], slots.columns);
      spare[i - In::kSize].assign(slots.columns, 0.0f);
      return spare[i - In::kSize].data();
    };
    const Summaries added{sums(In::kSize), sums(In::kSum), sums(In::kSquareSum)};
    float *to_scale = filled(to[In::kScale], slots.columns), *to_bias = filled(to[In::kBias], slots.columns);
    if (to[In::kX] != nullptr) to[In::kX]->resize(DataType::float32, in[In::kX]->shape());
    float* to_x = to[In::kX] == nullptr ? nullptr : to[In::kX]->values<float>().data();
    const float *x = data_of(in[In::kX]), *weight = data_of(in[In::kScale]), *mean = data_of(in[In::kInputs]),
                *scale = data_of(in[In::kInputs + 1]), *up = data_of(in[In::kInputs + 2]);
    slots.for_each(x, [=](std::size_t at, std::size_t c, bool is_shown) {
      // As in Paddle a slot that was not shown has a slope where there is no scale of its own.
      const bool has_slope = is_shown || weight == nullptr;
      if (to_x != nullptr)
        to_x[at] = has_slope ? up[at] * scale[c] * (weight == nullptr ? 1.0f : weight[c]) : 0.0f;
      if (!is_shown) return;
      const float apart = x[at] - mean[c];
      if (to_scale != nullptr) to_scale[c] += apart * scale[c] * up[at];
      if (to_bias != nullptr) to_bias[c] += up[at];
      added.size[c] += 1.0f;
      added.sum[c] += x[at];
      added.squares[c] += apart * apart;
    });
    added.finish(slots, epsilon);
  };
}

void data_norm_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  Operator back{.type = "data_norm_grad", .inputs = op.inputs, .outputs = {}, .attributes = op.attributes};
  back.inputs.insert(back.inputs.end(), {op.outputs[1], op.outputs[2], builder.output_gradient(0)});
  for (std::size_t i = 0; i < In::kInputs; ++i) back.outputs.push_back(builder.input_gradient(i));
  builder.append(std::move(back));
}

}  // namespace

std::span<const OperatorDefinition> data_norm_operators() {
  static constexpr OperatorDefinition all[] = {
      {"data_norm",
       infer_data_norm,
       prepare_data_norm,
       data_norm_gradient,
       {"(X [n, columns], Size, Sum, SquareSum, Scale, Bias [columns]) -> Y, Means [columns], Scales "
        "[columns]",
        "(x - Sum / Size) * sqrt(Size / SquareSum), times Scale, plus Bias where these are not empty names. "
        "The gradients of Size, Sum and SquareSum are what the batch adds to them",
        "slot_dim = -1: above 0, columns are slots of so many, the first their show; a slot without shows "
        "is 0 and is not counted; epsilon = 1e-5: SquareSum gets so much more for each value"}},
      {"data_norm_grad", infer_gradient, prepare_data_norm_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
