// Matrix products, float32.

#include <algorithm>
#include <cstring>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/broadcast.h"
#include "runtime/engine/operators/linear.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

std::size_t last(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape().back());
}

/// All dimensions but the last, multiplied.
std::size_t rows_of(const Tensor& tensor) {
  std::size_t rows = 1;
  for (std::size_t d = 0; d + 1 < tensor.shape().size(); ++d)
    rows *= static_cast<std::size_t>(tensor.shape()[d]);
  return rows;
}

void infer_linear(Inference& inference) {
  inference.expect_inputs(2, 3);
  inference.expect_outputs(1, 1);
  for (std::size_t i = 0; i < inference.op().inputs.size(); ++i) inference.expect_type(i, DataType::float32);
  const Variable& x = inference.input(0);
  const Variable& weight = inference.input(1);
  if (weight.shape.size() != 2) inference.fail("the weight must have two dimensions");
  if (x.shape.empty() || (x.shape.back() >= 0 && x.shape.back() != weight.shape[0])) {
    inference.fail("the last dimension of the input is not the first of the weight");
  }
  if (inference.op().inputs.size() == 3 && inference.input(2).shape != Shape{weight.shape[1]}) {
    inference.fail("the bias must have the shape " + to_string(Shape{weight.shape[1]}));
  }
  Shape shape = x.shape;
  shape.back() = weight.shape[1];
  inference.set_output(0, DataType::float32, shape, x.lod_level);
}

void add_bias(float* out, const float* bias, std::size_t rows, std::size_t columns) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t r = 0; r < rows; ++r) {
      float* row = out + r * columns;
      for (std::size_t c = 0; c < columns; ++c) row[c] += bias[c];
    }
  });
}

void check_bias(const Operator& op, const Tensor& bias, std::size_t columns) {
  if (bias.size() == columns) return;
  fail(op, "the bias is " + to_string(bias.shape()) + " for " + std::to_string(columns) + " columns");
}

Kernel prepare_linear(const Preparation& p) {
  return [op = &p.op, x = p.input(0), weight = p.input(1), bias = p.input(2), out = p.output(0),
          shape = Shape()]() mutable {
    const LinearSize size = multiply_linear(*op, *x, *weight, *out, shape);
    if (bias == nullptr) return;
    check_bias(*op, *bias, size.columns);
    add_bias(out->values<float>().data(), bias->values<float>().data(), size.rows, size.columns);
  };
}

/// Column sums, four rows at a time so that the sums stay in registers or L1 less often loaded.
void sum_columns(const float* from, float* to, std::size_t rows, std::size_t columns) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < columns; ++c) to[c] = 0.0f;
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const float* a = from + r * columns;
      for (std::size_t c = 0; c < columns; ++c) {
        to[c] += (a[c] + a[columns + c]) + (a[2 * columns + c] + a[3 * columns + c]);
      }
    }
    for (; r < rows; ++r) {
      const float* a = from + r * columns;
      for (std::size_t c = 0; c < columns; ++c) to[c] += a[c];
    }
  });
}

/// (X, Weight, dOut) -> dX, dWeight, dBias; and linear_sgd, with (…, WeightRate or "", BiasRate or "")
Kernel prepare_linear_gradient(const Preparation& p) {
  return [g = p.input(2), weight = p.input(1), gradient = LinearGradient(p, 3)]() mutable {
    const std::size_t columns = last(*weight), rows = columns == 0 ? 0 : g->size() / columns;
    const float* dz = g->values<float>().data();
    if (float* sums = gradient.begin(columns); sums != nullptr) sum_columns(dz, sums, rows, columns);
    gradient.finish(dz);
  };
}

void linear_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append(
      {.type = "linear_grad",
       .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
       .outputs = {builder.input_gradient(0), builder.input_gradient(1), builder.input_gradient(2)},
       .attributes = {}});
}

/// One matmul as products of matrices; X's leading dimensions are rows where Y is one matrix.
struct MatmulPlan {
  std::size_t rows = 0, inner = 0, columns = 0;
  bool transpose_x = false, transpose_y = false;
  Shape shape;
  /// Which matrices of X and Y each product takes; empty for one of each.
  std::vector<std::pair<std::size_t, std::size_t>> batches;
  /// Whether a matrix of X (Y) is in several products.
  bool repeats_x = false, repeats_y = false;
};

void plan_batches(const Shape& x, const Shape& y, const Shape& leading, MatmulPlan& plan) {
  Broadcast broadcast;
  plan.batches.clear();
  if (!broadcast.plan(x, y, -1)) return;
  broadcast.for_each_run([&](std::size_t, std::size_t i, std::size_t j) {
    for (std::size_t k = 0; k < broadcast.run(); ++k) {
      plan.batches.emplace_back(i + k * broadcast.step_x(), j + k * broadcast.step_y());
    }
  });
  plan.repeats_x = count(x) < count(leading);
  plan.repeats_y = count(y) < count(leading);
}

