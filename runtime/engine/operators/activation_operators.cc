// More operators over one float32 tensor, value by value: (X) -> Out of the same shape, offsets kept.

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/unary_formula.h"

namespace fleetrun::engine {

namespace {

template <class T>
T logistic(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

/// x cut to [0, most]; NaN stays.
template <class T>
T cut(T x, T most) {
  const T low = x < T{} ? T{} : x;
  return low > most ? most : low;
}

struct Sin {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::sin(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return std::cos(x);
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return -y;
  }
};
struct Cos {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::cos(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return -std::sin(x);
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return -y;
  }
};
struct Tan {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::tan(x);
  }
  template <class T>
  static T slope(T, T y, Coefficients<T>) {
    return T{1} + y * y;
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return T{2} * y * (T{1} + y * y);
  }
};
struct Asin {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::asin(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return T{1} / std::sqrt(T{1} - x * x);
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    const T rest = T{1} - x * x;
    return x / (rest * std::sqrt(rest));
  }
};
struct Acos {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::acos(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T> c) {
    return -Asin::slope(x, T{}, c);
  }
  template <class T>
  static T curve(T x, T y, Coefficients<T> c) {
    return -Asin::curve(x, y, c);
  }
};
struct Atan {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::atan(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return T{1} / (T{1} + x * x);
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return T{-2} * x / ((T{1} + x * x) * (T{1} + x * x));
  }
};
struct Erf {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::erf(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return T{2} * std::numbers::inv_sqrtpi_v<T> * std::exp(-x * x);
  }
  template <class T>
  static T curve(T x, T y, Coefficients<T> c) {
    return T{-2} * x * slope(x, y, c);
  }
};
/// The inverse of erf by Newton's method, from an approximation. Source: Winitzki, 2008.
struct ErfInv {
  template <class T>
  static T value(T x, Coefficients<T>) {
    if (std::fabs(x) == T{1}) return x * std::numeric_limits<T>::infinity();
    if (!(std::fabs(x) < T{1})) return std::numeric_limits<T>::quiet_NaN();
    constexpr double kA = 0.147;
    const double logs = std::log1p(-static_cast<double>(x) * x);
    const double part = 2.0 / (std::numbers::pi * kA) + logs / 2.0;
    double y = std::copysign(std::sqrt(std::sqrt(part * part - logs / kA) - part), x);
    for (int i = 0; i < 4; ++i) {
      y -= (std::erf(y) - x) / (2.0 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    }
    return static_cast<T>(y);
  }
  template <class T>
  static T slope(T, T y, Coefficients<T>) {
    return std::exp(y * y) / (T{2} * std::numbers::inv_sqrtpi_v<T>);
  }
  template <class T>
  static T curve(T x, T y, Coefficients<T> c) {
    return T{2} * y * slope(x, y, c) * slope(x, y, c);
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
  template <class T>
  static T value(T x, Coefficients<T>) {
    return static_cast<T>(of(x));
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return static_cast<T>(slope_of(x));
  }
};
struct LogGamma {
  template <class T>
  static T value(T x, Coefficients<T>) {
    int sign = 0;  // std::lgamma writes it to a variable of all threads
    if constexpr (std::is_same_v<T, float>) return lgammaf_r(x, &sign);
    return static_cast<T>(lgamma_r(static_cast<double>(x), &sign));
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return static_cast<T>(Digamma::of(x));
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return static_cast<T>(Digamma::slope_of(x));
  }
};
struct Expm1 {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::expm1(x);
  }
  template <class T>
  static T slope(T, T y, Coefficients<T>) {
    return y + T{1};
  }
  template <class T>
  static T curve(T, T y, Coefficients<T>) {
    return y + T{1};
  }
};
struct Log2 {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::log2(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return std::numbers::log2e_v<T> / x;
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return -std::numbers::log2e_v<T> / (x * x);
  }
};
struct Log10 {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::log10(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return std::numbers::log10e_v<T> / x;
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return -std::numbers::log10e_v<T> / (x * x);
  }
};

struct Floor {
  static constexpr bool is_straight = true;
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::floor(x);
  }
  template <class T>
  static T slope(T, T, Coefficients<T>) {
    return T{};
  }
};
struct Ceil {
  static constexpr bool is_straight = true;
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::ceil(x);
  }
  template <class T>
  static T slope(T, T, Coefficients<T>) {
    return T{};
  }
};
struct Round {
  static constexpr bool is_straight = true;
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::round(x);
  }
  template <class T>
  static T slope(T, T, Coefficients<T>) {
    return T{};
  }
};
struct Sign {
  static constexpr bool is_straight = true;
  template <class T>
  static T value(T x, Coefficients<T>) {
    return x > T{} ? T{1} : (x < T{} ? -T{1} : x);
  }
  template <class T>
  static T slope(T, T, Coefficients<T>) {
    return T{};
  }
};

