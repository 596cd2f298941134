// One rank's view of a group in shared memory: how it waits for the others,
// wakes them, and learns that the group has failed.
//
// A rank waits for another one by looking at that one's words in a loop for some microseconds, where every
// rank has a core; then by letting others have its core, a few times or, where every rank has one, for some
// more microseconds; and then by sleeping on that one's `turn`. Where it gets its core back late, other
// processes want it, and who sleeps gets it sooner than who lets them go first: so it does for a while.
// A group fails once: the first failure counts,
// is the same for all ranks, and wakes everybody.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "collective/base/communicator.h"
#include "collective/base/time_limit.h"
#include "collective/cpu/shared_segment.h"

namespace fleetrun::collective {

class SharedGroup {
 public:
  using Clock = std::chrono::steady_clock;

  SharedGroup(SharedSegment& segment, Place place, TimeLimit call_within);

  SharedSegment& segment() noexcept { return *segment_; }
  const Place& place() const noexcept { return place_; }
  int rank() const noexcept { return place_.rank; }
  int size() const noexcept { return place_.size; }
  SharedRank& of(int rank) noexcept { return segment_->rank(rank); }
  /// "group world: "
  std::string prefix() const { return "group " + place_.group + ": "; }

  /// Words of `rank`'s have been changed, by sequentially consistent stores: wakes those that sleep for them.
  void wake(int rank) noexcept;
  /// Waits until `holds()`, which looks at words of `at`'s that `whom` changes. Returns false when `whom` has
  /// left or the time for the call is over (`deadline`, which is set by the first wait that sleeps).
  /// Throws: the group's failure.
  template <class Holds>
  bool wait(int at, int whom, std::optional<Clock::time_point>& deadline, const Holds& holds) {
    return holds() || (spins_ ? spin(holds) : step_aside(holds)) || sleep(at, whom, deadline, holds);
  }

  /// wait() for what may be long in coming: sleeps soon, and lets nobody go first.
  template <class Holds>
  bool wait_long(int at, int whom, std::optional<Clock::time_point>& deadline, const Holds& holds) {
    return holds() || (spins_ && look(holds)) || sleep(at, whom, deadline, holds);
  }

  /// The group's failure becomes `why` unless it has one. Wakes everybody. Threads: any.
  void fail(const Error& why) noexcept;
  /// Fails the group and throws its failure.
  [[noreturn]] void fail_and_throw(const Error& why);
  bool has_failed() const noexcept { return segment_->head().failed_by.load(std::memory_order_acquire) != 0; }
  [[noreturn]] void throw_failure() const;
  void throw_if_failed() const {
    if (has_failed()) [[unlikely]]
      throw_failure();
  }

  bool has_left(int rank) noexcept { return of(rank).has_left.load(std::memory_order_acquire) != 0; }
  /// This rank makes no more calls.
  void leave() noexcept;
  std::chrono::milliseconds call_within() const noexcept { return call_within_.time(); }

 private:
  static constexpr std::chrono::microseconds kSpin{10};
  /// Longer than waking a rank that sleeps takes: two ranks that have both slept do
  /// not go on to wake each other for ever.
  static constexpr std::chrono::microseconds kStandBy{100};
  static constexpr int kYields = 8;
  /// What letting others have the core takes at most where only ranks want it: a step of a call.
  static constexpr std::chrono::microseconds kLate{500};
  static constexpr int kCrowded = 256;  // waits

  template <class Holds>
  static bool look(const Holds& holds) {
    const auto begin = Clock::now();
    while (Clock::now() < begin + kSpin) {
      for (int i = 0; i < 16; ++i) {
        if (holds()) return true;
        relax();
      }
    }
    return false;
  }

  template <class Holds>
  bool spin(const Holds& holds) {
    const auto begin = Clock::now();
    if (look(holds)) return true;
    // The other rank may want this core after all: other processes have theirs.
    do {
      if (step_aside(holds)) return true;
    } while (crowded_ == 0 && Clock::now() < begin + kStandBy);
    return false;
  }

  /// Lets the others have the core, which costs nothing when nobody wants it.
  template <class Holds>
  bool step_aside(const Holds& holds) {
    throw_if_failed();
    if (crowded_ > 0) {
      --crowded_;
      return false;
    }
    auto begin = Clock::now();
    for (int i = 0; i < kYields && crowded_ == 0; ++i) {
      ::sched_yield();
      const auto end = Clock::now();
      if (end - begin > kLate) crowded_ = kCrowded;
      if (holds()) return true;
      begin = end;
    }
    return false;
  }

  template <class Holds>
  bool sleep(int at, int whom, std::optional<Clock::time_point>& deadline, const Holds& holds) {
    if (!deadline) deadline = Clock::now() + call_within();
    SharedRank& words = of(at);
    const Sleeper sleeper(words.sleepers);
    for (;;) {
      const std::uint32_t turn = words.turn.load();
      const bool left = has_left(whom);
      if (holds()) return true;
      throw_if_failed();
      if (left || !sleep_on(words.turn, turn, *deadline)) return holds();
    }
  }

  struct Sleeper {
    explicit Sleeper(std::atomic<std::uint32_t>& count) : count(count) { count.fetch_add(1); }
    ~Sleeper() { count.fetch_sub(1); }
    Sleeper(const Sleeper&) = delete;
    std::atomic<std::uint32_t>& count;
  };

  void wake_everybody() noexcept;
  static void relax() noexcept;
  /// Until `word` is no longer `seen`, or for no reason; false: the deadline has passed.
  static bool sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Clock::time_point deadline);

  SharedSegment* segment_;
  Place place_;
  TimeLimit call_within_;
  bool spins_;
  int crowded_ = 0;  // waits that are still to sleep at once
  std::mutex failing_;
};

}  // namespace fleetrun::collective
