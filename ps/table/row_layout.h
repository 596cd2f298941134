// What lies where in a row, in floats:
//
//   sparse and ctr accessors:  statistics[4] | values[width] | state and steps
//                              of column 0 | state and steps of the rest | touched
//   plain:                     values[width] | state | steps | touched
//
//   statistics  slot u16 | unseen days u15, extended u1 | delta score f32 | show f32 | click f32
//   touched     with TableConfig::expire_seconds: the second (u32, ps/table/row_clock.h) of the last push
//   state       of one row of w values (ps/table/update_rule.h); steps is one word (u32), adam only
//
// This is what SparseTable::visit(), insert() and cuts show, and what a save holds;
// in memory the row's key, 8 bytes, lies before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// What a table with an accessor counts per row; the first 16 bytes of it.
struct Statistics {
  static constexpr std::uint16_t kNoSlot = 0xffff;
  static constexpr std::uint16_t kMaxDays = 0x7fff;

  /// The slot that the last push named.
  std::uint16_t slot = kNoSlot;
  /// Days since the last push (one more with each save of mode 3), and in the highest bit whether the columns
  /// from 1 on have been created; these are zeros until then.
  std::uint16_t days = 0;
  float delta_score = 0.0f;
  float show = 0.0f;
  float click = 0.0f;

  std::uint16_t unseen_days() const noexcept { return days & kMaxDays; }
  bool is_extended() const noexcept { return (days & ~kMaxDays) != 0; }
  void set_unseen_days(std::uint16_t value) noexcept {
    days = static_cast<std::uint16_t>((days & ~kMaxDays) | (value < kMaxDays ? value : kMaxDays));
  }
  void set_extended(bool value) noexcept {
    days = static_cast<std::uint16_t>(unseen_days() | (value ? ~kMaxDays : 0));
  }

  bool operator==(const Statistics&) const = default;
};
static_assert(sizeof(Statistics) == 4 * sizeof(float));

struct RowLayout {
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Columns that one rule updates together.
  struct Part {
    std::size_t column = 0;
    std::size_t width = 0;
    /// Where its state starts, and how much there is.
    std::size_t state = 0;
    std::size_t state_floats = 0;
    /// Where its count of updates is; kNone where the rule needs none.
    std::size_t steps = kNone;
  };

  /// Of a sparse table.
  explicit RowLayout(const TableConfig& config);

  /// Floats before the values: 0 or 4.
  std::size_t statistics = 0;
  std::size_t width = 0;
  /// One part for plain rows; column 0 and the others, if there are any, for those with statistics.
  std::array<Part, 2> parts = {};
  std::size_t part_count = 1;
  /// Where the second of the last push is; kNone where rows do not expire by it.
  std::size_t touched = kNone;
  /// Of the whole row.
  std::size_t floats = 0;
};

/// Only for rows that start with them.
inline Statistics read_statistics(const float* row) noexcept {
  Statistics out;
  std::memcpy(static_cast<void*>(&out), row, sizeof out);
  return out;
}
/// Only of rows that expire by time.
inline std::uint32_t read_second(const RowLayout& layout, const float* row) noexcept {
  std::uint32_t second = 0;
  std::memcpy(&second, row + layout.touched, sizeof second);
  return second;
}
inline void write_second(const RowLayout& layout, std::uint32_t second, float* row) noexcept {
  std::memcpy(row + layout.touched, &second, sizeof second);
}
inline void write_statistics(const Statistics& statistics, float* row) noexcept {
  std::memcpy(row, &statistics, sizeof statistics);
}

}  // namespace fleetrun::ps