struct Softplus {
  static Coefficients<double> coefficients(const Operator& op) {
    return {number(op, "beta", 1.0), number(op, "threshold", 20.0)};
  }
  template <class T>
  static T value(T x, Coefficients<T> c) {
    const T scaled = c.a * x;
    return scaled > c.b ? x : std::log1p(std::exp(scaled)) / c.a;
  }
  template <class T>
  static T slope(T x, T, Coefficients<T> c) {
    return c.a * x > c.b ? T{1} : logistic(c.a * x);
  }
  template <class T>
  static T curve(T x, T y, Coefficients<T> c) {
    return c.a * slope(x, y, c) * (c.a * x > c.b ? T{} : T{1} - slope(x, y, c));
  }
};
struct LogSigmoid {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return std::fmin(x, T{}) - std::log1p(std::exp(-std::fabs(x)));
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return logistic(-x);
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return -logistic(x) * logistic(-x);
  }
};
struct Silu {
  template <class T>
  static T value(T x, Coefficients<T>) {
    return x * logistic(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    const T s = logistic(x);
    return s * (T{1} + x * (T{1} - s));
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    const T s = logistic(x);
    return s * (T{1} - s) * (T{2} + x * (T{1} - T{2} * s));
  }
};
struct Mish {
  template <class T>
  static T inner(T x) {
    return std::tanh(Softplus::value(x, {T{1}, T{20}}));
  }
  template <class T>
  static T value(T x, Coefficients<T>) {
    return x * inner(x);
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    const T t = inner(x);
    return t + x * (T{1} - t * t) * logistic(x);
  }
};
struct Relu6 {
  static constexpr bool is_straight = true;
  template <class T>
  static T value(T x, Coefficients<T>) {
    return cut(x, T{6});
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    return x > T{} && x < T{6} ? T{1} : T{};
  }
};
struct HardSwish {
  template <class T>
  static T value(T x, Coefficients<T> c) {
    return x * Relu6::value(x + T{3}, c) / T{6};
  }
  template <class T>
  static T slope(T x, T, Coefficients<T>) {
    if (x <= -T{3}) return T{};
    return x < T{3} ? x / T{3} + T{0.5} : T{1};
  }
  template <class T>
  static T curve(T x, T, Coefficients<T>) {
    return std::fabs(x) < T{3} ? T{1} / T{3} : T{};
  }
};
struct HardSigmoid {
  static constexpr bool is_straight = true;
  static Coefficients<double> coefficients(const Operator& op) {
    return {number(op, "slope", 1.0 / 6.0), number(op, "offset", 0.5)};
  }
  template <class T>
  static T value(T x, Coefficients<T> c) {
    return cut(c.a * x + c.b, T{1});
  }
  template <class T>
  static T slope(T, T y, Coefficients<T> c) {
    return y > T{} && y < T{1} ? c.a : T{};
  }
};
struct HardShrink {
  static constexpr bool is_straight = true;
  static Coefficients<double> coefficients(const Operator& op) { return {number(op, "threshold", 0.5), 0.0}; }
  template <class T>
  static T value(T x, Coefficients<T> c) {
    return std::fabs(x) > c.a ? x : x * T{};
  }
  template <class T>
  static T slope(T x, T, Coefficients<T> c) {
    return std::fabs(x) > c.a ? T{1} : T{};
  }
};
struct Elu {
  static Coefficients<double> coefficients(const Operator& op) { return {number(op, "alpha", 1.0), 0.0}; }
  template <class T>
  static T value(T x, Coefficients<T> c) {
    return x > T{} ? x : c.a * std::expm1(x);
  }
  template <class T>
  static T slope(T x, T y, Coefficients<T> c) {
    return x > T{} ? T{1} : y + c.a;
  }
  template <class T>
  static T curve(T x, T y, Coefficients<T> c) {
    return x > T{} ? T{} : y + c.a;
  }
};
struct Selu {
  static Coefficients<double> coefficients(const Operator& op) {
    return {number(op, "scale", 1.0507009873554805), number(op, "alpha", 1.6732632423543772)};
  }
  template <class T>
  static T value(T x, Coefficients<T> c) {
    return c.a * (x > T{} ? x : c.b * std::expm1(x));
  }
  template <class T>
  static T slope(T x, T y, Coefficients<T> c) {
    return x > T{} ? c.a : y + c.a * c.b;
  }
  template <class T>
  static T curve(T x, T y, Coefficients<T> c) {
    return x > T{} ? T{} : y + c.a * c.b;
  }
};
struct Gelu {
  static Coefficients<double> coefficients(const Operator& op) {
    return {attribute(op, "approximate", false) ? 1.0 : 0.0, 0.0};
  }
  template <class T>
  static constexpr T kFactor = T{0.7978845608028654};  // sqrt(2 / pi)
  template <class T>
  static constexpr T kCubic = T{0.044715};
  template <class T>
  static T value(T x, Coefficients<T> c) {
    if (c.a == T{}) return T{0.5} * x * (T{1} + std::erf(x * std::numbers::sqrt2_v<T> / T{2}));
    return T{0.5} * x * (T{1} + std::tanh(kFactor<T> * (x + kCubic<T> * x * x * x)));
  }
  template <class T>
  static T slope(T x, T, Coefficients<T> c) {
    if (c.a == T{}) {
      const T cumulative = T{0.5} * (T{1} + std::erf(x * std::numbers::sqrt2_v<T> / T{2}));
      return cumulative + x * T{0.5} * kFactor<T> * std::exp(-T{0.5} * x * x);
    }
    const T t = std::tanh(kFactor<T> * (x + kCubic<T> * x * x * x));
    return T{0.5} * (T{1} + t) + T{0.5} * x * (T{1} - t * t) * kFactor<T> * (T{1} + T{3} * kCubic<T> * x * x);
  }
  template <class T>
  static T curve(T x, T, Coefficients<T> c) {
    if (c.a == T{}) return kFactor<T> * std::exp(T{-0.5} * x * x) * (T{1} - T{0.5} * x * x);
    const T t = std::tanh(kFactor<T> * (x + kCubic<T> * x * x * x)), rest = T{1} - t * t;
    const T inner = kFactor<T> * (T{1} + T{3} * kCubic<T> * x * x);
    return rest * (inner + x * (T{3} * kFactor<T> * kCubic<T> * x - t * inner * inner));
  }
};

}  // namespace

