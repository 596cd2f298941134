// Softmax and losses, one value for each example; float32. Gradients are for the first input only, except for
// square_error_cost.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

std::size_t classes_of(const Tensor& x) {
  return static_cast<std::size_t>(x.shape().back());
}

/// x below the greatest of its row, no deeper than Paddle goes on the CPU (its ValueClip): no class is
/// impossible, and no loss of a class over 64 or so.
[[gnu::always_inline]] inline float depth(float x, float max) {
  return x - max < -64.0f ? -64.0f : x - max;
}

void softmax_row(const float* x, float* out, std::size_t classes) {
  float max = x[0];
  for (std::size_t c = 1; c < classes; ++c) max = x[c] > max ? x[c] : max;
  float total = 0.0f;
  for (std::size_t c = 0; c < classes; ++c) {
    out[c] = vector_math::exp(depth(x[c], max));
    total += out[c];
  }
  const float scale = 1.0f / total;
  for (std::size_t c = 0; c < classes; ++c) out[c] *= scale;
}

void softmax_rows(const float* x, float* out, std::size_t rows, std::size_t classes) {
  for (std::size_t r = 0; r < rows; ++r) softmax_row(x + r * classes, out + r * classes, classes);
}

void infer_softmax(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  const auto axis = attribute(inference.op(), "axis", std::int64_t{-1});
  if (x.shape.empty()) inference.fail("the input has no dimensions");
  if (axis != -1 && axis + 1 != static_cast<std::int64_t>(x.shape.size())) {
    inference.fail("axis " + std::to_string(axis) + " is not the last", "transpose it to the end first");
  }
  inference.set_output(0, DataType::float32, x.shape, x.lod_level);
}

Kernel prepare_softmax(const Preparation& p) {
  return [x = p.input(0), out = p.output(0)] {
    out->resize(DataType::float32, x->shape());
    out->offsets = x->offsets;
    const std::size_t classes = classes_of(*x);
    if (classes == 0) return;
    softmax_rows(x->values<float>().data(), out->values<float>().data(), x->size() / classes, classes);
  };
}

/// (Out, dOut) -> dX, row by row: formula(out, gradient, to, classes)
template <class Formula>
Kernel gradient_by_rows(const Preparation& p, Formula formula) {
  return [y = p.input(0), g = p.input(1), dx = p.output(0), formula] {
    dx->resize(DataType::float32, y->shape());
    const std::size_t classes = classes_of(*y), size = y->size();
    const float* out = y->values<float>().data();
    const float* gradient = g->values<float>().data();
    float* to = dx->values<float>().data();
    for (std::size_t at = 0; at < size; at += classes) formula(out + at, gradient + at, to + at, classes);
  };
}

Kernel prepare_softmax_gradient(const Preparation& p) {
  return gradient_by_rows(p, [](const float* out, const float* gradient, float* to, std::size_t classes) {
    float dot = 0.0f;
    for (std::size_t c = 0; c < classes; ++c) dot += out[c] * gradient[c];
    for (std::size_t c = 0; c < classes; ++c) to[c] = out[c] * (gradient[c] - dot);
  });
}

/// log(softmax(x)), of the values as they are and not of their shares: near 0 those have lost what is left.
Kernel prepare_log_softmax(const Preparation& p) {
  return [x = p.input(0), out = p.output(0)] {
    out->resize(DataType::float32, x->shape());
    out->offsets = x->offsets;
    const std::size_t classes = classes_of(*x);
    const auto in = x->values<float>();
    const auto to = out->values<float>();
    for (std::size_t at = 0; at < in.size(); at += classes) {
      const float max = *std::max_element(&in[at], &in[at] + classes);
      float total = 0.0f;
      for (std::size_t c = at; c < at + classes; ++c) {
        to[c] = depth(in[c], max);
        total += std::exp(to[c]);
      }
      const float log_total = std::log(total);
      for (std::size_t c = at; c < at + classes; ++c) to[c] -= log_total;
    }
  };
}

/// Also of a value that was too deep.
Kernel prepare_log_softmax_gradient(const Preparation& p) {
  return gradient_by_rows(p, [](const float* out, const float* gradient, float* to, std::size_t classes) {
    const float total = std::accumulate(gradient, gradient + classes, 0.0f);
    for (std::size_t c = 0; c < classes; ++c) to[c] = gradient[c] - std::exp(out[c]) * total;
  });
}

