#include "ps/geo/local_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

namespace fleetrun::ps {

namespace {

using Atomic = std::atomic_ref<std::uint8_t>;

}  // namespace

std::vector<std::uint64_t> LocalRows::claim(std::span<const std::uint64_t> keys) {
  std::vector<std::uint64_t> missing;
  {
    const std::shared_lock lock(mutex_);
    for (const std::uint64_t key : keys) {
      const std::uint32_t number = index_.find(key);
      // Only follow(), arrive() and replace() hold rows, which they do with the lock to themselves.
      if (number == KeyIndex::kNone || Atomic(marks_[number]).load() == kAwaited) missing.push_back(key);
    }
  }
  if (missing.empty()) return missing;
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t key : missing) index_.add(key);
  marks_.resize(index_.size(), kAwaited);
  server_.resize(index_.size() * width_);
  return missing;
}

void LocalRows::hold(std::uint32_t number, std::uint64_t key, const float* values) {
  local_.assign({&key, 1}, values);
  std::copy_n(values, width_, server_.begin() + static_cast<std::ptrdiff_t>(number * width_));
  marks_[number] = kHeld;
}

void LocalRows::arrive(std::span<const std::uint64_t> keys, std::span<const float> values) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t number = index_.find(keys[i]);
    if (number != KeyIndex::kNone && marks_[number] == kAwaited)
      hold(number, keys[i], values.data() + i * width_);
  }
}

void LocalRows::replace(std::span<const std::uint64_t> keys, std::span<const float> values) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t number = index_.find(keys[i]);
    if (number != KeyIndex::kNone) hold(number, keys[i], values.data() + i * width_);
  }
}

std::size_t LocalRows::touch(std::span<const std::uint64_t> keys) {
  std::size_t count = 0;
  const std::shared_lock lock(mutex_);
  for (const std::uint64_t key : keys) {
    const std::uint32_t number = index_.find(key);
    if (number == KeyIndex::kNone) continue;
    const Atomic mark(marks_[number]);
    std::uint8_t held = kHeld;
    count += mark.compare_exchange_strong(held, kTouched);
  }
  return count;
}

LocalRows::Changes LocalRows::take_changes(float share) {
  const std::shared_lock lock(mutex_);
  Changes out;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    std::uint8_t touched = kTouched;
    // Unmarked before it is read, so that a change that is not read marks the row again.
    if (!Atomic(marks_[i]).compare_exchange_strong(touched, kHeld)) continue;
    numbers.push_back(static_cast<std::uint32_t>(i));
    out.keys.push_back(index_.keys()[i]);
  }
  out.values.resize(out.keys.size() * width_);
  if (!out.keys.empty()) local_.pull(out.keys, out.values.data());
  // Only the thread that exchanges reads or writes the servers' values of held rows: this, and follow().
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    float* value = out.values.data() + i * width_;
    float* server = server_.data() + numbers[i] * width_;
    for (std::size_t c = 0; c < width_; ++c) {
      value[c] = (value[c] - server[c]) * share;
      server[c] += value[c];
    }
  }
  return out;
}

void LocalRows::follow(std::span<const std::uint64_t> keys, std::span<const float> values) {
  std::vector<std::uint64_t> held;
  std::vector<float> changes;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t number = index_.find(keys[i]);
    if (number == KeyIndex::kNone) continue;
    const float* now = values.data() + i * width_;
    if (marks_[number] == kAwaited) {
      hold(number, keys[i], now);
      continue;
    }
    float* server = server_.data() + std::size_t{number} * width_;
    held.push_back(keys[i]);
    for (std::size_t c = 0; c < width_; ++c) changes.push_back(now[c] - server[c]);
    std::copy_n(now, width_, server);
  }
  if (!held.empty()) local_.add(held, changes.data());
}

std::vector<std::uint64_t> LocalRows::held_keys() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i] != kAwaited) out.push_back(index_.keys()[i]);
  }
  return out;
}

}  // namespace fleetrun::ps
