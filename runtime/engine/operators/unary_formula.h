// What operators over one float32 tensor share: a formula and its slope, value by value.
#pragma once

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

/// The parameters a and b of the formulas below.
struct Coefficients {
  float a = 0.0f;
  float b = 0.0f;
};

/// An attribute as a number.
inline float number(const Operator& op, const char* name, double fallback) {
  return static_cast<float>(attribute(op, name, fallback));
}

/// Those of an operator: F::coefficients(op) where the formula has any.
template <class F>
Coefficients coefficients_of(const Operator& op) {
  if constexpr (requires { F::coefficients(op); }) {
    return F::coefficients(op);
  } else {
    return {};
  }
}

/// One input of float32 (scale: integers too), one output like it.
void infer_unary(Inference& inference);
/// (X, Out, dOut) -> dX
void unary_gradient(GradientBuilder& builder);

// F::value(x, coefficients) is f(x), F::slope(x, y, coefficients) is f'(x) given x and y = f(x).

template <class F>
Kernel prepare_unary(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), c = coefficients_of<F>(p.op)] {
    out->resize(DataType::float32, x->shape());
    out->offsets = x->offsets;
    const float* from = x->values<float>().data();
    float* to = out->values<float>().data();
    const std::size_t size = x->size();
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) to[i] = F::value(from[i], c);
    });
  };
}

/// (X, Out, dOut) -> dX
template <class F>
Kernel prepare_unary_gradient(const Preparation& p) {
  return [x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0), c = coefficients_of<F>(p.op)] {
    dx->resize(DataType::float32, x->shape());
    const float* a = x->values<float>().data();
    const float* b = y->values<float>().data();
    const float* from = g->values<float>().data();
    float* to = dx->values<float>().data();
    const std::size_t size = x->size();
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) to[i] = from[i] * F::slope(a[i], b[i], c);
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
  return {type, infer_gradient, prepare_unary_gradient<F>, nullptr};
}

}  // namespace fleetrun::engine
