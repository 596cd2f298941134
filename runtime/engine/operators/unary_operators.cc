// Operators over one float32 tensor, value by value: (X) -> Out of the same shape, offsets kept.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/draws.h"
#include "runtime/engine/operators/typed.h"
#include "runtime/engine/operators/unary_formula.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

// f(x) and f'(x) given x and y = f(x).
struct Relu {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return x > 0.0f ? x : 0.0f; }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return y > 0.0f ? 1.0f : 0.0f; }
};
struct LeakyRelu {
  static Coefficients coefficients(const Operator& op) { return {number(op, "alpha", 0.01), 0.0f}; }
  [[gnu::always_inline]] static float value(float x, Coefficients c) { return x < 0.0f ? c.a * x : x; }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients c) { return x < 0.0f ? c.a : 1.0f; }
};
struct Sigmoid {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return vector_math::sigmoid(x); }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return y * (1.0f - y); }
};
struct Tanh {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return vector_math::tanh(x); }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return 1.0f - y * y; }
};
struct Log {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return vector_math::log(x); }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients) { return 1.0f / x; }
};
struct Log1p {
  static float value(float x, Coefficients) { return std::log1p(x); }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients) { return 1.0f / (1.0f + x); }
};
struct Exp {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return vector_math::exp(x); }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return y; }
};
struct Square {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return x * x; }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients) { return 2.0f * x; }
};
struct Sqrt {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return std::sqrt(x); }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return 0.5f / y; }
};
struct Rsqrt {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return 1.0f / std::sqrt(x); }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return -0.5f * y * y * y; }
};
struct Reciprocal {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return 1.0f / x; }
  [[gnu::always_inline]] static float slope(float, float y, Coefficients) { return -y * y; }
};
struct Abs {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return x < 0.0f ? -x : x; }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients) {
    return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f);
  }
};
struct Softsign {
  [[gnu::always_inline]] static float value(float x, Coefficients) { return x / (1.0f + Abs::value(x, {})); }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients) {
    const float d = 1.0f + Abs::value(x, {});
    return 1.0f / (d * d);
  }
};
struct Pow {
  static Coefficients coefficients(const Operator& op) { return {number(op, "factor", 1.0), 0.0f}; }
  static float value(float x, Coefficients c) { return std::pow(x, c.a); }
  static float slope(float x, float, Coefficients c) { return c.a * std::pow(x, c.a - 1.0f); }
};
struct Scale {
  static Coefficients coefficients(const Operator& op) {
    const float scale = number(op, "scale", 1.0), bias = number(op, "bias", 0.0);
    return {scale, attribute(op, "bias_after_scale", true) ? bias : scale * bias};
  }
  [[gnu::always_inline]] static float value(float x, Coefficients c) { return c.a * x + c.b; }
  [[gnu::always_inline]] static float slope(float, float, Coefficients c) { return c.a; }
};
struct Clip {
  static Coefficients coefficients(const Operator& op) {
    return {number(op, "min", -HUGE_VAL), number(op, "max", HUGE_VAL)};
  }
  [[gnu::always_inline]] static float value(float x, Coefficients c) {
    const float low = x < c.a ? c.a : x;
    return low > c.b ? c.b : low;
  }
  [[gnu::always_inline]] static float slope(float x, float, Coefficients c) {
    return (x > c.a ? 1.0f : 0.0f) * (x < c.b ? 1.0f : 0.0f);
  }
};

}  // namespace

void infer_unary(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const std::string& type = inference.op().type;
  const DataType of = inference.input(0).type;
  const bool any_number = (type == "scale" || type == "abs") && of != DataType::boolean;
  if (!any_number) inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  inference.set_output(0, x.type, x.shape, x.lod_level);
}

void unary_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = op.type + "_grad",
                  .inputs = {op.inputs[0], op.outputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

namespace {

/// Of the types beside float32, which is the fast one: out = f(x), f being a function of the value.
template <class F>
void map_numbers(const Tensor& x, Tensor& out, const F& f) {
  out.resize(x.type(), x.shape());
  out.offsets = x.offsets;
  with_type(x.type(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const auto from = x.values<T>();
      std::transform(from.begin(), from.end(), out.values<T>().begin(), f);
    }
  });
}

Kernel prepare_scale(const Preparation& p) {
  const double scale = attribute(p.op, "scale", 1.0), bias = attribute(p.op, "bias", 0.0);
  return [scale, added = attribute(p.op, "bias_after_scale", true) ? bias : scale * bias, x = p.input(0),
          out = p.output(0), floats = prepare_unary<Scale>(p)] {
    if (x->type() == DataType::float32) return floats();
    map_numbers(*x, *out,
                [=]<class T>(T value) { return static_cast<T>(scale * static_cast<double>(value) + added); });
  };
}

/// (X, Out, dOut) -> dX of F, also for float64.
template <class F>
Kernel prepare_wide_gradient(const Preparation& p) {
  return [x = p.input(0), g = p.input(2), dx = p.output(0), c = coefficients_of<F>(p.op),
          floats = prepare_unary_gradient<F>(p)] {
    if (x->type() != DataType::float64) return floats();
    dx->resize(DataType::float64, x->shape());
    const auto from = x->values<double>(), gradient = g->values<double>();
    const auto to = dx->values<double>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = gradient[i] * static_cast<double>(F::slope(static_cast<float>(from[i]), 0.0f, c));
    }
  };
}

