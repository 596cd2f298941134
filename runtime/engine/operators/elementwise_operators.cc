// Operators over two tensors, value by value, with broadcasting (broadcast.h): a dimension of 1 is repeated,
// and gradients are summed over repeated dimensions.

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/broadcast.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/typed.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

struct Add {
  template <class T>
  [[gnu::always_inline]] static T value(T x, T y) {
    return static_cast<T>(x + y);
  }
  [[gnu::always_inline]] static auto by_x(auto, auto, auto g) { return g; }
  [[gnu::always_inline]] static auto by_y(auto, auto, auto g) { return g; }
};
struct Sub {
  template <class T>
  [[gnu::always_inline]] static T value(T x, T y) {
    return static_cast<T>(x - y);
  }
  [[gnu::always_inline]] static auto by_x(auto, auto, auto g) { return g; }
  [[gnu::always_inline]] static auto by_y(auto, auto, auto g) { return -g; }
};
struct Mul {
  template <class T>
  [[gnu::always_inline]] static T value(T x, T y) {
    return static_cast<T>(x * y);
  }
  [[gnu::always_inline]] static auto by_x(auto, auto y, auto g) { return g * y; }
  [[gnu::always_inline]] static auto by_y(auto x, auto, auto g) { return g * x; }
};
/// x / y of integers. The processor stops a program that divides by 0, or the least number by -1: the first
/// gives 0, the second the least number.
template <class T>
T divide(T x, T y) {
  using Unsigned = std::make_unsigned_t<T>;
  if (y == T{}) return T{};
  if (y == static_cast<T>(-1)) return static_cast<T>(Unsigned{} - static_cast<Unsigned>(x));
  return static_cast<T>(x / y);
}

struct Div {
  template <class T>
  [[gnu::always_inline]] static T value(T x, T y) {
    if constexpr (std::is_integral_v<T>) return divide(x, y);
    return static_cast<T>(x / y);
  }
  [[gnu::always_inline]] static auto by_x(auto, auto y, auto g) { return g / y; }
  [[gnu::always_inline]] static auto by_y(auto x, auto y, auto g) { return -g * x / (y * y); }
};
/// As in Paddle the result is y where one of the two is NaN, and neither has a slope there. Processors have
/// an instruction for it.
struct Max {
  template <class T>
  [[gnu::always_inline]] static T value(T x, T y) {
    return x > y ? x : y;
  }
  [[gnu::always_inline]] static auto by_x(auto x, auto y, auto g) { return x > y ? g : g * 0; }
  [[gnu::always_inline]] static auto by_y(auto x, auto y, auto g) { return x <= y ? g : g * 0; }
};
struct Min {
  template <class T>
  [[gnu::always_inline]] static T value(T x, T y) {
    return x < y ? x : y;
  }
  [[gnu::always_inline]] static auto by_x(auto x, auto y, auto g) { return x < y ? g : g * 0; }
  [[gnu::always_inline]] static auto by_y(auto x, auto y, auto g) { return x >= y ? g : g * 0; }
};
struct Pow {
  template <class T>
  static T value(T x, T y) {
    return static_cast<T>(std::pow(x, y));
  }
  static auto by_x(auto x, auto y, auto g) { return g * y * std::pow(x, y - 1); }
  static auto by_y(auto x, auto y, auto g) { return g * std::pow(x, y) * std::log(x); }
};

/// Like Python's %: the result has y's sign.
struct Mod {
  template <class T>
  static T value(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(x, y);
      return rest != T{} && (rest < T{}) != (y < T{}) ? rest + y : rest;
    } else {
      if (y == T{} || y == static_cast<T>(-1)) return T{};
      const auto rest = static_cast<T>(x % y);
      return rest != T{} && (rest < T{}) != (y < T{}) ? static_cast<T>(rest + y) : rest;
    }
  }
};
/// Like Python's //.
struct FloorDiv {
  template <class T>
  static T value(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(x / y);
    } else {
      const T towards_zero = divide(x, y), rest = Mod::value(x, y);
      const bool is_between = rest != T{} && (x < T{}) != (y < T{});
      return is_between ? static_cast<T>(towards_zero - 1) : towards_zero;
    }
  }
};