std::span<const OperatorDefinition> activation_operators() {
  static constexpr OperatorDefinition all[] = {
      unary<Sin>("sin", "sine"),
      gradient_of<Sin>("sin_grad"),
      curve_of<Sin>("sin_grad_grad"),
      unary<Cos>("cos", "cosine"),
      gradient_of<Cos>("cos_grad"),
      curve_of<Cos>("cos_grad_grad"),
      unary<Tan>("tan", "tangent"),
      gradient_of<Tan>("tan_grad"),
      curve_of<Tan>("tan_grad_grad"),
      unary<Asin>("asin", "inverse of sine"),
      gradient_of<Asin>("asin_grad"),
      curve_of<Asin>("asin_grad_grad"),
      unary<Acos>("acos", "inverse of cosine"),
      gradient_of<Acos>("acos_grad"),
      curve_of<Acos>("acos_grad_grad"),
      unary<Atan>("atan", "inverse of tangent"),
      gradient_of<Atan>("atan_grad"),
      curve_of<Atan>("atan_grad_grad"),
      unary<Erf>("erf", "error function"),
      gradient_of<Erf>("erf_grad"),
      curve_of<Erf>("erf_grad_grad"),
      unary<ErfInv>("erfinv", "inverse of the error function"),
      gradient_of<ErfInv>("erfinv_grad"),
      curve_of<ErfInv>("erfinv_grad_grad"),
      unary<LogGamma>("lgamma", "logarithm of the gamma function"),
      gradient_of<LogGamma>("lgamma_grad"),
      curve_of<LogGamma>("lgamma_grad_grad"),
      unary<Digamma>("digamma", "slope of lgamma"),
      gradient_of<Digamma>("digamma_grad"),
      unary<Expm1>("expm1", "exp(x) - 1"),
      gradient_of<Expm1>("expm1_grad"),
      curve_of<Expm1>("expm1_grad_grad"),
      unary<Log2>("log2", "logarithm to base 2"),
      gradient_of<Log2>("log2_grad"),
      curve_of<Log2>("log2_grad_grad"),
      unary<Log10>("log10", "logarithm to base 10"),
      gradient_of<Log10>("log10_grad"),
      curve_of<Log10>("log10_grad_grad"),
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
      curve_of<Softplus>("softplus_grad_grad"),
      unary<LogSigmoid>("logsigmoid", "logarithm of sigmoid"),
      gradient_of<LogSigmoid>("logsigmoid_grad"),
      curve_of<LogSigmoid>("logsigmoid_grad_grad"),
      unary<Silu>("silu", "x * sigmoid(x), also called swish"),
      gradient_of<Silu>("silu_grad"),
      curve_of<Silu>("silu_grad_grad"),
      unary<Mish>("mish", "x * tanh(softplus(x))"),
      gradient_of<Mish>("mish_grad"),
      unary<Relu6>("relu6", "x cut to [0, 6]"),
      gradient_of<Relu6>("relu6_grad"),
      unary<HardSwish>("hard_swish", "x * relu6(x + 3) / 6"),
      gradient_of<HardSwish>("hard_swish_grad"),
      curve_of<HardSwish>("hard_swish_grad_grad"),
      unary<HardSigmoid>("hard_sigmoid", "slope * x + offset cut to [0, 1]", "slope = 1/6; offset = 0.5"),
      gradient_of<HardSigmoid>("hard_sigmoid_grad"),
      unary<HardShrink>("hard_shrink", "x, and 0 within +-threshold", "threshold = 0.5"),
      gradient_of<HardShrink>("hard_shrink_grad"),
      unary<Elu>("elu", "x where it is positive, else alpha * (exp(x) - 1)", "alpha = 1"),
      gradient_of<Elu>("elu_grad"),
      curve_of<Elu>("elu_grad_grad"),
      unary<Selu>("selu", "scale * elu(x)", "scale = 1.0507...; alpha = 1.6733..."),
      gradient_of<Selu>("selu_grad"),
      curve_of<Selu>("selu_grad_grad"),
      unary<Gelu>("gelu", "x times the normal distribution function of x",
                  "approximate = false: true takes tanh instead of erf"),
      gradient_of<Gelu>("gelu_grad"),
      curve_of<Gelu>("gelu_grad_grad"),
  };
  return all;
}

}  // namespace fleetrun::engine
