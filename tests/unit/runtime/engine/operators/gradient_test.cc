// Every differentiable operator against central differences: one table row for each.

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "runtime/engine/operators.h"
#include "runtime/engine/random.h"
#include "tests/support/engine_program.h"
#include "tests/unit/runtime/engine/operators/gradient_rows.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

const Input kLabels3{.shape = {4, 1}, .labels = 3, .differentiated = false};
const Input kTarget{.shape = {4, 1}, .low = 0.0, .high = 1.0, .differentiated = false};

Input indices(const Shape& shape, std::int64_t below) {
  return {.shape = shape, .labels = below, .differentiated = false};
}

std::vector<Row> binary_rows() {
  std::vector<Row> rows;
  for (const char* type : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div",
                           "elementwise_max", "elementwise_min"}) {
    const Input right{.shape = {3, 4}, .low = 0.6, .high = 2.0};
    rows.push_back({type, {{.shape = {3, 4}}, right}});
    rows.push_back({type, {{.shape = {3, 37}}, {.shape = {37}, .low = 0.6, .high = 2.0}}});
    rows.push_back({type, {{.shape = {3, 37}}, {.shape = {3, 1}, .low = 0.6, .high = 2.0}}});
    rows.push_back({type, {{.shape = {3, 1}}, {.shape = {1, 4}, .low = 0.6, .high = 2.0}}});
    rows.push_back({type, {{.shape = {1}}, right}});
    rows.push_back(
        {type, {{.shape = {2, 3, 4}}, {.shape = {3}, .low = 0.6, .high = 2.0}}, {{"axis", std::int64_t{1}}}});
    rows.push_back({type, {{.shape = {2, 1, 4}}, {.shape = {2, 3, 1}, .low = 0.6, .high = 2.0}}});
  }
  rows.push_back(
      {"elementwise_pow", {{.shape = {3, 4}, .low = 0.5}, {.shape = {4}, .low = 0.5, .high = 2.0}}});
  return rows;
}

std::vector<Row> unary_rows() {
  std::vector<Row> rows;
  const Input any{.shape = {5, 7}}, positive{.shape = {5, 7}, .low = 0.4, .high = 2.0};
  for (const char* type : {"relu", "leaky_relu", "sigmoid", "tanh", "exp", "square", "abs", "softsign"}) {
    rows.push_back({type, {any}});
  }
  for (const char* type : {"log", "log1p", "sqrt", "rsqrt", "reciprocal"}) rows.push_back({type, {positive}});
  for (const char* type : {"sin", "cos", "erf", "expm1", "logsigmoid", "silu", "mish", "relu6", "hard_swish",
                           "elu", "selu", "gelu", "softplus", "hard_sigmoid", "hard_shrink"}) {
    rows.push_back({type, {any}});
  }
  for (const char* type : {"floor", "ceil", "round", "sign"}) {
    rows.push_back({type, {{.shape = {5, 7}, .low = 0.1, .high = 0.4}}});
  }
  rows.push_back({"tan", {{.shape = {5, 7}, .low = -1.0, .high = 1.0}}});
  for (const char* type : {"asin", "acos", "erfinv"}) {
    rows.push_back({type, {{.shape = {5, 7}, .low = -0.8, .high = 0.8}}});
  }
  rows.push_back({"atan", {any}});
  for (const char* type : {"lgamma", "digamma"}) {
    rows.push_back({type, {{.shape = {5, 7}, .low = 0.6, .high = 4.0}}});
    rows.push_back({type, {{.shape = {3, 2}, .low = -1.8, .high = -1.2}}});
  }
  for (const char* type : {"log2", "log10"}) rows.push_back({type, {positive}});
  rows.push_back({"gelu", {any}, {{"approximate", true}}});
  rows.push_back({"elu", {any}, {{"alpha", 0.4}}});
  rows.push_back({"softplus", {any}, {{"beta", 3.0}, {"threshold", 2.0}}});
  rows.push_back({"pow", {positive}, {{"factor", 2.5}}});
  rows.push_back({"scale", {any}, {{"scale", 3.0}, {"bias", 0.5}}});
  rows.push_back({"scale", {any}, {{"scale", 3.0}, {"bias", 0.5}, {"bias_after_scale", false}}});
  rows.push_back({"clip", {any}, {{"min", -0.5}, {"max", 0.7}}});
  rows.push_back({"dropout", {any}, {{"is_test", true}, {"mode", std::string("downscale_in_infer")}}, 2});
  rows.push_back({"cast", {any}, {{"dtype", std::string("float32")}}});
  rows.push_back({"assign", {any}});
  return rows;
}