struct Equal {
  template <class T>
  static bool value(T x, T y) {
    return x == y;
  }
};
struct NotEqual {
  template <class T>
  static bool value(T x, T y) {
    return x != y;
  }
};
struct Less {
  template <class T>
  static bool value(T x, T y) {
    return x < y;
  }
};
struct LessEqual {
  template <class T>
  static bool value(T x, T y) {
    return x <= y;
  }
};
struct Greater {
  template <class T>
  static bool value(T x, T y) {
    return x > y;
  }
};
struct GreaterEqual {
  template <class T>
  static bool value(T x, T y) {
    return x >= y;
  }
};
struct And {
  template <class T>
  static bool value(T x, T y) {
    return x != T{} && y != T{};
  }
};
struct Or {
  template <class T>
  static bool value(T x, T y) {
    return x != T{} || y != T{};
  }
};
struct Xor {
  template <class T>
  static bool value(T x, T y) {
    return (x != T{}) != (y != T{});
  }
};

struct BitAnd {
  template <class T>
  static T value(T x, T y) {
    return static_cast<T>(x & y);
  }
};
struct BitOr {
  template <class T>
  static T value(T x, T y) {
    return static_cast<T>(x | y);
  }
};
struct BitXor {
  template <class T>
  static T value(T x, T y) {
    return static_cast<T>(x ^ y);
  }
};

/// What an operator takes and gives: numbers of one type; values as bool; bits of whole numbers or bools.
enum class Kind { numbers, truth, bits };

template <Kind kKind, class T>
constexpr bool takes() {
  if constexpr (kKind == Kind::bits) return std::is_integral_v<T>;
  return kKind == Kind::truth || !std::is_same_v<T, bool>;
}

template <Kind kKind>
void expect_type(const Inference& inference, DataType type) {
  with_type(type, [&]<class T>(T) {
    if constexpr (takes<kKind, T>()) return;
    if constexpr (std::is_same_v<T, bool>) inference.fail("cannot compute with bool", "cast to float32");
    inference.fail("has bits of whole numbers and bools only", "cast to int64 or bool");
  });
}

template <Kind kKind>
void infer_binary(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Variable& y = inference.input(1);
  if (x.type != y.type) inference.fail("the types of its inputs differ", "cast one to the other's type");
  expect_type<kKind>(inference, x.type);
  Shape shape;
  if (!broadcast_shape(x.shape, y.shape, attribute(inference.op(), "axis", std::int64_t{-1}), shape)) {
    inference.fail("shapes do not agree", "each dimension must be the same, or 1 in one of them");
  }
  inference.set_output(0, kKind == Kind::truth ? DataType::boolean : x.type, shape, x.lod_level);
}

void plan_or_fail(Broadcast& broadcast, const Operator& op, const Tensor& x, const Tensor& y,
                  std::int64_t axis) {
  if (broadcast.plan(x.shape(), y.shape(), axis)) return;
  fail(op, "shapes do not agree: " + to_string(x.shape()) + " and " + to_string(y.shape()),
       "each dimension must be the same, or 1 in one of them");
}

template <class F, class T, class Out>
void compute(const Broadcast& broadcast, const T* x, const T* y, Out* out) {
  const std::size_t run = broadcast.run(), step_x = broadcast.step_x(), step_y = broadcast.step_y();
  vectorized([&]() __attribute__((always_inline)) {
    broadcast.for_each_run([&](std::size_t o, std::size_t i, std::size_t j) __attribute__((always_inline)) {
      const T* a = x + i;
      const T* b = y + j;
      Out* c = out + o;
      if (step_x == 1 && step_y == 1) {
        for (std::size_t k = 0; k < run; ++k) c[k] = F::value(a[k], b[k]);
      } else if (step_x == 1) {
        const T fixed = *b;
        for (std::size_t k = 0; k < run; ++k) c[k] = F::value(a[k], fixed);
      } else {
        const T fixed = *a;
        for (std::size_t k = 0; k < run; ++k) c[k] = F::value(fixed, b[k]);
      }
    });
  });
}

