#include "collective/cpu/shared_group.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <utility>

namespace fleetrun::collective {
namespace {

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void keep(std::span<char> place, std::string_view text) noexcept {
  const std::size_t bytes = std::min(text.size(), place.size() - 1);
  std::memcpy(place.data(), text.data(), bytes);
  place[bytes] = 0;
}

std::string kept(std::span<const char> place) {
  return std::string(place.data(), ::strnlen(place.data(), place.size()));
}

}  // namespace

SharedGroup::SharedGroup(SharedSegment& segment, Place place, TimeLimit call_within)
    : segment_(&segment),
      place_(std::move(place)),
      call_within_(std::move(call_within)),
      spins_(segment.head().spins != 0) {}

void SharedGroup::relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void SharedGroup::wake(int rank) noexcept {
  SharedRank& words = of(rank);
  // Who sleeps says so first, and then looks once more.
  if (words.sleepers.load() == 0) return;
  words.turn.fetch_add(1);
  wake_all(words.turn);
}

bool SharedGroup::sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
  if (left <= 0) return false;
  const timespec max{left / 1'000'000'000, left % 1'000'000'000};
  return ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &max, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

void SharedGroup::fail(const Error& why) noexcept {
  const std::lock_guard lock(failing_);
  if (has_failed()) return;
  SharedFailure& failure = of(rank()).failure;
  failure.kind = static_cast<std::int32_t>(why.kind());
  keep(failure.what, why.what());
  keep(failure.hint, why.hint());
  std::uint32_t none = 0;
  segment_->head().failed_by.compare_exchange_strong(none, static_cast<std::uint32_t>(rank()) + 1);
  wake_everybody();
}

void SharedGroup::fail_and_throw(const Error& why) {
  fail(why);
  throw_failure();
}

void SharedGroup::throw_failure() const {
  const std::uint32_t by = segment_->head().failed_by.load(std::memory_order_acquire);
  const SharedFailure& failure =
      segment_->rank(std::clamp(static_cast<int>(by) - 1, 0, place_.size - 1)).failure;
  throw Error(static_cast<ErrorKind>(failure.kind), kept(failure.what), kept(failure.hint));
}

void SharedGroup::leave() noexcept {
  of(rank()).has_left.store(1);
  wake_everybody();
}

void SharedGroup::wake_everybody() noexcept {
  for (int r = 0; r < size(); ++r) {
    of(r).turn.fetch_add(1);
    wake_all(of(r).turn);
  }
}

}  // namespace fleetrun::collective
