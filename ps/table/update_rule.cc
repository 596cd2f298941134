// Adam's corrections need two powers per row; they depend on the step alone, so they are tabulated up to the
// step at which both powers no longer change a float32 (18 thousand steps for beta2 = 0.999).
//
// Each rule is a loop over the columns that the compiler vectorises (update_loops.h, moment_loops.h), in two
// kinds: gradients as they came, and with the decays added.
#include "ps/table/update_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ps/table/moment_loops.h"
#include "ps/table/update_loops.h"

namespace fleetrun::ps {
namespace {

constexpr std::uint32_t kMaxCorrections = 65536;

bool has_steps(UpdateRule::Kind kind) noexcept {
  return kind == UpdateRule::Kind::adam || kind == UpdateRule::Kind::pow_adam;
}

}  // namespace

Updater::Updater(const UpdateRule& rule)
    : rule_(rule),
      decays_(rule.l1_decay != 0.0f || rule.l2_decay != 0.0f),
      bounds_(rule.low != -std::numeric_limits<float>::infinity() ||
              rule.high != std::numeric_limits<float>::infinity()) {
  if (!has_steps(rule_.kind)) return;
  constexpr double kInvisible = 0x1p-26;
  for (std::uint32_t step = 1; step <= kMaxCorrections && !settled_; ++step) {
    corrections_.push_back(compute_correction(step));
    settled_ = std::pow(static_cast<double>(rule_.beta1), step) < kInvisible &&
               std::pow(static_cast<double>(rule_.beta2), step) < kInvisible;
  }
}

std::size_t Updater::state_floats(std::size_t width) const noexcept {
  const UpdateRuleRow& row = row_of(rule_.kind);
  return row.floats_per_value * width + row.floats_per_row;
}

std::size_t Updater::dense_state_floats() const noexcept {
  return rule_.kind == UpdateRule::Kind::pow_adam ? 2 : state_floats(1);
}

void Updater::reset(std::span<float> state) const noexcept {
  reset_dense(state);
  if (rule_.kind == UpdateRule::Kind::pow_adam || rule_.kind == UpdateRule::Kind::shared_adam) {
    state[state.size() - 2] = rule_.beta1;
    state[state.size() - 1] = rule_.beta2;
  }
}

void Updater::reset_dense(std::span<float> state) const noexcept {
  std::fill(state.begin(), state.end(), 0.0f);
  if (rule_.kind == UpdateRule::Kind::adagrad) std::ranges::fill(state, rule_.initial_accumulator);
  if (rule_.kind == UpdateRule::Kind::ftrl) {
    std::ranges::fill(state.first(state.size() / 2), rule_.initial_accumulator);
  }
}

Updater::Correction Updater::compute_correction(std::uint32_t step) const noexcept {
  const double left1 = 1.0 - std::pow(static_cast<double>(rule_.beta1), step);
  const double left2 = std::sqrt(1.0 - std::pow(static_cast<double>(rule_.beta2), step));
  const double epsilon_times = rule_.kind == UpdateRule::Kind::adam ? left2 : 1.0;
  return {static_cast<float>(rule_.learning_rate * left2 / left1),
          static_cast<float>(rule_.epsilon * epsilon_times)};
}

Updater::Correction Updater::correction(std::uint32_t step, float rate) const noexcept {
  Correction now = step >= 1 && step <= corrections_.size() ? corrections_[step - 1]
                   : settled_                               ? corrections_.back()
                                                            : compute_correction(step);
  now.rate *= rate;
  return now;
}

template <class Gradient>
void Updater::update(const UpdateRule& rule, float* values, float* state, Gradient gradient,
                     std::size_t width, std::uint32_t step, float scale, float rate) const noexcept {
  using enum UpdateRule::Kind;
  switch (rule.kind) {
    case sgd:
      return loops::sgd(values, gradient, width, rule.learning_rate);
    case sum:
      return loops::sum(values, gradient, width);
    case momentum:
      return loops::momentum(values, state, gradient, width, rule);
    case adagrad:
      return loops::adagrad(values, state, gradient, width, rule);
    case ftrl:
      return loops::ftrl(values, state, state + width, gradient, width, rule);
    case shared_adagrad:
      return loops::shared_adagrad(values, state, gradient, width, scale, rule);
    case std_adagrad:
      return loops::std_adagrad(values, state, gradient, width, scale, rule);
    case adam: {
      const Correction now = correction(step, rate);
      const loops::AdamStep adam{rule.beta1, rule.beta2, now.rate, now.epsilon};
      if (rule.own_decay != 0.0f) {
        const float keep = 1.0f - rule.learning_rate * rule.own_decay;
        return loops::adamw(values, state, state + width, gradient, width, adam, keep);
      }
      return loops::adam(values, state, state + width, gradient, width, adam);
    }
    case pow_adam: {
      float* powers = state + 2 * width;
      loops::adam(values, state, state + width, gradient, width, loops::step_of(rule, powers));
      return loops::raise(rule, powers);
    }
    case shared_adam:
      loops::shared_adam(values, state, gradient, width, loops::step_of(rule, state + 2));
      return loops::raise(rule, state + 2);
    case summary:
      return loops::summary(values, gradient, width);
    case adam_d2sum:
      return loops::adam_d2sum(values, state, gradient, width, rule);
    case rmsprop:
      return loops::rmsprop(values, state, gradient, width, rule);
    case adamax: {
      const double power = std::pow(static_cast<double>(rule.beta1), static_cast<double>(step));
      return loops::adamax(values, state, state + width, gradient, width, rule,
                           static_cast<float>(1.0 - power));
    }
    case adadelta:
      return loops::adadelta(values, state, state + width, gradient, width, rule);
  }
}

void Updater::apply(float* values, float* state, const float* gradient, std::size_t width, std::uint32_t step,
                    float scale, float rate) const noexcept {
  if (rule_.is_scheduled && rate != 1.0f) {
    UpdateRule rule = rule_;
    rule.learning_rate *= rate;
    move(rule, values, state, gradient, width, step, scale, rate);
  } else {
    move(rule_, values, state, gradient, width, step, scale, 1.0f);
  }
}

void Updater::move(const UpdateRule& rule, float* values, float* state, const float* gradient,
                   std::size_t width, std::uint32_t step, float scale, float rate) const noexcept {
  if (decays_) {
    update(rule, values, state, loops::Decayed{gradient, values, rule.l1_decay, rule.l2_decay}, width, step,
           scale, rate);
  } else {
    update(rule, values, state, loops::AsCame{gradient}, width, step, scale, rate);
  }
  if (bounds_) loops::clip(values, width, rule.low, rule.high);
}

void Updater::apply_dense(float* values, float* state, const float* gradient, std::size_t width,
                          std::uint32_t step, float rate) const noexcept {
  if (rule_.kind != UpdateRule::Kind::pow_adam)
    return apply(values, state, gradient, width, step, 1.0f, rate);
  const Correction now = correction(step, rule_.is_scheduled ? rate : 1.0f);
  const loops::AdamStep adam{rule_.beta1, rule_.beta2, now.rate, now.epsilon};
  if (decays_) {
    loops::adam(values, state, state + width,
                loops::Decayed{gradient, values, rule_.l1_decay, rule_.l2_decay}, width, adam);
  } else {
    loops::adam(values, state, state + width, loops::AsCame{gradient}, width, adam);
  }
  if (bounds_) loops::clip(values, width, rule_.low, rule_.high);
}

}  // namespace fleetrun::ps
