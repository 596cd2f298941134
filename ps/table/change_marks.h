// The exports of a server's tables: which interval (ps/table/changed_rows.h) began with each of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "ps/table/changed_rows.h"

namespace fleetrun::ps {

/// What an export is called: its own number, and that of the export whose changes it follows;
/// `since` 0: it holds all rows. Both 0: a save that is none.
struct Changes {
  std::uint64_t since = 0;
  std::uint64_t number = 0;

  bool is_export() const noexcept { return number != 0; }
  bool operator==(const Changes&) const = default;
};

/// Threads: all calls may be made from several threads at once.
class ChangeMarks {
 public:
  /// Ends the interval. Throws: Error(config) when these tables know no export `since`,
  /// or have one of that number.
  ChangeWindow mark(const Changes& changes);

  // Tables that follow others: they were loaded from an export, and take what has changed since.

  /// The export whose rows these are; 0: they are of none, or were changed since.
  std::uint64_t number() const noexcept { return number_.load(std::memory_order_relaxed); }
  void set_number(std::uint64_t number) noexcept { number_.store(number, std::memory_order_relaxed); }
  void note_change() noexcept {
    if (number() != 0) set_number(0);
  }
  /// Whether the tables have these changes already. Throws: Error(config) when they are of another moment.
  bool has(const Changes& changes) const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, Interval> begun_;
  Interval last_ = 0;
  std::atomic<std::uint64_t> number_{0};
};

}  // namespace fleetrun::ps