Kernel prepare_abs(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), floats = prepare_unary<Abs>(p)] {
    if (x->type() == DataType::float32) return floats();
    map_numbers(*x, *out, []<class T>(T value) { return value < T{} ? static_cast<T>(T{} - value) : value; });
  };
}

void infer_dropout(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(2, 2);
  inference.expect_type(0, DataType::float32);
  const double p = attribute(inference.op(), "dropout_prob", 0.5);
  if (p < 0.0 || p > 1.0) inference.fail("dropout_prob " + std::to_string(p) + " is not between 0 and 1");
  const Variable x = inference.input(0);
  inference.set_output(0, x.type, x.shape, x.lod_level);
  inference.set_output(1, x.type, x.shape, x.lod_level);
}

Kernel prepare_dropout(const Preparation& p) {
  const auto drop = static_cast<float>(attribute(p.op, "dropout_prob", 0.5));
  const bool upscale = attribute(p.op, "mode", std::string("upscale_in_train")) == "upscale_in_train";
  const bool test = attribute(p.op, "is_test", false);
  return [x = p.input(0), out = p.output(0), mask = p.output(1), drop, upscale, test,
          draws = Draws(p)]() mutable {
    draws.begin_run();
    out->resize(DataType::float32, x->shape());
    out->offsets = x->offsets;
    mask->resize(DataType::float32, x->shape());
    const auto from = x->values<float>();
    const auto to = out->values<float>();
    const auto factor = mask->values<float>();
    const float kept = upscale ? (drop < 1.0f ? 1.0f / (1.0f - drop) : 0.0f) : 1.0f;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (test) {
        factor[i] = upscale ? 1.0f : 1.0f - drop;
      } else {
        factor[i] = draws.uniform() < drop ? 0.0f : kept;
      }
      to[i] = from[i] * factor[i];
    }
  };
}

/// (Mask, dOut) -> dX
Kernel prepare_dropout_gradient(const Preparation& p) {
  return [mask = p.input(0), g = p.input(1), dx = p.output(0)] {
    dx->resize(DataType::float32, g->shape());
    const auto factor = mask->values<float>();
    const auto from = g->values<float>();
    const auto to = dx->values<float>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] * factor[i];
  };
}

