// What operators over one tensor of floating point share: a formula and its slope, value by value.
#pragma once

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

/// The parameters a and b of the formulas below.
template <class T>
struct Coefficients {
  T a{};
  T b{};
};

/// An attribute as a number.
inline double number(const Operator& op, const char* name, double fallback) {
  return attribute(op, name, fallback);
}

/// Those of an operator: F::coefficients(op) where the formula has any.
template <class F, class T>
Coefficients<T> coefficients_of(const Operator& op) {
  if constexpr (requires { F::coefficients(op); }) {
    const Coefficients<double> c = F::coefficients(op);
    return {static_cast<T>(c.a), static_cast<T>(c.b)};
  } else {
    return {};
  }
}

/// One input of float32 or float64 (scale, abs: integers too), one output like it.
void infer_unary(Inference& inference);
/// (X, Out, dOut) -> dX
void unary_gradient(GradientBuilder& builder);
/// Of (X, Out, dOut) -> dX: the same of d(dX) for dOut, and where F has a curve, (X, Out, dOut, d(dX)) -> dX.
void straight_gradient(GradientBuilder& builder);
void curved_gradient(GradientBuilder& builder);

// F::value(x, coefficients) is f(x), F::slope(x, y, coefficients) is f'(x) and F::curve(x, y, coefficients)
// f''(x) given x and y = f(x). A formula whose curve is 0 says is_straight; of one that says nothing, the
// gradient has none.

/// Calls f(T{}, coefficients) for float, the fast one, or double.
template <class F>
auto for_floats(const Preparation& p) {
  return [narrow = coefficients_of<F, float>(p.op), wide = coefficients_of<F, double>(p.op)](DataType type,
                                                                                             const auto& f) {
    if (type == DataType::float64) return f(double{}, wide);
    f(float{}, narrow);
  };
}

template <class F>
Kernel prepare_unary(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), of = for_floats<F>(p)] {
    out->resize(x->type(), x->shape());
    out->offsets = x->offsets;
    of(x->type(), [&]<class T>(T, Coefficients<T> c) {
      const T* from = x->values<T>().data();
      T* to = out->values<T>().data();
      const std::size_t size = x->size();
      vectorized([=]() __attribute__((always_inline)) {
        for (std::size_t i = 0; i < size; ++i) to[i] = F::value(from[i], c);
      });
    });
  };
}

/// (X, Out, dOut) -> dX
template <class F>
Kernel prepare_unary_gradient(const Preparation& p) {
  return [x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0), of = for_floats<F>(p)] {
    dx->resize(x->type(), x->shape());
    of(x->type(), [&]<class T>(T, Coefficients<T> c) {
      const T *a = x->values<T>().data(), *b = y->values<T>().data(), *from = g->values<T>().data();
      T* to = dx->values<T>().data();
      const std::size_t size = x->size();
      vectorized([=]() __attribute__((always_inline)) {
        for (std::size_t i = 0; i < size; ++i) to[i] = from[i] * F::slope(a[i], b[i], c);
      });
    });
  };
}

/// (X, Out, dOut, d(dX)) -> dX
template <class F>
Kernel prepare_unary_curve(const Preparation& p) {
  return [x = p.input(0), y = p.input(1), g = p.input(2), dd = p.input(3), dx = p.output(0),
          of = for_floats<F>(p)] {
    dx->resize(x->type(), x->shape());
    of(x->type(), [&]<class T>(T, Coefficients<T> c) {
      const auto a = x->values<T>(), b = y->values<T>(), first = g->values<T>(), second = dd->values<T>();
      const auto to = dx->values<T>();
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = first[i] * second[i] * F::curve(a[i], b[i], c);
    });
  };
}

template <class F>
constexpr OperatorDefinition unary(std::string_view type, std::string_view meaning,
                                   std::string_view attributes = {}) {
  return {type, infer_unary, prepare_unary<F>, unary_gradient, {"(X) -> Out", meaning, attributes}};
}
template <class F>
constexpr OperatorDefinition gradient_of(std::string_view type) {
  if constexpr (requires { F::is_straight; }) {
    return {type, infer_gradient, prepare_unary_gradient<F>, straight_gradient};
  } else if constexpr (requires { F::curve(1.0f, 1.0f, Coefficients<float>{}); }) {
    return {type, infer_gradient, prepare_unary_gradient<F>, curved_gradient};
  } else {
    return {type, infer_gradient, prepare_unary_gradient<F>, nullptr};
  }
}
template <class F>
constexpr OperatorDefinition curve_of(std::string_view type) {
  return {type, infer_gradient, prepare_unary_curve<F>, nullptr};
}

}  // namespace fleetrun::engine