template <class F, Kind kKind>
Kernel prepare_binary(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), out = p.output(0), broadcast = Broadcast(),
          axis = attribute(p.op, "axis", std::int64_t{-1})]() mutable {
    plan_or_fail(broadcast, *op, *x, *y, axis);
    out->resize(kKind == Kind::truth ? DataType::boolean : x->type(), broadcast.shape());
    out->offsets = x->offsets;
    const auto run = [&]<class T>(T) {
      using Out = std::conditional_t<kKind == Kind::truth, bool, T>;
      compute<F>(broadcast, x->values<T>().data(), y->values<T>().data(), out->values<Out>().data());
    };
    with_type(x->type(), [&]<class T>(T value) {
      if constexpr (takes<kKind, T>()) run(value);
    });
  };
}

/// target[...] += f(x, y, g) over one run; the sum goes to one value when the operand stands still.
template <class T, class F>
[[gnu::always_inline]] inline void add_run(T* target, bool walks, std::size_t run, const F& f) {
  if (walks) {
    for (std::size_t k = 0; k < run; ++k) target[k] += f(k);
    return;
  }
  T lanes[16] = {};
  std::size_t k = 0;
  for (; k + 16 <= run; k += 16) {
// Unrolled before it is vectorised, a choice between two values becomes 16 branches.
#pragma GCC unroll 1
    for (std::size_t l = 0; l < 16; ++l) lanes[l] += f(k + l);
  }
  for (; k < run; ++k) lanes[k % 16] += f(k);
  if constexpr (std::is_same_v<T, float>) {
    *target += sum_of(lanes, 16);
  } else {
    for (const T lane : lanes) *target += lane;
  }
}

template <class F, class T>
void differentiate(const Broadcast& broadcast, const T* x, const T* y, const T* g, T* dx, T* dy) {
  const std::size_t run = broadcast.run(), step_x = broadcast.step_x(), step_y = broadcast.step_y();
  vectorized([&]() __attribute__((always_inline)) {
    broadcast.for_each_run([&](std::size_t o, std::size_t i, std::size_t j) __attribute__((always_inline)) {
      const T* a = x + i;
      const T* b = y + j;
      const T* c = g + o;
      if (dx != nullptr) {
        add_run(
            dx + i, step_x == 1, run, [=](std::size_t k) __attribute__((always_inline)) {
              return F::by_x(a[k * step_x], b[k * step_y], c[k]);
            });
      }
      if (dy != nullptr) {
        add_run(
            dy + j, step_y == 1, run, [=](std::size_t k) __attribute__((always_inline)) {
              return F::by_y(a[k * step_x], b[k * step_y], c[k]);
            });
      }
    });
  });
}

/// The values of a gradient, all 0; nullptr for one that nobody wants.
template <class T>
T* zeros(Tensor* gradient, const Shape& shape) {
  if (gradient == nullptr) return nullptr;
  gradient->resize(std::is_same_v<T, float> ? DataType::float32 : DataType::float64, shape);
  T* values = gradient->values<T>().data();
  return std::fill_n(values, gradient->size(), T{}) - gradient->size();
}

/// (X, Y, dOut) -> dX, dY
template <class F>
Kernel prepare_binary_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0), dy = p.output(1),
          broadcast = Broadcast(), axis = attribute(p.op, "axis", std::int64_t{-1})]() mutable {
    plan_or_fail(broadcast, *op, *x, *y, axis);
    with_gradient_type(g->type(), [&]<class T>(T) {
      differentiate<F>(broadcast, x->values<T>().data(), y->values<T>().data(), g->values<T>().data(),
                       zeros<T>(dx, x->shape()), zeros<T>(dy, y->shape()));
    });
  };
}

void binary_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = op.type + "_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0), builder.input_gradient(1)},
                  .attributes = op.attributes});
}

