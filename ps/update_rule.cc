// Adam's corrections need two powers per row; they depend on the step alone, so they are tabulated up to the
// step at which both powers no longer change a float32 (18 thousand steps for beta2 = 0.999).
#include "ps/update_rule.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::ps {
namespace {

constexpr std::uint32_t kMostCorrections = 65536;

void apply_sgd(float* __restrict values, const float* __restrict gradient, std::size_t width, float rate) {
  for (std::size_t i = 0; i < width; ++i) values[i] -= rate * gradient[i];
}

void apply_sum(float* __restrict values, const float* __restrict gradient, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) values[i] += gradient[i];
}

void apply_adagrad(float* __restrict values, float* __restrict squares, const float* __restrict gradient,
                   std::size_t width, const UpdateRule& rule) {
  const float rate = rule.learning_rate;
  const float epsilon = rule.epsilon;
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient[i];
    const float sum = squares[i] + g * g;
    squares[i] = sum;
    values[i] -= rate * g / (std::sqrt(sum) + epsilon);
  }
}

struct AdamStep {
  float beta1;
  float beta2;
  float rate;
  float epsilon;
};

void apply_adam(float* __restrict values, float* __restrict first, float* __restrict second,
                const float* __restrict gradient, std::size_t width, const AdamStep& step) {
  const float keep1 = step.beta1;
  const float keep2 = step.beta2;
  const float take1 = 1.0f - keep1;
  const float take2 = 1.0f - keep2;
  const float rate = step.rate;
  const float epsilon = step.epsilon;
  for (std::size_t i = 0; i < width; ++i) {
    const float g = gradient[i];
    const float m = keep1 * first[i] + take1 * g;
    const float v = keep2 * second[i] + take2 * g * g;
    first[i] = m;
    second[i] = v;
    values[i] -= rate * (m / (std::sqrt(v) + epsilon));
  }
}

}  // namespace

Updater::Updater(const UpdateRule& rule) : rule_(rule) {
  if (!counts_steps()) return;
  constexpr double kInvisible = 0x1p-26;
  for (std::uint32_t step = 1; step <= kMostCorrections && !settled_; ++step) {
    corrections_.push_back(compute_correction(step));
    settled_ = std::pow(static_cast<double>(rule_.beta1), step) < kInvisible &&
               std::pow(static_cast<double>(rule_.beta2), step) < kInvisible;
  }
}

std::size_t Updater::state_floats(std::size_t width) const noexcept {
  switch (rule_.kind) {
    case UpdateRule::Kind::sgd:
    case UpdateRule::Kind::sum:
      return 0;
    case UpdateRule::Kind::adagrad:
      return width;
    case UpdateRule::Kind::adam:
      return 2 * width;
    default:
      break;
  }
  return 0;
}

void Updater::reset(std::span<float> state) const noexcept {
  const bool adagrad = rule_.kind == UpdateRule::Kind::adagrad;
  std::fill(state.begin(), state.end(), adagrad ? rule_.initial_accumulator : 0.0f);
}

Updater::Correction Updater::compute_correction(std::uint32_t step) const noexcept {
  const double left1 = 1.0 - std::pow(static_cast<double>(rule_.beta1), step);
  const double left2 = std::sqrt(1.0 - std::pow(static_cast<double>(rule_.beta2), step));
  return {static_cast<float>(rule_.learning_rate * left2 / left1), static_cast<float>(rule_.epsilon * left2)};
}

Updater::Correction Updater::correction(std::uint32_t step) const noexcept {
  if (step >= 1 && step <= corrections_.size()) return corrections_[step - 1];
  return settled_ ? corrections_.back() : compute_correction(step);
}

void Updater::apply(float* values, float* state, const float* gradient, std::size_t width,
                    std::uint32_t step) const noexcept {
  switch (rule_.kind) {
    case UpdateRule::Kind::sgd:
      return apply_sgd(values, gradient, width, rule_.learning_rate);
    case UpdateRule::Kind::sum:
      return apply_sum(values, gradient, width);
    case UpdateRule::Kind::adagrad:
      return apply_adagrad(values, state, gradient, width, rule_);
    case UpdateRule::Kind::adam: {
      const Correction now = correction(step);
      return apply_adam(values, state, state + width, gradient, width,
                        {rule_.beta1, rule_.beta2, now.rate, now.epsilon});
    }
    default:
      break;
  }
}

}  // namespace fleetrun::ps
