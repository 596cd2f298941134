// More operators over one float32 tensor, value by value: (X) -> Out of the same shape, offsets kept.

#include <cmath>
#include <limits>
#include <numbers>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/unary_formula.h"

namespace fleetrun::engine {

namespace {

float logistic(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

/// x cut to [0, most]; NaN stays.
float cut(float x, float most) {
  const float low = x < 0.0f ? 0.0f : x;
  return low > most ? most : low;
}

struct Sin {
  static float value(float x, Coefficients) { return std::sin(x); }
  static float slope(float x, float, Coefficients) { return std::cos(x); }
};
struct Cos {
  static float value(float x, Coefficients) { return std::cos(x); }
  static float slope(float x, float, Coefficients) { return -std::sin(x); }
};
struct Tan {
  static float value(float x, Coefficients) { return std::tan(x); }
  static float slope(float, float y, Coefficients) { return 1.0f + y * y; }
};
struct Asin {
  static float value(float x, Coefficients) { return std::asin(x); }
  static float slope(float x, float, Coefficients) { return 1.0f / std::sqrt(1.0f - x * x); }
};
struct Acos {
  static float value(float x, Coefficients) { return std::acos(x); }
  static float slope(float x, float, Coefficients c) { return -Asin::slope(x, 0.0f, c); }
};
struct Atan {
  static float value(float x, Coefficients) { return std::atan(x); }
  static float slope(float x, float, Coefficients) { return 1.0f / (1.0f + x * x); }
};
struct Erf {
  static float value(float x, Coefficients) { return std::erf(x); }
  static float slope(float x, float, Coefficients) {
    return 2.0f * std::numbers::inv_sqrtpi_v<float> * std::exp(-x * x);
  }
};
/// The inverse of erf by Newton's method, from an approximation. Source: Winitzki, 2008.
struct ErfInv {
  static float value(float x, Coefficients) {
    if (std::fabs(x) == 1.0f) return x * std::numeric_limits<float>::infinity();
    if (!(std::fabs(x) < 1.0f)) return std::numeric_limits<float>::quiet_NaN();
    constexpr double kA = 0.147;
    const double logs = std::log1p(-static_cast<double>(x) * x);
    const double part = 2.0 / (std::numbers::pi * kA) + logs / 2.0;
    double y = std::copysign(std::sqrt(std::sqrt(part * part - logs / kA) - part), x);
    for (int i = 0; i < 3; ++i) {
      y -= (std::erf(y) - x) / (2.0 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    }
    return static_cast<float>(y);
  }
  static float slope(float, float y, Coefficients) {
    return std::exp(y * y) / (2.0f * std::numbers::inv_sqrtpi_v<float>);
  }
};
/// The slope of log(gamma(x)), by its recurrence up to where the series is exact.
struct Digamma {
  static double of(double x) {
    if (x <= 0.0 && std::floor(x) == x) return std::numeric_limits<double>::quiet_NaN();
    if (x < 0.0) return of(1.0 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
    double sum = 0.0;
    for (; x < 10.0; ++x) sum -= 1.0 / x;
    const double s = 1.0 / (x * x);
    return sum + std::log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s / 240)));
  }
  static double slope_of(double x) {
    if (x <= 0.0) {
      const double sine = std::sin(std::numbers::pi * x);
      return std::numbers::pi * std::numbers::pi / (sine * sine) - slope_of(1.0 - x);
    }
    double sum = 0.0;
    for (; x < 10.0; ++x) sum += 1.0 / (x * x);
    const double s = 1.0 / (x * x);
    return sum + 1.0 / x + s / 2 + s / x * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s / 30)));
  }
  static float value(float x, Coefficients) { return static_cast<float>(of(x)); }
  static float slope(float x, float, Coefficients) { return static_cast<float>(slope_of(x)); }
};
struct LogGamma {
  static float value(float x, Coefficients) {
    int sign = 0;  // std::lgamma writes it to a variable of all threads
    return lgammaf_r(x, &sign);
  }
  static float slope(float x, float, Coefficients) { return static_cast<float>(Digamma::of(x)); }
};
struct Expm1 {
  static float value(float x, Coefficients) { return std::expm1(x); }
  static float slope(float, float y, Coefficients) { return y + 1.0f; }
};
struct Log2 {
  static float value(float x, Coefficients) { return std::log2(x); }
  static float slope(float x, float, Coefficients) { return std::numbers::log2e_v<float> / x; }
};
struct Log10 {
  static float value(float x, Coefficients) { return std::log10(x); }
  static float slope(float x, float, Coefficients) { return std::numbers::log10e_v<float> / x; }
};