std::vector<Row> layout_rows() {
  using Axes = std::vector<std::int64_t>;
  const Input cube{.shape = {2, 3, 4}};
  return {
      {"concat", {{.shape = {2, 3}}, {.shape = {2, 5}}, {.shape = {2, 1}}}, {{"axis", std::int64_t{1}}}},
      {"concat", {{.shape = {2, 3}}, {.shape = {1, 3}}}},
      {"stack", {{.shape = {2, 3}}, {.shape = {2, 3}}}, {{"axis", std::int64_t{1}}}},
      {"split", {{.shape = {2, 6}}}, {{"axis", std::int64_t{1}}}, 3},
      {"split", {{.shape = {5, 2}}}, {{"sections", Axes{1, -1, 2}}}, 3},
      {"reshape", {cube}, {{"shape", Axes{0, -1}}}},
      {"flatten", {cube}, {{"start_axis", std::int64_t{1}}}},
      {"squeeze", {{.shape = {2, 1, 3}}}, {{"axes", Axes{1}}}},
      {"unsqueeze", {cube}, {{"axes", Axes{1}}}},
      {"transpose", {cube}, {{"perm", Axes{2, 0, 1}}}},
      {"slice", {cube}, {{"axes", Axes{1, 2}}, {"starts", Axes{1, -3}}, {"ends", Axes{3, 100}}}},
      {"slice",
       {cube},
       {{"axes", Axes{0, 2}}, {"starts", Axes{0, 1}}, {"ends", Axes{2, 4}}, {"steps", Axes{1, 2}}}},
      {"slice",
       {cube},
       {{"axes", Axes{0, 2}}, {"starts", Axes{1, 3}}, {"ends", Axes{-1, 0}}, {"steps", Axes{-1, -2}}}},
      {"tile", {{.shape = {2, 3}}}, {{"repeat_times", Axes{2, 1, 3}}}},
      {"tile", {cube}, {{"repeat_times", Axes{2}}}},
      {"expand", {{.shape = {3, 1}}}, {{"shape", Axes{2, -1, 4}}}},
      {"expand_as", {{.shape = {1, 4}}, {.shape = {3, 4}, .differentiated = false}}},
      {"tril", {cube}, {{"diagonal", std::int64_t{1}}}},
      {"triu", {cube}},
      {"gather", {cube, indices({2}, 2)}},
      {"gather", {cube, indices({5}, 3)}, {{"axis", std::int64_t{1}}}},
      {"gather_nd", {cube, indices({4, 2}, 2)}},
      {"take_along_axis", {{.shape = {3, 4}}, indices({3, 2}, 4)}, {{"axis", std::int64_t{1}}}},
      {"scatter", {{.shape = {5, 3}}, indices({1}, 5), {.shape = {1, 3}}}},
      {"masked_select", {{.shape = {4, 3}}, {.shape = {4, 3}, .differentiated = false, .boolean = true}}},
      {"where",
       {{.shape = {2, 3}, .differentiated = false, .boolean = true}, {.shape = {2, 3}}, {.shape = {2, 3}}}},
  };
}

