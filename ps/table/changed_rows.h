// Which rows of a shard have changed, and which have gone, for exports of what has changed since an earlier
// one. Time is counted in intervals: each export ends one and begins the next (ps/table/change_marks.h).
// Before the first export nothing is noted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace fleetrun::ps {

/// An interval of a server, from 1; 0: before the first.
using Interval = std::uint32_t;

/// What an export holds: what has changed from the interval `since` on (0: all rows); `next` begins with it.
struct ChangeWindow {
  Interval since = 0;
  Interval next = 0;

  bool is_export() const noexcept { return next != 0; }
  bool holds_all() const noexcept { return since == 0; }
};

/// Threads: one at a time.
class ChangedRows {
 public:
  void begin(Interval interval) noexcept { now_ = interval; }

  // What happens to rows, and to their numbers in memory.

  void change(std::uint32_t row) {
    if (now_ == 0) return;
    if (row >= rows_.size()) rows_.resize(row + 1);
    rows_[row] = now_;
  }
  void make(std::uint32_t row, std::uint64_t key) {
    if (now_ == 0) return;
    erased_.erase(key);
    cold_.erase(key);
    change(row);
  }
  /// `rows`: how many the shard has; so many erased keys are kept at least.
  void erase(std::uint64_t key, std::uint64_t rows) {
    if (now_ == 0) return;
    cold_.erase(key);
    if (erased_.size() >= std::max(kErased, rows)) {
      erased_.clear();
      known_from_ = now_ + 1;
    }
    erased_[key] = now_;
  }
  /// The row leaves memory for the cold ones …
  void go(std::uint32_t row, std::uint64_t key) {
    if (const Interval last = of(row); last != 0) cold_[key] = last;
  }
  /// … changes there …
  void change_cold(std::uint64_t key) {
    if (now_ != 0) cold_[key] = now_;
  }
  /// … and comes back.
  void come(std::uint32_t row, std::uint64_t key) {
    if (now_ == 0) return;
    if (row >= rows_.size()) rows_.resize(row + 1);
    const auto cold = cold_.extract(key);
    rows_[row] = cold.empty() ? 0 : cold.mapped();
  }

  // What an export asks.

  /// Whether all that has gone since then is known.
  bool knows(Interval since) const noexcept { return since >= known_from_; }
  bool has_changed(std::uint32_t row, Interval since) const noexcept { return of(row) >= since; }
  std::vector<std::uint64_t> cold(Interval since) const { return keys_of(cold_, since); }
  std::vector<std::uint64_t> erased(Interval since) const { return keys_of(erased_, since); }
  std::size_t bytes() const noexcept {
    return rows_.capacity() * sizeof(Interval) + (cold_.size() + erased_.size()) * kEntryBytes;
  }

 private:
  using Keys = std::unordered_map<std::uint64_t, Interval>;
  static constexpr std::uint64_t kErased = 1 << 14;
  static constexpr std::size_t kEntryBytes = 40;  // of a map: its node and its share of the buckets

  Interval of(std::uint32_t row) const noexcept { return row < rows_.size() ? rows_[row] : 0; }
  /// In order, so that equal tables are exported alike.
  static std::vector<std::uint64_t> keys_of(const Keys& keys, Interval since) {
    std::vector<std::uint64_t> out;
    for (const auto& [key, last] : keys)
      if (last >= since) out.push_back(key);
    std::sort(out.begin(), out.end());
    return out;
  }

  Interval now_ = 0;
  Interval known_from_ = 0;
  std::vector<Interval> rows_;  // when each row in memory changed last
  Keys cold_;
  Keys erased_;
};

}  // namespace fleetrun::ps
