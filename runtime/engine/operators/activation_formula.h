// The activations that passes put into the operator before them: f(x), and f'(x) given y = f(x).
#pragma once

#include <array>
#include <string_view>

#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine::fused {

inline constexpr std::array<std::string_view, 3> kActivations{"relu", "sigmoid", "tanh"};

struct Relu {
  [[gnu::always_inline]] static float value(float x) { return x > 0.0f ? x : 0.0f; }
  [[gnu::always_inline]] static float slope(float y) { return y > 0.0f ? 1.0f : 0.0f; }
};
struct Sigmoid {
  [[gnu::always_inline]] static float value(float x) { return vector_math::sigmoid(x); }
  [[gnu::always_inline]] static float slope(float y) { return y * (1.0f - y); }
};
struct Tanh {
  [[gnu::always_inline]] static float value(float x) { return vector_math::tanh(x); }
  [[gnu::always_inline]] static float slope(float y) { return 1.0f - y * y; }
};

}  // namespace fleetrun::engine::fused