void dropout_gradient(GradientBuilder& builder) {
  builder.append({.type = "dropout_grad",
                  .inputs = {builder.op().outputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

void infer_cast(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  inference.set_output(0, parse_data_type(attribute<std::string>(inference.op(), "dtype")), x.shape,
                       x.lod_level);
}

void convert(const Tensor& x, DataType type, Tensor& out) {
  out.resize(type, x.shape());
  out.offsets = x.offsets;
  with_type(x.type(), [&]<class From>(From) {
    with_type(type, [&]<class To>(To) {
      const auto from = x.values<From>();
      const auto to = out.values<To>();
      for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<To>(from[i]);
    });
  });
}

Kernel prepare_cast(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), type = parse_data_type(attribute<std::string>(p.op, "dtype"))] {
    convert(*x, type, *out);
  };
}

/// (X, dOut) -> dX
Kernel prepare_cast_gradient(const Preparation& p) {
  return [x = p.input(0), g = p.input(1), dx = p.output(0)] { convert(*g, x->type(), *dx); };
}

void cast_gradient(GradientBuilder& builder) {
  builder.append({.type = "cast_grad",
                  .inputs = {builder.op().inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

void infer_assign(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable x = inference.input(0);
  inference.set_output(0, x.type, x.shape, x.lod_level);
}

Kernel prepare_assign(const Preparation& p) {
  return [x = p.input(0), out = p.output(0)] {
    if (x == out) return;
    out->resize(x->type(), x->shape());
    out->offsets = x->offsets;
    if (x->bytes() > 0) std::memcpy(out->data(), x->data(), x->bytes());
  };
}

void assign_gradient(GradientBuilder& builder) {
  builder.append({.type = "assign",
                  .inputs = {builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

DataType like_type(const Operator& op, DataType x) {
  const std::string name = attribute(op, "dtype", std::string());
  return name.empty() ? x : parse_data_type(name);
}

void infer_fill_any_like(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable x = inference.input(0);
  inference.set_output(0, like_type(inference.op(), x.type), x.shape, x.lod_level);
}

Kernel prepare_fill_any_like(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), value = attribute(p.op, "value", 0.0)] {
    out->resize(like_type(*op, x->type()), x->shape());
    out->offsets = x->offsets;
    with_type(out->type(), [&]<class T>(T) {
      const auto to = out->values<T>();
      std::fill(to.begin(), to.end(), static_cast<T>(value));
    });
  };
}

}  // namespace

std::span<const OperatorDefinition> unary_operators() {
  static constexpr OperatorDefinition all[] = {
      unary<Relu>("relu", "the greater of x and 0"),
      gradient_of<Relu>("relu_grad"),
      unary<LeakyRelu>("leaky_relu", "x where it is positive, else alpha times x", "alpha = 0.01"),
      gradient_of<LeakyRelu>("leaky_relu_grad"),
      unary<Sigmoid>("sigmoid", "1 / (1 + exp(-x))"),
      gradient_of<Sigmoid>("sigmoid_grad"),
      unary<Tanh>("tanh", "hyperbolic tangent"),
      gradient_of<Tanh>("tanh_grad"),
      unary<Log>("log", "natural logarithm"),
      gradient_of<Log>("log_grad"),
      unary<Log1p>("log1p", "natural logarithm of 1 + x"),
      gradient_of<Log1p>("log1p_grad"),
      unary<Exp>("exp", "e to the power of x"),
      gradient_of<Exp>("exp_grad"),
      unary<Square>("square", "x squared"),
      gradient_of<Square>("square_grad"),
      unary<Sqrt>("sqrt", "square root"),
      gradient_of<Sqrt>("sqrt_grad"),
      unary<Rsqrt>("rsqrt", "1 / square root"),
      gradient_of<Rsqrt>("rsqrt_grad"),
      unary<Reciprocal>("reciprocal", "1 / x"),
      gradient_of<Reciprocal>("reciprocal_grad"),
      {"abs",
       infer_unary,
       prepare_abs,
       unary_gradient,
       {"(X) -> Out", "absolute value; also of float64, int64 and int32"}},
      {"abs_grad", infer_gradient, prepare_wide_gradient<Abs>, nullptr},
      unary<Softsign>("softsign", "x / (1 + |x|)"),
      gradient_of<Softsign>("softsign_grad"),
      unary<Pow>("pow", "x to the power of a constant", "factor = 1"),
      gradient_of<Pow>("pow_grad"),
      unary<Clip>("clip", "x cut to a range; the gradient is 0 outside and at both ends", "min; max"),
      gradient_of<Clip>("clip_grad"),
      {"scale",
       infer_unary,
       prepare_scale,
       unary_gradient,
       {"(X) -> Out", "scale * x + bias, or scale * (x + bias); also of float64, int64 and int32",
        "scale = 1; bias = 0; bias_after_scale = true"}},
      {"scale_grad", infer_gradient, prepare_wide_gradient<Scale>, nullptr},
      {"dropout",
       infer_dropout,
       prepare_dropout,
       dropout_gradient,
       {"(X) -> Out, Mask", "some values replaced by 0",
        "dropout_prob (p) = 0.5; is_test = false; mode: `upscale_in_train` (kept values / (1 - p)) or "
        "`downscale_in_infer` (kept as they are, times 1 - p in a test); seed = 0: another one draws the "
        "same "
        "in every run"}},
      {"dropout_grad", infer_gradient, prepare_dropout_gradient, nullptr},
      {"cast",
       infer_cast,
       prepare_cast,
       cast_gradient,
       {"(X) -> Out", "the values as another type; gradient between floating-point types only", "dtype"}},
      {"cast_grad", infer_gradient, prepare_cast_gradient, nullptr},
      {"assign", infer_assign, prepare_assign, assign_gradient, {"(X) -> Out", "a copy, of any type"}},
      {"fill_any_like",
       infer_fill_any_like,
       prepare_fill_any_like,
       nullptr,
       {"(X) -> Out", "a tensor of X's shape with one value", "value = 0; dtype = X's"}},
  };
  return all;
}

}  // namespace fleetrun::engine
