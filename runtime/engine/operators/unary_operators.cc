// Operators over one tensor of floating point, value by value: (X) -> Out of the same shape, offsets kept.

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
  static constexpr bool is_straight = true;
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return x > T{} ? x : T{};
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return y > T{} ? T{1} : T{};
  }
};
struct LeakyRelu {
  static constexpr bool is_straight = true;
  static Coefficients<double> coefficients(const Operator& op) { return {number(op, "alpha", 0.01), 0.0}; }
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T> c) {
    return x < T{} ? c.a * x : x;
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T> c) {
    return x < T{} ? c.a : T{1};
  }
};
struct Sigmoid {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return vector_math::sigmoid(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return y * (T{1} - y);
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return y * (T{1} - y) * (T{1} - T{2} * y);
  }
};
struct Tanh {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return vector_math::tanh(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return T{1} - y * y;
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return T{-2} * y * (T{1} - y * y);
  }
};
struct Log {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return vector_math::log(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T>) {
    return T{1} / x;
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return T{-1} / (x * x);
  }
};
struct Log1p {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::log1p(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T>) {
    return T{1} / (T{1} + x);
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return T{-1} / ((T{1} + x) * (T{1} + x));
  }
};
struct Exp {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return vector_math::exp(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return y;
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return y;
  }
};
struct Square {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return x * x;
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T>) {
    return T{2} * x;
  }
  template <class T>
  static T curve(T, T, Coefficients<T>) {
    return T{2};
  }
};
struct Sqrt {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return std::sqrt(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return T{0.5} / y;
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return T{-0.25} / (y * y * y);
  }
};
struct Rsqrt {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return T{1} / std::sqrt(x);
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return -T{0.5} * y * y * y;
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return T{0.75} * y * y * y * y * y;
  }
};
struct Reciprocal {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return T{1} / x;
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T y, Coefficients<T>) {
    return -y * y;
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return T{2} * y * y * y;
  }
};
struct Abs {
  static constexpr bool is_straight = true;
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return x < T{} ? -x : x;
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T>) {
    return x > T{} ? T{1} : (x < T{} ? -T{1} : T{});
  }
};
struct Softsign {
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T>) {
    return x / (T{1} + Abs::value(x, {}));
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T>) {
    const T d = T{1} + Abs::value(x, {});
    return T{1} / (d * d);
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    const T d = T{1} + Abs::value(x, {});
    return T{-2} * Abs::slope(x, T{}, {}) / (d * d * d);
  }
};
struct Pow {
  static Coefficients<double> coefficients(const Operator& op) { return {number(op, "factor", 1.0), 0.0}; }
  template <class T>
  static T value(T x, Coefficients<T> c) {
    return std::pow(x, c.a);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T> c) {
    return c.a * std::pow(x, c.a - T{1});
  }
  template <class T>
  static T curve(T x, T, Coefficients<T> c) {
    const T factor = c.a * (c.a - T{1});
    return factor == T{} ? T{} : factor * std::pow(x, c.a - T{2});
  }
};
struct Scale {
  static constexpr bool is_straight = true;
  static Coefficients<double> coefficients(const Operator& op) {
    const double scale = number(op, "scale", 1.0), bias = number(op, "bias", 0.0);
    return {scale, attribute(op, "bias_after_scale", true) ? bias : scale * bias};
  }
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T> c) {
    return c.a * x + c.b;
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T, T, Coefficients<T> c) {
    return c.a;
  }
};
struct Clip {
  static constexpr bool is_straight = true;
  static Coefficients<double> coefficients(const Operator& op) {
    return {number(op, "min", -HUGE_VAL), number(op, "max", HUGE_VAL)};
  }
  template <class T>
  [[gnu::always_inline]] static T value(T x, Coefficients<T> c) {
    const T low = x < c.a ? c.a : x;
    return low > c.b ? c.b : low;
  }
  template <class T>
  [[gnu::always_inline]] static T slope(T x, T, Coefficients<T> c) {
    return (x > c.a ? T{1} : T{}) * (x < c.b ? T{1} : T{});
  }
};

}  // namespace