std::vector<Row> reduce_rows() {
  using Axes = std::vector<std::int64_t>;
  std::vector<Row> rows;
  const Input cube{.shape = {3, 4, 19}};
  for (const char* type : {"sum", "mean"}) {
    rows.push_back({type, {cube}});
    rows.push_back({type, {cube}, {{"axis", Axes{1}}}});
    rows.push_back({type, {cube}, {{"axis", Axes{0, 2}}, {"keepdim", true}}});
    rows.push_back({type, {cube}, {{"axis", Axes{-1}}}});
  }
  for (const char* type : {"prod", "min"}) {
    const Input small{.shape = {3, 4}, .low = 0.5};
    rows.push_back({type, {small}});
    rows.push_back({type, {small}, {{"axis", Axes{1}}, {"keepdim", true}}});
  }
  for (const char* type : {"top_k", "argsort"}) {
    // Far enough apart not to change places within a step.
    const Input values{.shape = {2, 4, 3}, .low = -20.0, .high = 20.0};
    rows.push_back({type, {values}, {{"k", std::int64_t{2}}}, 2});
    rows.push_back({type, {values}, {{"k", std::int64_t{3}}, {"axis", std::int64_t{1}}}, 2});
  }
  rows.push_back({"cumsum", {cube}, {{"axis", std::int64_t{1}}}});
  rows.push_back({"cumsum", {{.shape = {3, 4}}}});
  rows.push_back({"cumsum", {{.shape = {3, 4}}}, {{"axis", std::int64_t{-1}}, {"reverse", true}}});
  rows.push_back({"cumprod", {cube}, {{"axis", std::int64_t{1}}}});
  rows.push_back({"logcumsumexp", {cube}, {{"axis", std::int64_t{1}}}});
  for (const char* type : {"cummax", "cummin"}) {
    const Input values{.shape = {2, 4, 3}, .low = -20.0, .high = 20.0};
    rows.push_back({type, {values}, {{"axis", std::int64_t{1}}}, 2});
  }
  rows.push_back({"max", {{.shape = {3, 4}}}, {{"axis", Axes{1}}}});
  rows.push_back({"max", {{.shape = {3, 4}}}, {{"axis", Axes{0}}}});
  rows.push_back({"add_n", {{.shape = {3, 4}}, {.shape = {3, 4}}, {.shape = {3, 4}}}});
  return rows;
}

Row einsum(const std::string& x, const std::string& y, const std::string& out, const Shape& in_x,
           const Shape& in_y) {
  return {"einsum", {{.shape = in_x}, {.shape = in_y}}, {{"x", x}, {"y", y}, {"out", out}}};
}

std::vector<Row> matrix_rows() {
  return {
      {"linear", {{.shape = {5, 4}}, {.shape = {4, 3}}, {.shape = {3}}}},
      {"linear", {{.shape = {2, 5, 4}}, {.shape = {4, 3}}}},
      {"matmul", {{.shape = {5, 4}}, {.shape = {4, 3}}}},
      {"matmul", {{.shape = {4, 5}}, {.shape = {4, 3}}}, {{"transpose_x", true}}},
      {"matmul", {{.shape = {5, 4}}, {.shape = {3, 4}}}, {{"transpose_y", true}}},
      {"matmul", {{.shape = {4, 5}}, {.shape = {3, 4}}}, {{"transpose_x", true}, {"transpose_y", true}}},
      {"matmul", {{.shape = {2, 5, 4}}, {.shape = {4, 3}}}},
      {"matmul", {{.shape = {2, 5, 4}}, {.shape = {2, 4, 3}}}},
      {"matmul",
       {{.shape = {2, 4, 5}}, {.shape = {2, 3, 4}}},
       {{"transpose_x", true}, {"transpose_y", true}}},
      {"matmul", {{.shape = {2, 1, 5, 4}}, {.shape = {3, 4, 2}}}},
      {"matmul", {{.shape = {5, 4}}, {.shape = {3, 4, 2}}}},
      {"matmul", {{.shape = {2, 4, 5}}, {.shape = {4, 3}}}, {{"transpose_x", true}}},
      einsum("ab", "bc", "ac", {2, 3}, {3, 4}),
      einsum("abc", "dcb", "da", {2, 3, 4}, {5, 4, 3}),
      einsum("abc", "bc", "cab", {2, 3, 4}, {3, 4}),
      einsum("a", "b", "ba", {3}, {2}),
  };
}