struct Not {
  template <class T>
  static bool value(T x) {
    return x == T{};
  }
};
struct BitNot {
  template <class T>
  static T value(T x) {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};
struct IsNan {
  template <class T>
  static bool value(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
    return false;
  }
};
struct IsInf {
  template <class T>
  static bool value(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::isinf(x);
    return false;
  }
};
struct IsFinite {
  template <class T>
  static bool value(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::isfinite(x);
    return true;
  }
};

void infer_predicate(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable x = inference.input(0);
  inference.set_output(0, DataType::boolean, x.shape, x.lod_level);
}

template <class F>
Kernel prepare_predicate(const Preparation& p) {
  return [x = p.input(0), out = p.output(0)] {
    out->resize(DataType::boolean, x->shape());
    out->offsets = x->offsets;
    with_type(x->type(), [&]<class T>(T) {
      const auto from = x->values<T>();
      std::transform(from.begin(), from.end(), out->values<bool>().begin(), F::template value<T>);
    });
  };
}

void infer_bitwise_not(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable x = inference.input(0);
  expect_type<Kind::bits>(inference, x.type);
  inference.set_output(0, x.type, x.shape, x.lod_level);
}

Kernel prepare_bitwise_not(const Preparation& p) {
  return [x = p.input(0), out = p.output(0)] {
    out->resize(x->type(), x->shape());
    out->offsets = x->offsets;
    with_type(x->type(), [&]<class T>(T) {
      if constexpr (takes<Kind::bits, T>()) {
        const auto from = x->values<T>();
        std::transform(from.begin(), from.end(), out->values<T>().begin(), BitNot::value<T>);
      }
    });
  };
}

void infer_where(Inference& inference) {
  inference.expect_inputs(3, 3);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::boolean);
  const Variable& x = inference.input(1);
  if (x.type != inference.input(2).type) inference.fail("the types of its inputs differ");
  inference.set_output(0, x.type, x.shape, x.lod_level);
}

Kernel prepare_where(const Preparation& p) {
  return [op = &p.op, condition = p.input(0), x = p.input(1), y = p.input(2), out = p.output(0)] {
    if (x->shape() != y->shape() || x->shape() != condition->shape()) {
      fail(*op, "shapes differ: " + to_string(condition->shape()) + ", " + to_string(x->shape()) + " and " +
                    to_string(y->shape()));
    }
    out->resize(x->type(), x->shape());
    const std::size_t width = size_of(x->type());
    const auto take = condition->values<bool>();
    const auto* a = static_cast<const std::byte*>(x->data());
    const auto* b = static_cast<const std::byte*>(y->data());
    auto* c = static_cast<std::byte*>(out->data());
    for (std::size_t i = 0; i < take.size(); ++i) {
      std::copy_n((take[i] ? a : b) + i * width, width, c + i * width);
    }
  };
}

/// (Condition, dOut) -> dX, dY
Kernel prepare_where_gradient(const Preparation& p) {
  return [condition = p.input(0), g = p.input(1), dx = p.output(0), dy = p.output(1)] {
    const auto take = condition->values<bool>();
    for (Tensor* target : {dx, dy}) {
      if (target == nullptr) continue;
      target->resize(g->type(), g->shape());
      with_gradient_type(g->type(), [&]<class T>(T) {
        const auto gradient = g->values<T>();
        const auto values = target->values<T>();
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = take[i] == (target == dx) ? gradient[i] : T{};
        }
      });
    }
  };
}

void where_gradient(GradientBuilder& builder) {
  builder.append({.type = "where_grad",
                  .inputs = {builder.op().inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(1), builder.input_gradient(2)},
                  .attributes = {}});
}

constexpr std::string_view kAxis = "axis = -1: where Y's first dimension meets X's when Y has fewer";