void infer_unary(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const std::string& type = inference.op().type;
  const DataType of = inference.input(0).type;
  const bool any_number = (type == "scale" || type == "abs") && of != DataType::boolean;
  if (!any_number && of != DataType::float64) inference.expect_type(0, DataType::float32);
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

void straight_gradient(GradientBuilder& builder) {
  const Operator op = builder.op();
  builder.append({.type = op.type,
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(2)},
                  .attributes = op.attributes});
}

void curved_gradient(GradientBuilder& builder) {
  const Operator op = builder.op();
  straight_gradient(builder);
  builder.append({.type = op.type + "_grad",
                  .inputs = {op.inputs[0], op.inputs[1], op.inputs[2], builder.output_gradient(0)},
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

/// Of (Mask, dOut) -> dX.
void dropout_gradient_gradient(GradientBuilder& builder) {
  builder.append({.type = "dropout_grad",
                  .inputs = {builder.op().inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(1)},
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

/// Of (X, dOut) -> dX.
void cast_gradient_gradient(GradientBuilder& builder) {
  builder.append({.type = "cast_grad",
                  .inputs = {builder.op().inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(1)},
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
      curve_of<Sigmoid>("sigmoid_grad_grad"),
      unary<Tanh>("tanh", "hyperbolic tangent"),
      gradient_of<Tanh>("tanh_grad"),
      curve_of<Tanh>("tanh_grad_grad"),
      unary<Log>("log", "natural logarithm"),
      gradient_of<Log>("log_grad"),
      curve_of<Log>("log_grad_grad"),
      unary<Log1p>("log1p", "natural logarithm of 1 + x"),
      gradient_of<Log1p>("log1p_grad"),
      curve_of<Log1p>("log1p_grad_grad"),
      unary<Exp>("exp", "e to the power of x"),
      gradient_of<Exp>("exp_grad"),
      curve_of<Exp>("exp_grad_grad"),
      unary<Square>("square", "x squared"),
      gradient_of<Square>("square_grad"),
      curve_of<Square>("square_grad_grad"),
      unary<Sqrt>("sqrt", "square root"),
      gradient_of<Sqrt>("sqrt_grad"),
      curve_of<Sqrt>("sqrt_grad_grad"),
      unary<Rsqrt>("rsqrt", "1 / square root"),
      gradient_of<Rsqrt>("rsqrt_grad"),
      curve_of<Rsqrt>("rsqrt_grad_grad"),
      unary<Reciprocal>("reciprocal", "1 / x"),
      gradient_of<Reciprocal>("reciprocal_grad"),
      curve_of<Reciprocal>("reciprocal_grad_grad"),
      {"abs",
       infer_unary,
       prepare_abs,
       unary_gradient,
       {"(X) -> Out", "absolute value; also of float64, int64 and int32"}},
      gradient_of<Abs>("abs_grad"),
      unary<Softsign>("softsign", "x / (1 + |x|)"),
      gradient_of<Softsign>("softsign_grad"),
      curve_of<Softsign>("softsign_grad_grad"),
      unary<Pow>("pow", "x to the power of a constant", "factor = 1"),
      gradient_of<Pow>("pow_grad"),
      curve_of<Pow>("pow_grad_grad"),
      unary<Clip>("clip", "x cut to a range; the gradient is 0 outside and at both ends", "min; max"),
      gradient_of<Clip>("clip_grad"),
      {"scale",
       infer_unary,
       prepare_scale,
       unary_gradient,
       {"(X) -> Out", "scale * x + bias, or scale * (x + bias); also of float64, int64 and int32",
        "scale = 1; bias = 0; bias_after_scale = true"}},
      gradient_of<Scale>("scale_grad"),
      {"dropout",
       infer_dropout,
       prepare_dropout,
       dropout_gradient,
       {"(X) -> Out, Mask", "some values replaced by 0",
        "dropout_prob (p) = 0.5; is_test = false; mode: `upscale_in_train` (kept values / (1 - p)) or "
        "`downscale_in_infer` (kept as they are, times 1 - p in a test); seed = 0: another one draws the "
        "same "
        "in every run"}},
      {"dropout_grad", infer_gradient, prepare_dropout_gradient, dropout_gradient_gradient},
      {"cast",
       infer_cast,
       prepare_cast,
       cast_gradient,
       {"(X) -> Out", "the values as another type; gradient between floating-point types only", "dtype"}},
      {"cast_grad", infer_gradient, prepare_cast_gradient, cast_gradient_gradient},
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