/// An empty text when the shapes agree. -1 stands for any size.
std::string plan_matmul(const Shape& x, const Shape& y, MatmulPlan& plan) {
  if (x.size() < 2 || y.size() < 2) return "both inputs need two dimensions or more";
  const bool folds = y.size() == 2 && !plan.transpose_x;
  const std::size_t dx = x.size(), dy = y.size();
  const std::int64_t inner_x = plan.transpose_x ? x[dx - 2] : x[dx - 1];
  const std::int64_t inner_y = plan.transpose_y ? y[dy - 1] : y[dy - 2];
  if (inner_x >= 0 && inner_y >= 0 && inner_x != inner_y) return "the inner dimensions differ";
  const std::int64_t columns = plan.transpose_y ? y[dy - 2] : y[dy - 1];
  if (folds) {
    plan.shape = x;
    plan.rows = 1;
    for (std::size_t d = 0; d + 1 < dx; ++d) plan.rows *= static_cast<std::size_t>(x[d]);
    plan.batches.assign(1, {0, 0});
  } else {
    const Shape of_x(x.begin(), x.end() - 2), of_y(y.begin(), y.end() - 2);
    if (!broadcast_shape(of_x, of_y, -1, plan.shape)) return "the leading dimensions do not agree";
    if (count(of_x) >= 0 && count(of_y) >= 0) plan_batches(of_x, of_y, plan.shape, plan);
    plan.shape.push_back(plan.transpose_x ? x[dx - 1] : x[dx - 2]);
    plan.rows = static_cast<std::size_t>(plan.shape.back());
    plan.shape.push_back(columns);
  }
  plan.shape.back() = columns;
  plan.inner = static_cast<std::size_t>(inner_x);
  plan.columns = static_cast<std::size_t>(columns);
  return {};
}

MatmulPlan plan_of(const Operator& op) {
  MatmulPlan plan;
  plan.transpose_x = attribute(op, "transpose_x", false);
  plan.transpose_y = attribute(op, "transpose_y", false);
  return plan;
}

void infer_matmul(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::float32);
  MatmulPlan plan = plan_of(inference.op());
  const std::string wrong = plan_matmul(inference.input(0).shape, inference.input(1).shape, plan);
  if (!wrong.empty()) inference.fail(wrong);
  inference.set_output(0, DataType::float32, plan.shape, inference.input(0).lod_level);
}

void plan_or_fail(const Operator& op, const Tensor& x, const Tensor& y, MatmulPlan& plan) {
  const std::string wrong = plan_matmul(x.shape(), y.shape(), plan);
  if (!wrong.empty()) fail(op, wrong + ": " + to_string(x.shape()) + " and " + to_string(y.shape()));
}

Kernel prepare_matmul(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), out = p.output(0), plan = plan_of(p.op)]() mutable {
    plan_or_fail(*op, *x, *y, plan);
    out->resize(DataType::float32, plan.shape);
    out->offsets = x->offsets;
    const float* a = x->values<float>().data();
    const float* b = y->values<float>().data();
    float* c = out->values<float>().data();
    for (const auto& [i, j] : plan.batches) {
      multiply({.transpose_a = plan.transpose_x,
                .transpose_b = plan.transpose_y,
                .rows = plan.rows,
                .columns = plan.columns,
                .inner = plan.inner},
               a + i * plan.rows * plan.inner, b + j * plan.inner * plan.columns, c);
      c += plan.rows * plan.columns;
    }
  };
}

/// dX = dOut·Yᵀ, or (Y·dOutᵀ) when X is transposed; dY likewise.
void differentiate(const MatmulPlan& plan, const float* x, const float* y, const float* g, float* dx,
                   float* dy) {
  if (dx != nullptr && !plan.transpose_x) {
    multiply({.transpose_b = !plan.transpose_y,
              .rows = plan.rows,
              .columns = plan.inner,
              .inner = plan.columns,
              .accumulate = plan.repeats_x},
             g, y, dx);
  } else if (dx != nullptr) {
    multiply({.transpose_a = plan.transpose_y,
              .transpose_b = true,
              .rows = plan.inner,
              .columns = plan.rows,
              .inner = plan.columns,
              .accumulate = plan.repeats_x},
             y, g, dx);
  }
  if (dy != nullptr && !plan.transpose_y) {
    multiply({.transpose_a = !plan.transpose_x,
              .rows = plan.inner,
              .columns = plan.columns,
              .inner = plan.rows,
              .accumulate = plan.repeats_y},
             x, g, dy);
  } else if (dy != nullptr) {
    multiply({.transpose_a = true,
              .transpose_b = plan.transpose_x,
              .rows = plan.columns,
              .columns = plan.inner,
              .inner = plan.rows,
              .accumulate = plan.repeats_y},
             g, x, dy);
  }
}

/// The gradient's values; zeros when products are to be added up in it.
float* begin_gradient(const Tensor& of, bool adds_up, Tensor* gradient) {
  if (gradient == nullptr) return nullptr;
  gradient->resize(DataType::float32, of.shape());
  float* values = gradient->values<float>().data();
  if (adds_up) std::fill_n(values, gradient->size(), 0.0f);
  return values;
}