std::vector<Row> lookup_and_loss_rows() {
  const Input sequences{.shape = {6, 3}, .lod_level = 1, .offsets = {0, 2, 2, 5, 6}};
  std::vector<Row> rows = {
      {"embedding", {{.shape = {6, 3}}, {.shape = {5, 1}, .labels = 6, .differentiated = false}}},
      {"embedding",
       {{.shape = {6, 3}}, {.shape = {5, 2}, .labels = 3, .differentiated = false}},
       {{"padding_idx", std::int64_t{1}}}},
      {"softmax", {{.shape = {4, 3}}}},
      {"log_softmax", {{.shape = {4, 3}}}},
      {"cross_entropy", {{.shape = {4, 3}}, kLabels3}},
      {"cross_entropy", {{.shape = {4, 3}}, {.shape = {4}, .labels = 3, .differentiated = false}}},
      {"cross_entropy", {{.shape = {4, 3}}, kLabels3}, {{"ignore_index", std::int64_t{1}}}},
      {"cross_entropy", {{.shape = {4, 3}, .low = 0.2, .high = 0.9}, kLabels3}, {{"use_softmax", false}}},
      {"cross_entropy",
       {{.shape = {4, 3}}, {.shape = {4, 3}, .low = 0.0, .high = 1.0, .differentiated = false}},
       {{"soft_label", true}}},
      {"log_loss", {{.shape = {4, 1}, .low = 0.2, .high = 0.8}, kTarget}},
      {"sigmoid_cross_entropy_with_logits", {{.shape = {4, 1}}, kTarget}},
      {"square_error_cost", {{.shape = {4, 1}}, {.shape = {4, 1}}}},
  };
  rows.push_back(
      {"lod_reset",
       {{.shape = {6, 3}}, {.shape = {3}, .labels = 1, .first_label = 2, .differentiated = false}}});
  const Input labels{.shape = {6, 1}, .labels = 3, .differentiated = false};
  rows.push_back({"linear_chain_crf", {sequences, {.shape = {5, 3}}, labels}});
  rows.push_back({"linear_chain_crf",
                  {{.shape = {2, 3, 3}},
                   {.shape = {5, 3}},
                   {.shape = {2, 3}, .labels = 3, .differentiated = false},
                   {.shape = {2}, .labels = 2, .first_label = 2, .differentiated = false}}});
  for (const char* pool : {"sum", "average", "sqrt", "max"}) {
    rows.push_back({"sequence_pool", {sequences}, {{"pool_type", std::string(pool)}}});
  }
  return rows;
}

std::vector<Row> window_rows() {
  using Numbers = std::vector<std::int64_t>;
  const Input image{.shape = {2, 4, 5, 4}}, sequence{.shape = {2, 3, 7}};
  return {
      {"conv2d", {image, {.shape = {3, 4, 3, 2}}, {.shape = {3}}}},
      {"conv2d",
       {image, {.shape = {6, 2, 2, 3}}, {.shape = {6}}},
       {{"strides", Numbers{2, 1}},
        {"paddings", Numbers{1, 0, 2, 1}},
        {"dilations", Numbers{2, 1}},
        {"groups", std::int64_t{2}}}},
      {"conv2d", {sequence, {.shape = {2, 3, 3}}}, {{"strides", Numbers{2}}, {"paddings", Numbers{2, 1}}}},
      {"conv2d_transpose", {image, {.shape = {4, 3, 3, 2}}}},
      {"conv2d_transpose",
       {image, {.shape = {4, 3, 2, 3}}},
       {{"strides", Numbers{2, 3}},
        {"paddings", Numbers{1, 0, 2, 1}},
        {"dilations", Numbers{2, 1}},
        {"output_padding", Numbers{1, 2}},
        {"groups", std::int64_t{2}}}},
      {"conv2d_transpose", {sequence, {.shape = {3, 2, 3}}}, {{"strides", Numbers{2}}}},
      {"conv2d", {{.shape = {0, 3, 7}, .differentiated = false}, {.shape = {2, 3, 3}}, {.shape = {2}}}},
      {"max_pool2d", {image}, {{"ksize", Numbers{2, 3}}, {"strides", Numbers{2, 1}}}, 2, 1},
      {"max_pool2d",
       {sequence},
       {{"ksize", Numbers{3}}, {"strides", Numbers{2}}, {"paddings", Numbers{1, 1}}, {"ceil_mode", true}},
       2,
       1},
      {"max_pool2d", {image}, {{"ksize", Numbers{2, 3}}, {"adaptive", true}}, 2, 1},
      {"avg_pool2d", {image}, {{"ksize", Numbers{0, 3}}, {"adaptive", true}}},
      {"avg_pool2d", {sequence}, {{"ksize", Numbers{4}}, {"adaptive", true}}},
      {"avg_pool2d", {image}, {{"ksize", Numbers{2, 2}}, {"paddings", Numbers{1, 0, 0, 1}}}},
      {"avg_pool2d",
       {image},
       {{"ksize", Numbers{2, 2}}, {"paddings", Numbers{1, 1, 1, 1}}, {"exclusive", false}}},
  };
}