/// Of softmax and log_softmax
void softmax_gradient(GradientBuilder& builder) {
  builder.append({.type = builder.op().type + "_grad",
                  .inputs = {builder.op().outputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

struct CrossEntropy {
  bool use_softmax;
  bool soft;
  std::int64_t ignored;

  explicit CrossEntropy(const Operator& op)
      : use_softmax(attribute(op, "use_softmax", true)),
        soft(attribute(op, "soft_label", false)),
        ignored(attribute(op, "ignore_index", std::int64_t{-100})) {}
};

/// Labels of shape [..] where X is [.., C], instead of [.., 1].
bool is_flat(const Shape& x, const Shape& label) {
  return label.size() + 1 == x.size();
}

void infer_cross_entropy(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  const Variable& label = inference.input(1);
  const bool soft = attribute(inference.op(), "soft_label", false);
  inference.expect_type(1, soft ? DataType::float32 : DataType::int64);
  if (x.shape.empty()) inference.fail("the input has no dimensions");
  Shape shape = x.shape;
  shape.back() = 1;
  const auto axis = attribute(inference.op(), "axis", std::int64_t{-1});
  if (axis != -1 && axis + 1 != static_cast<std::int64_t>(x.shape.size())) {
    inference.fail("axis " + std::to_string(axis) + " is not the last");
  }
  if (!soft && is_flat(x.shape, label.shape)) {
    shape.pop_back();
    if (shape.empty()) shape.push_back(1);
  } else {
    bool same = label.shape.size() == x.shape.size();
    for (std::size_t d = 0; same && d < shape.size(); ++d) {
      const std::int64_t wanted = soft ? x.shape[d] : shape[d];
      same = wanted < 0 || label.shape[d] < 0 || wanted == label.shape[d];
    }
    if (!same) inference.fail("the label's shape must be " + to_string(soft ? x.shape : shape));
  }
  inference.set_output(0, DataType::float32, shape);
}

std::size_t checked_label(const Operator& op, std::int64_t label, std::size_t classes) {
  if (label >= 0 && static_cast<std::size_t>(label) < classes) return static_cast<std::size_t>(label);
  fail_on_data(op,
               "label " + std::to_string(label) + " in '" + op.inputs[1] + "' is outside of [0, " +
                   std::to_string(classes) + ")",
               "map labels into it, or set ignore_index to this one");
}

/// As in Paddle, so that a share of 0 of an impossible class is 0, and not NaN.
float log_of(float probability) {
  return probability == 0.0f ? -1e20f : std::log(probability);
}

/// -Σ target · log softmax(x), or of x itself; a hard label is a target of one 1.
template <class Target>
float entropy(const CrossEntropy& config, const float* x, std::size_t classes, const Target& target) {
  float total = 0.0f;
  if (!config.use_softmax) {
    target([&](std::size_t c, float weight) { total -= weight * log_of(x[c]); });
    return total;
  }
  const float max = *std::max_element(x, x + classes);
  float sum = 0.0f;
  for (std::size_t c = 0; c < classes; ++c) sum += std::exp(depth(x[c], max));
  const float log_sum = std::log(sum);
  target([&](std::size_t c, float weight) { total += weight * (log_sum - depth(x[c], max)); });
  return total;
}

void check_rows(const Operator& op, const Tensor& x, const Tensor& label, bool soft) {
  const std::size_t classes = classes_of(x);
  if (classes > 0 && label.size() * (soft ? 1 : classes) == x.size()) return;
  fail(op, "the input is " + to_string(x.shape()) + ", the label " + to_string(label.shape()));
}

Kernel prepare_cross_entropy(const Preparation& p) {
  return [op = &p.op, x = p.input(0), label = p.input(1), out = p.output(0), config = CrossEntropy(p.op),
          shape = Shape()]() mutable {
    check_rows(*op, *x, *label, config.soft);
    shape = x->shape();
    shape.back() = 1;
    if (!config.soft && is_flat(x->shape(), label->shape())) shape.pop_back();
    out->resize(DataType::float32, shape);
    const std::size_t classes = classes_of(*x);
    const float* from = x->values<float>().data();
    const auto to = out->values<float>();
    for (std::size_t r = 0; r < to.size(); ++r, from += classes) {
      if (config.soft) {
        const float* weights = label->values<float>().data() + r * classes;
        to[r] = entropy(config, from, classes, [&](const auto& add) {
          for (std::size_t c = 0; c < classes; ++c) add(c, weights[c]);
        });
        continue;
      }
      const std::int64_t wanted = label->values<std::int64_t>()[r];
      to[r] = 0.0f;
      if (wanted == config.ignored) continue;
      const std::size_t c = checked_label(*op, wanted, classes);
      to[r] = entropy(config, from, classes, [c](const auto& add) { add(c, 1.0f); });
    }
  };
}

/// (X, Label, dOut) -> dX
Kernel prepare_cross_entropy_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), label = p.input(1), g = p.input(2), dx = p.output(0),
          config = CrossEntropy(p.op)] {
    dx->resize(DataType::float32, x->shape());
    const std::size_t classes = classes_of(*x);
    const float* from = x->values<float>().data();
    float* to = dx->values<float>().data();
    const auto gradient = g->values<float>();
    for (std::size_t r = 0; r < gradient.size(); ++r, from += classes, to += classes) {
      std::fill_n(to, classes, 0.0f);
      const float scale = gradient[r];
      float total = 1.0f;
      if (config.soft) {
        const float* weights = label->values<float>().data() + r * classes;
        total = 0.0f;
        for (std::size_t c = 0; c < classes; ++c) {
          to[c] = -weights[c] * scale;
          total += weights[c];
        }
      } else {
        const std::int64_t wanted = label->values<std::int64_t>()[r];
        if (wanted == config.ignored) continue;
        to[checked_label(*op, wanted, classes)] = -scale;
      }
      if (!config.use_softmax) {
        for (std::size_t c = 0; c < classes; ++c) {
          if (to[c] != 0.0f) to[c] /= from[c];
        }
        continue;
      }
      // d/dx = total · softmax(x) - target
      const float max = *std::max_element(from, from + classes);
      float sum = 0.0f;
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(depth(from[c], max));
      for (std::size_t c = 0; c < classes; ++c) {
        to[c] += scale * total * std::exp(depth(from[c], max)) / sum;
      }
    }
  };
}

void loss_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  if (!builder.wants(0)) return;
  builder.append({.type = op.type + "_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

// ---- Losses value by value: f(x, label) and df/dx. ----

struct LogLoss {
  float epsilon;
  explicit LogLoss(const Operator& op) : epsilon(static_cast<float>(attribute(op, "epsilon", 1e-4))) {}

  [[gnu::always_inline]] float value(float p, float l) const {
    return -l * vector_math::log(p + epsilon) - (1.0f - l) * vector_math::log(1.0f - p + epsilon);
  }
  [[gnu::always_inline]] float slope(float p, float l) const {
    return -l / (p + epsilon) + (1.0f - l) / (1.0f - p + epsilon);
  }
};

struct LogitLoss {
  explicit LogitLoss(const Operator&) {}

  [[gnu::always_inline]] float value(float x, float l) const {
    const float size = x < 0.0f ? -x : x;
    const float e = vector_math::exp(-size);
    // log(1 + e) loses e's last digits when e is small; there log(1 + e) = e - e²/2 to within 1e-12.
    const float log1p = e < 1e-4f ? e - 0.5f * e * e : vector_math::log(1.0f + e);
    return (x > 0.0f ? x : 0.0f) - x * l + log1p;
  }
  [[gnu::always_inline]] float slope(float x, float l) const { return vector_math::sigmoid(x) - l; }
};

struct SquareError {
  explicit SquareError(const Operator&) {}

  [[gnu::always_inline]] float value(float x, float l) const { return (x - l) * (x - l); }
  [[gnu::always_inline]] float slope(float x, float l) const { return 2.0f * (x - l); }
};

void infer_pointwise(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::float32);
  const Variable& x = inference.input(0);
  const Variable& label = inference.input(1);
  bool same = x.shape.size() == label.shape.size();
  for (std::size_t d = 0; same && d < x.shape.size(); ++d) {
    same = x.shape[d] < 0 || label.shape[d] < 0 || x.shape[d] == label.shape[d];
  }
  if (!same) inference.fail("its inputs must have one shape");
  inference.set_output(0, DataType::float32, x.shape);
}

template <class F>
Kernel prepare_pointwise(const Preparation& p) {
  return [op = &p.op, x = p.input(0), label = p.input(1), out = p.output(0), f = F(p.op)] {
    if (x->shape() != label->shape()) {
      fail(*op, "its inputs are " + to_string(x->shape()) + " and " + to_string(label->shape()));
    }
    out->resize(DataType::float32, x->shape());
    const float* a = x->values<float>().data();
    const float* l = label->values<float>().data();
    float* to = out->values<float>().data();
    const std::size_t size = x->size();
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) to[i] = f.value(a[i], l[i]);
    });
  };
}

