// The update rules as loops over the columns of a row (formulas: ps/base/table_config.h). `Gradient` gives
// the gradient of a column: as it came, or with the decays of the value added.
#pragma once

#include <cmath>
#include <cstddef>

#include "ps/base/table_config.h"

namespace fleetrun::ps::loops {

struct AsCame {
  const float* gradient;
  float operator()(std::size_t i) const noexcept { return gradient[i]; }
};

struct Decayed {
  const float* gradient;
  const float* values;
  float l1;
  float l2;
  float operator()(std::size_t i) const noexcept {
    const float w = values[i];
    const float sign = w > 0.0f ? 1.0f : (w < 0.0f ? -1.0f : 0.0f);
    return gradient[i] + l2 * w + l1 * sign;
  }
};

template <class Gradient>
void sgd(float* values, Gradient gradient, std::size_t width, float rate) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) values[i] -= rate * gradient(i);
}

template <class Gradient>
void sum(float* values, Gradient gradient, std::size_t width) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) values[i] += gradient(i);
}

// Of sums over all data: what is long past counts less and less.
template <class Gradient>
void summary(float* values, Gradient gradient, std::size_t width) {
  constexpr float kKept = 0.999999f;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) values[i] = values[i] * kKept + gradient(i);
}

template <class Gradient>
void momentum(float* values, float* velocity, Gradient gradient, std::size_t width, const UpdateRule& rule) {
  const float rate = rule.learning_rate;
  const float keep = rule.momentum;
  const float look_ahead = rule.nesterov ? keep : 1.0f;
  const float plus = rule.nesterov ? 1.0f : 0.0f;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float v = keep * velocity[i] + g;
    velocity[i] = v;
    values[i] -= rate * (plus * g + look_ahead * v);
  }
}

template <class Gradient>
void adagrad(float* values, float* squares, Gradient gradient, std::size_t width, const UpdateRule& rule) {
  const float rate = rule.learning_rate;
  const float epsilon = rule.epsilon;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float sum = squares[i] + g * g;
    squares[i] = sum;
    values[i] -= rate * g / (std::sqrt(sum) + epsilon);
  }
}

// The squares of this gradient count from the next one on.
template <class Gradient>
void std_adagrad(float* values, float* squares, Gradient gradient, std::size_t width, float scale,
                 const UpdateRule& rule) {
  const float rate = rule.learning_rate;
  const float first = rule.initial_accumulator;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i) / scale;
    values[i] -= rate * g * std::sqrt(first / (first + squares[i]));
    squares[i] += g * g;
  }
}

template <class Gradient>
void shared_adagrad(float* values, float* squares, Gradient gradient, std::size_t width, float scale,
                    const UpdateRule& rule) {
  const float first = rule.initial_accumulator;
  const float rate = rule.learning_rate * std::sqrt(first / (first + *squares));
  double sum = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i) / scale;
    values[i] -= rate * g;
    sum += static_cast<double>(g) * static_cast<double>(g);
  }
  *squares += static_cast<float>(sum / static_cast<double>(width));
}

struct AdamStep {
  float beta1;
  float beta2;
  float rate;
  float epsilon;
};

template <class Gradient>
void adam(float* values, float* first, float* second, Gradient gradient, std::size_t width,
          const AdamStep& step) {
  const float keep1 = step.beta1;
  const float keep2 = step.beta2;
  const float take1 = 1.0f - keep1;
  const float take2 = 1.0f - keep2;
  const float rate = step.rate;
  const float epsilon = step.epsilon;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float m = keep1 * first[i] + take1 * g;
    const float v = keep2 * second[i] + take2 * g * g;
    first[i] = m;
    second[i] = v;
    values[i] -= rate * (m / (std::sqrt(v) + epsilon));
  }
}

// Where the powers of the betas lie in the row.
inline AdamStep step_of(const UpdateRule& rule, const float* powers) {
  return {rule.beta1, rule.beta2, rule.learning_rate * std::sqrt(1.0f - powers[1]) / (1.0f - powers[0]),
          rule.epsilon};
}
inline void raise(const UpdateRule& rule, float* powers) {
  powers[0] *= rule.beta1;
  powers[1] *= rule.beta2;
}

// Every column moves by the moments of its own gradient and the row's; what the row keeps is their mean.
template <class Gradient>
void shared_adam(float* values, float* state, Gradient gradient, std::size_t width, const AdamStep& step) {
  const float m_before = state[0];
  const float v_before = state[1];
  double m_sum = 0.0;
  double v_sum = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float m = step.beta1 * m_before + (1.0f - step.beta1) * g;
    const float v = step.beta2 * v_before + (1.0f - step.beta2) * g * g;
    values[i] -= step.rate * (m / (std::sqrt(v) + step.epsilon));
    m_sum += m;
    v_sum += v;
  }
  state[0] = static_cast<float>(m_sum / static_cast<double>(width));
  state[1] = static_cast<float>(v_sum / static_cast<double>(width));
}

// Paddle's decays of it are no settings.
template <class Gradient>
void adam_d2sum(float* values, float* state, Gradient gradient, std::size_t width, const UpdateRule& rule) {
  constexpr float kSumDecay = 0.9999f;
  constexpr float kMomentDecay = 0.99f;
  float* counts = state;
  float* squares = state + width;
  float* moments = state + 2 * width;
  const float rate = rule.learning_rate;
  const float epsilon = rule.epsilon;
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float d = counts[i] * kSumDecay + 1.0f;
    const float s = squares[i] * kSumDecay + g * g;
    const float v = (moments[i] + g) * kMomentDecay - g;
    counts[i] = d;
    squares[i] = s;
    moments[i] = v;
    values[i] += rate * (v * std::sqrt((d + d * epsilon) / (s + d * epsilon)));
  }
}

// power is learning_rate_power, at most 0: n^-power is the root of n for -0.5.
template <class Gradient>
void ftrl(float* values, float* squares, float* linear, Gradient gradient, std::size_t width,
          const UpdateRule& rule) {
  const float rate = rule.learning_rate;
  const float l1 = rule.l1;
  const float l2 = rule.l2;
  const bool is_root = rule.learning_rate_power == -0.5f;
  const auto step = [=](float w, float& n, float& z, float g, float before, float after) {
    n += g * g;
    z += g - (after - before) / rate * w;
    const float toward = (z > 0.0f ? l1 : -l1) - z;
    return std::fabs(z) <= l1 ? 0.0f : toward / (after / rate + 2.0f * l2);
  };
  if (is_root) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < width; ++i) {
      const float g = gradient(i);
      const float n = squares[i];
      values[i] = step(values[i], squares[i], linear[i], g, std::sqrt(n), std::sqrt(n + g * g));
    }
    return;
  }
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient(i);
    const float n = squares[i];
    values[i] = step(values[i], squares[i], linear[i], g, std::pow(n, -rule.learning_rate_power),
                     std::pow(n + g * g, -rule.learning_rate_power));
  }
}

inline void clip(float* values, std::size_t width, float low, float high) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < width; ++i) {
    const float w = values[i];
    values[i] = w < low ? low : (w > high ? high : w);
  }
}

}  // namespace fleetrun::ps::loops