std::vector<Row> normalization_rows() {
  // The differences are of the program for test: trainable_statistics makes it take the batch's moments too.
  const Input rows{.shape = {4, 5}}, image{.shape = {3, 2, 4}}, slope{.shape = {1}},
      missing{.shape = {}, .missing = true};
  const Input scale{.shape = {2}, .low = 0.5}, bias{.shape = {2}};
  const Input mean{.shape = {2}, .differentiated = false},
      variance{.shape = {2}, .low = 0.5, .differentiated = false};
  // What stands for the gradients of data_norm's sums is none.
  const Input sums{.shape = {5}, .low = 0.5, .differentiated = false},
      still{.shape = {5}, .differentiated = false};
  return {
      {"layer_norm", {rows, {.shape = {5}}, {.shape = {5}}}, {}, 3, 1},
      {"layer_norm", {image, {.shape = {4}}}, {{"begin_norm_axis", std::int64_t{2}}, {"epsilon", 0.1}}, 3, 1},
      {"layer_norm", {image}, {{"begin_norm_axis", std::int64_t{1}}}, 3, 1},
      {"batch_norm", {image, scale, bias, mean, variance}, {{"trainable_statistics", true}}, 5, 1},
      {"batch_norm",
       {{.shape = {3, 4, 2}}, scale, bias, mean, variance},
       {{"channels_last", true}, {"trainable_statistics", true}},
       5,
       1},
      {"batch_norm", {image, scale, bias, mean, variance}, {{"use_global_stats", true}}, 5, 1},
      {"batch_norm",
       {image, missing, missing, mean, variance},
       {{"is_test", true}, {"trainable_statistics", true}},
       5,
       1},
      {"prelu", {image, slope}},
      {"prelu", {image, {.shape = {2}}}, {{"mode", std::string("channel")}}},
      {"prelu", {image, {.shape = {4}}}, {{"mode", std::string("channel")}, {"channels_last", true}}},
      {"prelu", {image, {.shape = {2, 4}}}, {{"mode", std::string("element")}}},
      {"data_norm", {rows, sums, still, sums, {.shape = {5}}, {.shape = {5}}}, {}, 3, 1},
      {"data_norm", {rows, sums, still, sums, missing, missing}, {{"slot_dim", std::int64_t{5}}}, 3, 1},
      {"print", {rows}, {{"print_phase", std::string("backward")}, {"summarize", std::int64_t{0}}}},
  };
}