/// (X, Label, dOut) -> dX, dLabel; the second for square_error_cost only, where it is the negative.
template <class F>
Kernel prepare_pointwise_gradient(const Preparation& p) {
  return
      [x = p.input(0), label = p.input(1), g = p.input(2), dx = p.output(0), dl = p.output(1), f = F(p.op)] {
        const float* a = x->values<float>().data();
        const float* l = label->values<float>().data();
        const float* gradient = g->values<float>().data();
        const std::size_t size = x->size();
        for (Tensor* target : {dx, dl}) {
          if (target == nullptr) continue;
          target->resize(DataType::float32, x->shape());
          float* to = target->values<float>().data();
          const float sign = target == dx ? 1.0f : -1.0f;
          vectorized([=]() __attribute__((always_inline)) {
            for (std::size_t i = 0; i < size; ++i) to[i] = sign * gradient[i] * f.slope(a[i], l[i]);
          });
        }
      };
}

void square_error_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "square_error_cost_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0), builder.input_gradient(1)},
                  .attributes = {}});
}

/// Of (Out, dOut) -> dX = Out * (dOut - s(dOut)), s(z) being the sum of z * Out: dOut gets the same of ddX,
/// and Out ddX * (dOut - s(dOut)) - dOut * s(ddX).
void softmax_gradient_gradient(GradientBuilder& builder) {
  const Operator op = builder.op();
  const std::string &y = op.inputs[0], &g = op.inputs[1], ddx = builder.output_gradient(0);
  builder.append({.type = op.type,
                  .inputs = {y, ddx},
                  .outputs = {builder.input_gradient(1)},
                  .attributes = op.attributes});
  if (!builder.wants(0)) return;
  const auto product = [&](const std::string& a, const std::string& b) {
    return append_new(builder, "elementwise_mul", {a, b});
  };
  const auto sum = [&](const std::string& z) {
    return append_new(builder, "sum", {product(z, y)},
                      {{"axis", std::vector<std::int64_t>{-1}}, {"keepdim", true}});
  };
  const std::string rest = append_new(builder, "elementwise_sub", {g, sum(g)});
  const std::string first = product(ddx, rest), second = product(g, sum(ddx));
  builder.append({.type = "elementwise_sub",
                  .inputs = {first, second},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

/// Of (Out, dOut) -> dX = dOut - exp(Out) * s(dOut), s(z) being the sum of z: dOut gets
/// ddX - s(ddX * exp(Out)), and Out -ddX * exp(Out) * s(dOut).
void log_softmax_gradient_gradient(GradientBuilder& builder) {
  const Operator op = builder.op();
  const std::string &y = op.inputs[0], &g = op.inputs[1], ddx = builder.output_gradient(0);
  const auto sum = [&](const std::string& z) {
    return append_new(builder, "sum", {z}, {{"axis", std::vector<std::int64_t>{-1}}, {"keepdim", true}});
  };
  const std::string part = append_new(builder, "elementwise_mul", {ddx, append_new(builder, "exp", {y})});
  builder.append({.type = "elementwise_sub",
                  .inputs = {ddx, sum(part)},
                  .outputs = {builder.input_gradient(1)},
                  .attributes = {}});
  if (!builder.wants(0)) return;
  builder.append({.type = "scale",
                  .inputs = {append_new(builder, "elementwise_mul", {part, sum(g)})},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {{"scale", -1.0}}});
}

/// Of (X, Label, dOut) -> dX = dOut * (sigmoid(X) - Label).
void logit_gradient_gradient(GradientBuilder& builder) {
  const Operator op = builder.op();
  const std::string &x = op.inputs[0], &g = op.inputs[2], ddx = builder.output_gradient(0);
  builder.append({.type = op.type,
                  .inputs = {x, op.inputs[1], ddx},
                  .outputs = {builder.input_gradient(2)},
                  .attributes = op.attributes});
  if (!builder.wants(0)) return;
  const std::string share = append_new(builder, "sigmoid", {x});
  const std::string both = append_new(builder, "elementwise_mul", {g, ddx});
  builder.append({.type = "sigmoid_grad",
                  .inputs = {x, share, both},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

/// Of (X, Label, dOut) -> dX = 2 * dOut * (X - Label), dLabel = -dX.
void square_gradient_gradient(GradientBuilder& builder) {
  const Operator op = builder.op();
  const std::string &x = op.inputs[0], &label = op.inputs[1], &g = op.inputs[2];
  const std::string dd = append_new(builder, "elementwise_sub",
                                    {gradient_or_zeros(builder, 0, x), gradient_or_zeros(builder, 1, label)});
  builder.append({.type = op.type,
                  .inputs = {x, label, dd},
                  .outputs = {builder.input_gradient(2), ""},
                  .attributes = op.attributes});
  const std::string both = append_new(builder, "elementwise_mul", {g, dd});
  for (const std::size_t i : {0U, 1U}) {
    builder.append({.type = "scale",
                    .inputs = {both},
                    .outputs = {builder.input_gradient(i)},
                    .attributes = {{"scale", i == 0 ? 2.0 : -2.0}}});
  }
}

}  // namespace

std::span<const OperatorDefinition> loss_operators() {
  static constexpr OperatorDefinition all[] = {
      {"softmax",
       infer_softmax,
       prepare_softmax,
       softmax_gradient,
       {"(X) -> Out", "exp(x) / sum of exp(x) along an axis", "axis = -1 (the last, the only one there is)"}},
      {"softmax_grad", infer_gradient, prepare_softmax_gradient, softmax_gradient_gradient},
      {"log_softmax",
       infer_softmax,
       prepare_log_softmax,
       softmax_gradient,
       {"(X) -> Out", "log of softmax(x) along an axis", "axis = -1 (the last, the only one there is)"}},
      {"log_softmax_grad", infer_gradient, prepare_log_softmax_gradient, log_softmax_gradient_gradient},
      {"cross_entropy",
       infer_cross_entropy,
       prepare_cross_entropy,
       loss_gradient,
       {"(X [.., C], Label) -> Out [.., 1]",
        "-log of the probability of the label; a label outside of [0, C) is an error naming it",
        "use_softmax = true: X are logits; false: probabilities; soft_label = false: Label int64 [.., 1] "
        "or [..], and the result is [..] too; true: Label float32 [.., C]; ignore_index = -100: that label "
        "gives 0 and no gradient"}},
      {"cross_entropy_grad", infer_gradient, prepare_cross_entropy_gradient, nullptr},
      {"log_loss",
       infer_pointwise,
       prepare_pointwise<LogLoss>,
       loss_gradient,
       {"(P, Label float32) -> Out", "-l * log(p + epsilon) - (1 - l) * log(1 - p + epsilon)",
        "epsilon = 1e-4"}},
      {"log_loss_grad", infer_gradient, prepare_pointwise_gradient<LogLoss>, nullptr},
      {"sigmoid_cross_entropy_with_logits",
       infer_pointwise,
       prepare_pointwise<LogitLoss>,
       loss_gradient,
       {"(X, Label float32) -> Out", "max(x, 0) - x * l + log(1 + exp(-|x|))"}},
      {"sigmoid_cross_entropy_with_logits_grad", infer_gradient, prepare_pointwise_gradient<LogitLoss>,
       logit_gradient_gradient},
      {"square_error_cost",
       infer_pointwise,
       prepare_pointwise<SquareError>,
       square_error_gradient,
       {"(X, Label float32) -> Out", "(x - l) squared; gradients for both"}},
      {"square_error_cost_grad", infer_gradient, prepare_pointwise_gradient<SquareError>,
       square_gradient_gradient},
  };
  return all;
}

}  // namespace fleetrun::engine