/// (X, Y, dOut) -> dX, dY
Kernel prepare_matmul_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0), dy = p.output(1),
          plan = plan_of(p.op)]() mutable {
    plan_or_fail(*op, *x, *y, plan);
    const bool none = plan.batches.empty();
    float* to_x = begin_gradient(*x, plan.repeats_x || none, dx);
    float* to_y = begin_gradient(*y, plan.repeats_y || none, dy);
    const float* from = g->values<float>().data();
    for (const auto& [i, j] : plan.batches) {
      const std::size_t at_x = i * plan.rows * plan.inner, at_y = j * plan.inner * plan.columns;
      differentiate(plan, x->values<float>().data() + at_x, y->values<float>().data() + at_y, from,
                    to_x != nullptr ? to_x + at_x : nullptr, to_y != nullptr ? to_y + at_y : nullptr);
      from += plan.rows * plan.columns;
    }
  };
}

void matmul_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "matmul_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0), builder.input_gradient(1)},
                  .attributes = op.attributes});
}

}  // namespace

LinearSize multiply_linear(const Operator& op, const Tensor& x, const Tensor& weight, Tensor& out,
                           Shape& shape) {
  if (x.shape().empty() || x.shape().back() != weight.shape()[0]) {
    fail(op, "the input's shape is " + to_string(x.shape()) + ", the weight's " + to_string(weight.shape()));
  }
  const std::size_t rows = rows_of(x), inner = last(x), columns = last(weight);
  shape = x.shape();
  shape.back() = static_cast<std::int64_t>(columns);
  out.resize(DataType::float32, shape);
  out.offsets = x.offsets;
  multiply({.rows = rows, .columns = columns, .inner = inner}, x.values<float>().data(),
           weight.values<float>().data(), out.values<float>().data());
  return {rows, columns};
}

std::optional<LinearGradient::Step> LinearGradient::step_of(const Preparation& p, const char* rate,
                                                            std::size_t input) {
  if (!p.op.attributes.contains(rate)) return std::nullopt;
  return Step{static_cast<float>(attribute<double>(p.op, rate)), p.input(input)};
}

LinearGradient::LinearGradient(const Preparation& p, std::size_t rates)
    : x_(p.input(0)),
      weight_(p.input(1)),
      dx_(p.output(0)),
      dw_(p.output(1)),
      db_(p.output(2)),
      weight_step_(step_of(p, "weight_rate", rates)),
      bias_step_(step_of(p, "bias_rate", rates + 1)) {}

float* LinearGradient::begin(std::size_t columns) {
  if (db_ != nullptr && !bias_step_) {
    bias_shape_[0] = static_cast<std::int64_t>(columns);
    db_->resize(DataType::float32, bias_shape_);
    return db_->values<float>().data();
  }
  sums_.resize(columns);
  return sums_.data();
}

void LinearGradient::finish(const float* dz) {
  const std::size_t inner = last(*x_), columns = last(*weight_);
  const std::size_t rows = inner == 0 ? 0 : x_->size() / inner;
  // Before the weight is stepped.
  if (dx_ != nullptr) {
    dx_->resize(DataType::float32, x_->shape());
    multiply({.transpose_b = true, .rows = rows, .columns = inner, .inner = columns}, dz,
             weight_->values<float>().data(), dx_->values<float>().data());
  }
  if (dw_ != nullptr) finish_weight(dz, rows, inner, columns);
  if (db_ == nullptr || !bias_step_) return;
  float* bias = db_->values<float>().data();
  const float rate = bias_step_->now();
  for (std::size_t c = 0; c < columns; ++c) bias[c] -= rate * sums_[c];
}

void LinearGradient::finish_weight(const float* dz, std::size_t rows, std::size_t inner,
                                   std::size_t columns) {
  MatrixProduct product{.transpose_a = true, .rows = inner, .columns = columns, .inner = rows};
  if (weight_step_) {
    product.accumulate = true;
    product.scale = -weight_step_->now();
  } else {
    dw_->resize(DataType::float32, weight_->shape());
  }
  multiply(product, x_->values<float>().data(), dz, dw_->values<float>().data());
}

std::span<const OperatorDefinition> matrix_operators() {
  static constexpr OperatorDefinition all[] = {
      {"linear",
       infer_linear,
       prepare_linear,
       linear_gradient,
       {"(X [.., K], Weight [K, M], Bias [M] optional) -> Out [.., M]", "X times Weight, plus Bias"}},
      {"linear_grad", infer_gradient, prepare_linear_gradient, gradient_of_product},
      {"linear_sgd",
       infer_gradient,
       prepare_linear_gradient,
       nullptr,
       {"as linear_grad", "linear_grad that updates the parameters (linear.h); made by a pass only"}},
      {"matmul",
       infer_matmul,
       prepare_matmul,
       matmul_gradient,
       {"(X, Y) -> Out",
        "matrix product: [N, K] by [K, M]; [.., K] by [K, M] with X's leading dimensions kept; [.., N, K] "
        "by [.., K, M] batch by batch, leading dimensions of 1 and missing ones being repeated",
        "transpose_x = false; transpose_y = false"}},
      {"matmul_grad", infer_gradient, prepare_matmul_gradient, gradient_of_product},
  };
  return all;
}

}  // namespace fleetrun::engine
