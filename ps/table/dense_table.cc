#include "ps/table/dense_table.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace fleetrun::ps {

DenseTable::DenseTable(const TableConfig& config, std::uint64_t size)
    : config_(config),
      updater_(config.rule),
      stripe_mutexes_((size + kStripe - 1) / kStripe),
      values_(size),
      state_(updater_.dense_state_floats() * size) {
  const std::size_t per_value = state_floats_per_value();
  for_stripes([&](std::size_t begin, std::size_t count) {
    updater_.reset_dense({state_.data() + begin * per_value, count * per_value});
  });
}

// Calls act(first value, number of values) for each stripe, under its lock.
template <class Act>
void DenseTable::for_stripes(Act act) const {
  for (std::size_t stripe = 0; stripe < stripe_mutexes_.size(); ++stripe) {
    const std::size_t begin = stripe * kStripe;
    const std::lock_guard lock(stripe_mutexes_[stripe]);
    act(begin, std::min(kStripe, values_.size() - begin));
  }
}

bool DenseTable::has_values() const {
  const std::lock_guard lock(steps_mutex_);
  return has_values_ || values_.empty();
}

void DenseTable::pull(std::span<float> values) const {
  assert(values.size() == values_.size());
  for_stripes([&](std::size_t begin, std::size_t count) {
    std::memcpy(values.data() + begin, values_.data() + begin, count * sizeof(float));
  });
}

void DenseTable::push(std::span<const float> gradients, float rate) {
  assert(gradients.size() == values_.size());
  std::uint32_t step = 0;
  {
    const std::lock_guard lock(steps_mutex_);
    if (steps_ != UINT32_MAX) ++steps_;
    step = steps_;
  }
  const std::size_t per_value = state_floats_per_value();
  for_stripes([&](std::size_t begin, std::size_t count) {
    updater_.apply_dense(values_.data() + begin, state_.data() + begin * per_value, gradients.data() + begin,
                         count, step, rate);
  });
}

void DenseTable::add(std::span<const float> changes) {
  assert(changes.size() == values_.size());
  for_stripes([&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) values_[i] += changes[i];
  });
}

void DenseTable::set(std::span<const float> values) {
  assert(values.size() == values_.size());
  const std::size_t per_value = state_floats_per_value();
  for_stripes([&](std::size_t begin, std::size_t count) {
    std::memcpy(values_.data() + begin, values.data() + begin, count * sizeof(float));
    updater_.reset_dense({state_.data() + begin * per_value, count * per_value});
  });
  const std::lock_guard lock(steps_mutex_);
  steps_ = 0;
  has_values_ = true;
}

DenseTable::Contents DenseTable::contents() const {
  Contents out;
  {
    const std::lock_guard lock(steps_mutex_);
    out.steps = steps_;
    out.has_values = has_values_ || values_.empty();
  }
  out.values.resize(values_.size());
  out.state.resize(state_.size());
  const std::size_t per_value = state_floats_per_value();
  for_stripes([&](std::size_t begin, std::size_t count) {
    std::copy_n(values_.begin() + begin, count, out.values.begin() + begin);
    for (std::size_t kind = 0; kind < per_value; ++kind) {
      std::copy_n(state_.begin() + begin * per_value + kind * count, count,
                  out.state.begin() + kind * values_.size() + begin);
    }
  });
  return out;
}

void DenseTable::restore(Contents contents) {
  assert(contents.values.size() == values_.size() && contents.state.size() == state_.size());
  const std::size_t per_value = state_floats_per_value();
  for_stripes([&](std::size_t begin, std::size_t count) {
    std::copy_n(contents.values.begin() + begin, count, values_.begin() + begin);
    for (std::size_t kind = 0; kind < per_value; ++kind) {
      std::copy_n(contents.state.begin() + kind * values_.size() + begin, count,
                  state_.begin() + begin * per_value + kind * count);
    }
  });
  const std::lock_guard lock(steps_mutex_);
  steps_ = contents.steps;
  has_values_ = contents.has_values;
}

}  // namespace fleetrun::ps