std::vector<Row> recurrent_rows() {
  std::vector<Row> rows;
  const Input missing{.shape = {}, .missing = true}, first{.shape = {3, 2}};
  const Input lengths{.shape = {3}, .labels = 5, .differentiated = false};
  for (const auto& [mode, gates] : {std::pair{"RNN_TANH", 1}, {"RNN_RELU", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const Input ih{.shape = {gates * 2, 5}, .low = -0.5, .high = 0.5}, hh{.shape = {gates * 2, 2}},
        bias{.shape = {gates * 2}};
    const bool has_cell = gates == 4;
    const std::size_t compared = has_cell ? 3 : 2;
    const auto with = [&](std::map<std::string, Attribute> more) {
      more["mode"] = std::string(mode);
      return more;
    };
    const Input x{.shape = {3, 4, 5}}, cell = has_cell ? first : missing;
    rows.push_back({"recurrent", {x, first, cell, ih, hh, bias, bias, lengths}, with({}), 4, compared});
    rows.push_back({"recurrent",
                    {x, missing, missing, ih, hh, missing, missing, missing},
                    with({{"reverse", true}}),
                    4,
                    compared});
    rows.push_back({"recurrent",
                    {{.shape = {4, 3, 5}}, first, cell, ih, hh, bias, missing, lengths},
                    with({{"reverse", true}, {"time_major", true}, {"zero_padding", false}}),
                    4,
                    compared});
  }
  return rows;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const auto& group : {binary_rows(), unary_rows(), layout_rows(), reduce_rows(), matrix_rows(),
                            lookup_and_loss_rows(), window_rows(), resize_rows(), alignment_rows(),
                            normalization_rows(), recurrent_rows(), sequence_recurrent_rows()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

/// loss = Σ over outputs and values of weight * output, with random weights: its gradient by the inputs is
/// what append_backward is asked for, and what differences of the outputs are weighted with.
struct Harness {
  Program program;
  Scope scope;
  std::map<std::string, Tensor> fed;
  std::vector<std::string> differentiated;
  std::vector<std::string> outputs;
  std::vector<ParameterGradient> gradients;

  /// squared: of the squares of the outputs, whose slopes are other ones everywhere.
  explicit Harness(const Row& row, bool squared = false);
  /// Then the outputs are their gradients: what is compared are gradients of gradients.
  void differentiate_again();
  std::string loss_of(bool squared, const std::string& prefix);
  std::map<std::string, const Tensor*> feed() const {
    std::map<std::string, const Tensor*> pointers;
    for (const auto& [name, tensor] : fed) pointers[name] = &tensor;
    return pointers;
  }
  double weighted(const Executor& executor) const {
    double total = 0;
    for (const std::string& output : outputs) {
      if (executor.tensor(output).type() != DataType::float32) continue;
      const auto values = executor.tensor(output).values<float>();
      const auto weights = fed.at(output + "_weights").values<float>();
      for (std::size_t i = 0; i < values.size(); ++i) total += static_cast<double>(values[i]) * weights[i];
    }
    return total;
  }
};

Harness::Harness(const Row& row, bool squared) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    const Input& input = row.inputs[i];
    std::string name = "x";
    name += std::to_string(i);
    inputs.push_back(input.missing ? std::string() : name);
    if (input.missing) continue;
    const auto size = static_cast<std::size_t>(count(input.shape));
    const auto draw = [&](std::size_t k) { return uniform(stream_seed(7, row.type + name), k); };
    if (input.labels > 0) {
      std::vector<std::int64_t> values(size);
      for (std::size_t k = 0; k < size; ++k)
        values[k] = input.first_label + static_cast<std::int64_t>(draw(k) * double(input.labels));
      add_data(program, name, DataType::int64, input.shape);
      fed.emplace(name, ints(input.shape, values));
      continue;
    }
    if (input.boolean) {
      Tensor condition(DataType::boolean, input.shape);
      for (std::size_t k = 0; k < size; ++k) condition.values<bool>()[k] = draw(k) < 0.5;
      add_data(program, name, DataType::boolean, input.shape);
      fed.emplace(name, std::move(condition));
      continue;
    }
    std::vector<float> values(size);
    for (std::size_t k = 0; k < size; ++k) {
      values[k] = static_cast<float>(input.low + (input.high - input.low) * draw(k));
      // Away from the corners of relu, abs and clip, and of max and min, where there is no derivative.
      for (const float corner : {0.0f, -0.5f, 0.5f, 0.7f}) {
        if (std::abs(values[k] - corner) < 0.03f) values[k] += 0.06f;
      }
      if (row.type.starts_with("elementwise_m")) {
        values[k] = 0.1f * std::round(values[k] / 0.1f) + 0.05f * static_cast<float>(i);
      }
    }
    if (!input.differentiated) {
      add_data(program, name, DataType::float32, input.shape);
      fed.emplace(name, floats(input.shape, values));
      continue;
    }
    add_parameter(program, scope, name, floats(input.shape, values));
    program.variable(name).lod_level = input.lod_level;
    scope.tensor(name).offsets = input.offsets;
    differentiated.push_back(name);
  }
  for (std::size_t i = 0; i < row.outputs; ++i) outputs.push_back(std::string("y").append(std::to_string(i)));
  program.append({row.type, inputs, outputs, row.attributes});
  if (row.type == "dropout") outputs.pop_back();
  if (row.compared > 0) outputs.resize(row.compared);
  gradients = append_backward(program, loss_of(squared, ""));
}

void Harness::differentiate_again() {
  outputs.clear();
  for (const ParameterGradient& each : gradients) outputs.push_back(each.gradient);
  gradients = append_backward(program, loss_of(false, "second_"));
}

std::string Harness::loss_of(bool squared, const std::string& prefix) {
  Executor once(program, scope);
  once.run(feed());
  std::vector<std::string> parts;
  for (const std::string& output : outputs) {
    if (once.tensor(output).type() != DataType::float32) continue;
    const Shape shape = once.tensor(output).shape();
    const std::string weights = output + "_weights";
    std::vector<float> values(once.tensor(output).size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(uniform(stream_seed(3, weights), k) - 0.5);
    }
    add_data(program, weights, DataType::float32, shape);
    fed.emplace(weights, floats(shape, values));
    const std::string taken = squared ? add(program, "square", {output}, output + "_square") : output;
    const std::string weighted = add(program, "elementwise_mul", {taken, weights}, output + "_weighted");
    parts.push_back(add(program, "sum", {weighted}, output + "_sum"));
  }
  return add(program, "add_n", parts, prefix + "loss");
}

/// program: what makes the outputs.
void check_gradients(const Row& row, Harness& harness, const Program& program) {
  Executor executor(harness.program, harness.scope);
  executor.run(harness.feed());
  REQUIRE(harness.gradients.size() == harness.differentiated.size());
  for (const ParameterGradient& gradient : harness.gradients) {
    const std::vector<float> computed = floats_of(executor.tensor(gradient.gradient));
    Tensor& parameter = harness.scope.tensor(gradient.parameter);
    CHECK(executor.tensor(gradient.gradient).shape() == parameter.shape());
    Executor forward(program, harness.scope);
    for (std::size_t k = 0; k < parameter.size(); ++k) {
      constexpr float kStep = 4e-3f;
      float& value = parameter.values<float>()[k];
      const float before = value;
      value = before + kStep;
      const double width = static_cast<double>(value);
      forward.run(harness.feed());
      const double above = harness.weighted(forward);
      value = before - kStep;
      forward.run(harness.feed());
      const double difference = (above - harness.weighted(forward)) / (width - static_cast<double>(value));
      value = before;
      INFO(row.type << " of " << to_string(parameter.shape()) << " by " << gradient.parameter << "[" << k
                    << "]");
      CHECK(computed[k] == doctest::Approx(difference).epsilon(2e-3).scale(1.0));
    }
  }
}

void check_gradients(const Row& row) {
  Harness harness(row);
  check_gradients(row, harness, clone_for_test(harness.program));
}

/// Whether each gradient that the operator's own has to be computed by has one itself.
bool has_second(const Row& row) {
  const OperatorDefinition* gradient = find_operator(row.type + "_grad");
  return gradient != nullptr && gradient->gradient != nullptr;
}

/// Shapes from a stream of random numbers: 1 to 3 dimensions of 0 to 5.
class Shapes {
 public:
  explicit Shapes(std::uint64_t seed) : seed_(seed) {}

  std::int64_t below(std::int64_t size) {
    return static_cast<std::int64_t>(uniform(seed_, drawn_++) * double(size));
  }
  Shape any() {
    Shape shape(static_cast<std::size_t>(1 + below(3)));
    for (std::int64_t& size : shape) size = below(8) == 0 ? 0 : 1 + below(5);
    return shape;
  }
  /// One that broadcasts with `shape`: dimensions of it are 1, first ones are missing.
  Shape partner(const Shape& shape) {
    Shape other(shape.begin() + static_cast<std::ptrdiff_t>(below(static_cast<std::int64_t>(shape.size()))),
                shape.end());
    for (std::int64_t& size : other) {
      if (below(3) == 0) size = 1;
    }
    return other;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

std::vector<Row> rows_of_random_shapes(std::uint64_t seed) {
  Shapes shapes(seed);
  std::vector<Row> rows;
  const auto positive = [](Shape shape) { return Input{.shape = std::move(shape), .low = 0.6, .high = 2.0}; };
  for (const char* type : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div",
                           "elementwise_max", "elementwise_min", "elementwise_pow"}) {
    const Shape shape = shapes.any(), other = shapes.partner(shape);
    rows.push_back({type, {positive(shape), positive(other)}});
    rows.push_back({type, {positive(other), positive(shape)}});
  }
  for (const char* type : {"relu", "sigmoid", "tanh", "square", "gelu", "softplus", "cumsum", "assign"}) {
    rows.push_back({type, {{.shape = shapes.any()}}});
  }
  for (const char* type : {"sum", "prod"}) {
    const Shape shape = shapes.any();
    const auto axis = shapes.below(static_cast<std::int64_t>(shape.size()));
    rows.push_back(
        {type, {positive(shape)}, {{"axis", std::vector{axis}}, {"keepdim", shapes.below(2) == 1}}});
  }
  const Shape shape = shapes.any(), other = shapes.partner(shape);
  const auto axis = shapes.below(static_cast<std::int64_t>(shape.size()));
  rows.push_back({"concat", {{.shape = shape}, {.shape = shape}}, {{"axis", axis}}});
  rows.push_back({"stack", {{.shape = shape}, {.shape = shape}}, {{"axis", axis}}});
  rows.push_back({"expand", {{.shape = other}}, {{"shape", shape}}});
  rows.push_back({"tile", {{.shape = other}}, {{"repeat_times", std::vector<std::int64_t>{2, 1, 3}}}});
  const std::int64_t n = shapes.below(4), k = 1 + shapes.below(3), m = 1 + shapes.below(4);
  const Shape leading = shapes.any();
  Shape x = leading, y = shapes.partner(leading);
  x.insert(x.end(), {n, k});
  y.insert(y.end(), {k, m});
  rows.push_back({"matmul", {{.shape = x}, {.shape = y}}});
  rows.push_back({"matmul", {{.shape = {n, k}}, {.shape = y}}});
  return rows;
}

}  // namespace

TEST_CASE("the gradient of every operator is that of central differences") {
  for (const Row& row : all_rows()) check_gradients(row);
}

TEST_CASE(
    "the gradients of operators over random shapes, broadcast and empty ones, are those of central "
    "differences") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const Row& row : rows_of_random_shapes(seed)) check_gradients(row);
  }
}

