// The update rules that keep running means of the gradients, as loops; update_loops.h has the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ps/base/table_config.h"
#include "ps/table/update_loops.h"

namespace fleetrun::ps::loops {

// AdamW: `keep` is what its decay, which is apart from the gradient, leaves of a value.
template <class Gradient>
void adamw(float* values, float* first, float* second, Gradient gradient, std::size_t width,
           const AdamStep& step, float keep) {
  const float keep1 = step.beta1;
  const float keep2 = step.beta2;
  const float rate = step.rate;
  const float epsilon = step.epsilon;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float m = keep1 * first[i] + (1.0f - keep1) * g;
    const float v = keep2 * second[i] + (1.0f - keep2) * g * g;
    first[i] = m;
    second[i] = v;
    values[i] = keep * values[i] - rate * m / (std::sqrt(v) + epsilon);
  }
}

// `left` is 1 - beta1^step.
template <class Gradient>
void adamax(float* values, float* moments, float* norms, Gradient gradient, std::size_t width,
            const UpdateRule& rule, float left) {
  const float rate = rule.learning_rate / left;
  const float keep1 = rule.beta1;
  const float keep2 = rule.beta2;
  const float epsilon = rule.epsilon;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float m = keep1 * moments[i] + (1.0f - keep1) * g;
    const float u = std::max(std::fabs(g), keep2 * norms[i] + epsilon);
    moments[i] = m;
    norms[i] = u;
    values[i] -= rate * (m / u);
  }
}

template <class Gradient>
void rmsprop(float* values, float* state, Gradient gradient, std::size_t width, const UpdateRule& rule) {
  float* squares = state;
  float* velocity = state + width;
  float* means = state + 2 * width;
  const float rate = rule.learning_rate;
  const float rho = rule.rho;
  const float keep = rule.momentum;
  const float epsilon = rule.epsilon;
  const float centre = rule.centered ? 1.0f : 0.0f;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float s = rho * squares[i] + (1.0f - rho) * g * g;
    const float m = centre * (rho * means[i] + (1.0f - rho) * g);
    const float v = keep * velocity[i] + rate * g / std::sqrt(s - m * m + epsilon);
    squares[i] = s;
    means[i] = m;
    velocity[i] = v;
    values[i] -= v;
  }
}

template <class Gradient>
void adadelta(float* values, float* squares, float* updates, Gradient gradient, std::size_t width,
              const UpdateRule& rule) {
  const float rate = rule.learning_rate;
  const float rho = rule.rho;
  const float epsilon = rule.epsilon;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float s = rho * squares[i] + (1.0f - rho) * g * g;
    const float d = std::sqrt((updates[i] + epsilon) / (s + epsilon)) * g;
    squares[i] = s;
    updates[i] = rho * updates[i] + (1.0f - rho) * d * d;
    values[i] -= rate * d;
  }
}

}  // namespace fleetrun::ps::loops