template <class F, Kind kind>
constexpr OperatorDefinition binary(std::string_view type, std::string_view meaning,
                                    std::string_view signature = "(X, Y) -> Out") {
  return {type, infer_binary<kind>, prepare_binary<F, kind>, nullptr, {signature, meaning, kAxis}};
}
template <class F>
constexpr OperatorDefinition arithmetic(std::string_view type, std::string_view meaning) {
  OperatorDefinition definition = binary<F, Kind::numbers>(type, meaning);
  definition.gradient = binary_gradient;
  return definition;
}
template <class F>
constexpr OperatorDefinition gradient_of(std::string_view type,
                                         void (*gradient)(GradientBuilder&) = nullptr) {
  return {type, infer_gradient, prepare_binary_gradient<F>, gradient};
}
template <class F>
constexpr OperatorDefinition predicate(std::string_view type, std::string_view meaning) {
  return {type, infer_predicate, prepare_predicate<F>, nullptr, {"(X) -> Out bool", meaning}};
}
template <class F>
constexpr OperatorDefinition comparison(std::string_view type, std::string_view meaning) {
  return binary<F, Kind::truth>(type, meaning, "(X, Y) -> Out bool");
}
template <class F>
constexpr OperatorDefinition bitwise(std::string_view type, std::string_view meaning) {
  return binary<F, Kind::bits>(type, meaning);
}

}  // namespace

std::span<const OperatorDefinition> elementwise_operators() {
  static constexpr OperatorDefinition all[] = {
      arithmetic<Add>("elementwise_add", "X + Y"),
      gradient_of<Add>("elementwise_add_grad", gradient_of_sum),
      arithmetic<Sub>("elementwise_sub", "X - Y"),
      gradient_of<Sub>("elementwise_sub_grad", gradient_of_sum),
      arithmetic<Mul>("elementwise_mul", "X times Y"),
      gradient_of<Mul>("elementwise_mul_grad", gradient_of_product),
      arithmetic<Div>("elementwise_div", "X / Y"),
      gradient_of<Div>("elementwise_div_grad", gradient_of_quotient),
      arithmetic<Max>("elementwise_max", "the greater value, Y for a NaN; Y gets the gradient of a tie"),
      gradient_of<Max>("elementwise_max_grad", gradient_of_choice),
      arithmetic<Min>("elementwise_min", "the smaller value, Y for a NaN; Y gets the gradient of a tie"),
      gradient_of<Min>("elementwise_min_grad", gradient_of_choice),
      arithmetic<Pow>("elementwise_pow", "X to the power of Y"),
      gradient_of<Pow>("elementwise_pow_grad"),
      {"elementwise_mod",
       infer_binary<Kind::numbers>,
       prepare_binary<Mod, Kind::numbers>,
       nullptr,
       {"(X, Y) -> Out", "remainder, as % in Python", kAxis}},
      {"elementwise_floordiv",
       infer_binary<Kind::numbers>,
       prepare_binary<FloorDiv, Kind::numbers>,
       nullptr,
       {"(X, Y) -> Out", "quotient rounded down, as // in Python", kAxis}},
      comparison<Equal>("equal", "X = Y"),
      comparison<NotEqual>("not_equal", "X differs from Y"),
      comparison<Less>("less_than", "X < Y"),
      comparison<LessEqual>("less_equal", "X <= Y"),
      comparison<Greater>("greater_than", "X > Y"),
      comparison<GreaterEqual>("greater_equal", "X >= Y"),
      comparison<And>("logical_and", "X and Y"),
      comparison<Or>("logical_or", "X or Y"),
      comparison<Xor>("logical_xor", "either X or Y"),
      predicate<Not>("logical_not", "not X"),
      bitwise<BitAnd>("bitwise_and", "the bits that X and Y both have"),
      bitwise<BitOr>("bitwise_or", "the bits that X or Y has"),
      bitwise<BitXor>("bitwise_xor", "the bits that one of X and Y has"),
      {"bitwise_not",
       infer_bitwise_not,
       prepare_bitwise_not,
       nullptr,
       {"(X) -> Out", "the other bits of X; of bools, not X"}},
      predicate<IsNan>("isnan", "X is not a number"),
      predicate<IsInf>("isinf", "X is infinite"),
      predicate<IsFinite>("isfinite", "X is finite"),
      {"where",
       infer_where,
       prepare_where,
       where_gradient,
       {"(Condition bool, X, Y) -> Out", "X where the condition holds, else Y; all of one shape"}},
      {"where_grad", infer_gradient, prepare_where_gradient, gradient_of_where},
  };
  return all;
}

}  // namespace fleetrun::engine