struct Floor {
  static float value(float x, Coefficients) { return std::floor(x); }
  static float slope(float, float, Coefficients) { return 0.0f; }
};
struct Ceil {
  static float value(float x, Coefficients) { return std::ceil(x); }
  static float slope(float, float, Coefficients) { return 0.0f; }
};
struct Round {
  static float value(float x, Coefficients) { return std::round(x); }
  static float slope(float, float, Coefficients) { return 0.0f; }
};
struct Sign {
  static float value(float x, Coefficients) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x); }
  static float slope(float, float, Coefficients) { return 0.0f; }
};

struct Softplus {
  static Coefficients coefficients(const Operator& op) {
    return {number(op, "beta", 1.0), number(op, "threshold", 20.0)};
  }
  static float value(float x, Coefficients c) {
    const float scaled = c.a * x;
    return scaled > c.b ? x : std::log1p(std::exp(scaled)) / c.a;
  }
  static float slope(float x, float, Coefficients c) { return c.a * x > c.b ? 1.0f : logistic(c.a * x); }
};
struct LogSigmoid {
  static float value(float x, Coefficients) {
    return std::fmin(x, 0.0f) - std::log1p(std::exp(-std::fabs(x)));
  }
  static float slope(float x, float, Coefficients) { return logistic(-x); }
};
struct Silu {
  static float value(float x, Coefficients) { return x * logistic(x); }
  static float slope(float x, float, Coefficients) {
    const float s = logistic(x);
    return s * (1.0f + x * (1.0f - s));
  }
};
struct Mish {
  static float inner(float x) { return std::tanh(Softplus::value(x, {1.0f, 20.0f})); }
  static float value(float x, Coefficients) { return x * inner(x); }
  static float slope(float x, float, Coefficients) {
    const float t = inner(x);
    return t + x * (1.0f - t * t) * logistic(x);
  }
};
struct Relu6 {
  static float value(float x, Coefficients) { return cut(x, 6.0f); }
  static float slope(float x, float, Coefficients) { return x > 0.0f && x < 6.0f ? 1.0f : 0.0f; }
};
struct HardSwish {
  static float value(float x, Coefficients c) { return x * Relu6::value(x + 3.0f, c) / 6.0f; }
  static float slope(float x, float, Coefficients) {
    if (x <= -3.0f) return 0.0f;
    return x < 3.0f ? x / 3.0f + 0.5f : 1.0f;
  }
};
struct HardSigmoid {
  static Coefficients coefficients(const Operator& op) {
    return {number(op, "slope", 1.0 / 6.0), number(op, "offset", 0.5)};
  }
  static float value(float x, Coefficients c) { return cut(c.a * x + c.b, 1.0f); }
  static float slope(float, float y, Coefficients c) { return y > 0.0f && y < 1.0f ? c.a : 0.0f; }
};
struct HardShrink {
  static Coefficients coefficients(const Operator& op) { return {number(op, "threshold", 0.5), 0.0f}; }
  static float value(float x, Coefficients c) { return std::fabs(x) > c.a ? x : x * 0.0f; }
  static float slope(float x, float, Coefficients c) { return std::fabs(x) > c.a ? 1.0f : 0.0f; }
};
struct Elu {
  static Coefficients coefficients(const Operator& op) { return {number(op, "alpha", 1.0), 0.0f}; }
  static float value(float x, Coefficients c) { return x > 0.0f ? x : c.a * std::expm1(x); }
  static float slope(float x, float y, Coefficients c) { return x > 0.0f ? 1.0f : y + c.a; }
};
struct Selu {
  static Coefficients coefficients(const Operator& op) {
    return {number(op, "scale", 1.0507009873554805), number(op, "alpha", 1.6732632423543772)};
  }
  static float value(float x, Coefficients c) { return c.a * (x > 0.0f ? x : c.b * std::expm1(x)); }
  static float slope(float x, float y, Coefficients c) { return x > 0.0f ? c.a : y + c.a * c.b; }
};
struct Gelu {
  static Coefficients coefficients(const Operator& op) {
    return {attribute(op, "approximate", false) ? 1.0f : 0.0f, 0.0f};
  }
  static constexpr float kFactor = 0.7978845608028654f;  // sqrt(2 / pi)
  static constexpr float kCubic = 0.044715f;
  static float value(float x, Coefficients c) {
    if (c.a == 0.0f) return 0.5f * x * (1.0f + std::erf(x * std::numbers::sqrt2_v<float> / 2.0f));
    return 0.5f * x * (1.0f + std::tanh(kFactor * (x + kCubic * x * x * x)));
  }
  static float slope(float x, float, Coefficients c) {
    if (c.a == 0.0f) {
      const float cumulative = 0.5f * (1.0f + std::erf(x * std::numbers::sqrt2_v<float> / 2.0f));
      return cumulative + x * 0.5f * kFactor * std::exp(-0.5f * x * x);
    }
    const float t = std::tanh(kFactor * (x + kCubic * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kFactor * (1.0f + 3.0f * kCubic * x * x);
  }
};

}  // namespace

std::span<const OperatorDefinition> activation_operators() {
  static constexpr OperatorDefinition all[] = {
      unary<Sin>("sin", "sine"),
      gradient_of<Sin>("sin_grad"),
      unary<Cos>("cos", "cosine"),
      gradient_of<Cos>("cos_grad"),
      unary<Tan>("tan", "tangent"),
      gradient_of<Tan>("tan_grad"),
      unary<Asin>("asin", "inverse of sine"),
      gradient_of<Asin>("asin_grad"),
      unary<Acos>("acos", "inverse of cosine"),
      gradient_of<Acos>("acos_grad"),
      unary<Atan>("atan", "inverse of tangent"),
      gradient_of<Atan>("atan_grad"),
      unary<Erf>("erf", "error function"),
      gradient_of<Erf>("erf_grad"),
      unary<ErfInv>("erfinv", "inverse of the error function"),
      gradient_of<ErfInv>("erfinv_grad"),
      unary<LogGamma>("lgamma", "logarithm of the gamma function"),
      gradient_of<LogGamma>("lgamma_grad"),
      unary<Digamma>("digamma", "slope of lgamma"),
      gradient_of<Digamma>("digamma_grad"),
      unary<Expm1>("expm1", "exp(x) - 1"),
      gradient_of<Expm1>("expm1_grad"),
      unary<Log2>("log2", "logarithm to base 2"),
      gradient_of<Log2>("log2_grad"),
      unary<Log10>("log10", "logarithm to base 10"),
      gradient_of<Log10>("log10_grad"),
      unary<Floor>("floor", "rounded down; gradient 0"),
      gradient_of<Floor>("floor_grad"),
      unary<Ceil>("ceil", "rounded up; gradient 0"),
      gradient_of<Ceil>("ceil_grad"),
      unary<Round>("round", "rounded to the nearest, halves away from 0; gradient 0"),
      gradient_of<Round>("round_grad"),
      unary<Sign>("sign", "-1, 0 or 1; gradient 0"),
      gradient_of<Sign>("sign_grad"),
      unary<Softplus>("softplus", "log(1 + exp(beta * x)) / beta",
                      "beta = 1; threshold = 20: x itself where beta * x is above"),
      gradient_of<Softplus>("softplus_grad"),
      unary<LogSigmoid>("logsigmoid", "logarithm of sigmoid"),
      gradient_of<LogSigmoid>("logsigmoid_grad"),
      unary<Silu>("silu", "x * sigmoid(x), also called swish"),
      gradient_of<Silu>("silu_grad"),
      unary<Mish>("mish", "x * tanh(softplus(x))"),
      gradient_of<Mish>("mish_grad"),
      unary<Relu6>("relu6", "x cut to [0, 6]"),
      gradient_of<Relu6>("relu6_grad"),
      unary<HardSwish>("hard_swish", "x * relu6(x + 3) / 6"),
      gradient_of<HardSwish>("hard_swish_grad"),
      unary<HardSigmoid>("hard_sigmoid", "slope * x + offset cut to [0, 1]", "slope = 1/6; offset = 0.5"),
      gradient_of<HardSigmoid>("hard_sigmoid_grad"),
      unary<HardShrink>("hard_shrink", "x, and 0 within +-threshold", "threshold = 0.5"),
      gradient_of<HardShrink>("hard_shrink_grad"),
      unary<Elu>("elu", "x where it is positive, else alpha * (exp(x) - 1)", "alpha = 1"),
      gradient_of<Elu>("elu_grad"),
      unary<Selu>("selu", "scale * elu(x)", "scale = 1.0507...; alpha = 1.6733..."),
      gradient_of<Selu>("selu_grad"),
      unary<Gelu>("gelu", "x times the normal distribution function of x",
                  "approximate = false: true takes tanh instead of erf"),
      gradient_of<Gelu>("gelu_grad"),
  };
  return all;
}

}  // namespace fleetrun::engine