TEST_CASE("the table above has every operator that has a gradient") {
  // Rows, and a gradient that is not one: lookup_operators_test.cc, statistics_operators_test.cc. Of a body:
  // tests/e2e/python/test_loops.py.
  std::set<std::string> covered = {"sparse_embedding", "cvm", "loop", "call"};
  for (const Row& row : all_rows()) covered.insert(row.type);
  for (const std::string_view type : operator_types()) {
    const OperatorDefinition* definition = find_operator(type);
    if (definition->gradient == nullptr || definition->infer == infer_gradient) continue;
    INFO(type);
    CHECK(covered.contains(std::string(type)));
  }
}

TEST_CASE("the gradient of every gradient that has one is that of central differences") {
  std::set<std::string> covered;
  for (const Row& row : all_rows()) {
    if (!has_second(row)) continue;
    covered.insert(row.type + "_grad");
    Harness harness(row, true);
    harness.differentiate_again();
    check_gradients(row, harness, Program(harness.program));
  }
  for (const std::string_view type : operator_types()) {
    const OperatorDefinition* definition = find_operator(type);
    if (definition->infer != infer_gradient || definition->gradient == nullptr || type == "reshape_like")
      continue;
    INFO(type);
    CHECK(covered.contains(std::string(type)));
  }
}
