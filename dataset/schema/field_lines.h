// Bytes to lines of fields. The caller fills a buffer: room(), commit(), … end_input(); what comes out does
// not depend on how the bytes are cut. Memory: the buffer,
// at most one line longer than its start size, and an index of it.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dataset/schema/field_scan.h"

namespace fleetrun::dataset {

class FieldLines {
 public:
  explicit FieldLines(char delimiter);

  /// Forgets bytes that are left and counts lines from 1 again.
  void begin_input() noexcept;
  /// Space for the next bytes, never empty. Valid until the next call. Only when next() has returned false.
  std::span<char> room();
  void commit(std::size_t bytes);
  /// No more bytes: a last line without a line feed counts as one.
  void end_input();
  bool has_partial_line() const noexcept;

  /// Moves to the next whole line; false when there is none.
  /// A carriage return before its line feed is not part of it.
  bool next() noexcept;
  /// Of the line that next() moved to; at least 1.
  std::size_t fields() const noexcept { return fields_; }
  /// Field `index`, below fields(). kScanPadding bytes behind it are readable.
  std::string_view field(std::size_t index) const noexcept {
    const std::uint32_t* end = ends_.fields.data() + first_ + index;
    const std::uint32_t from = end[-1] + 1;
    return {buffer_.data() + from, end[0] - from};
  }
  std::string_view line() const noexcept { return {buffer_.data() + line_begin_, line_end_ - line_begin_}; }
  /// From 1.
  std::uint64_t line_number() const noexcept { return line_number_; }
  /// Bytes that wait after the line.
  std::size_t waiting() const noexcept { return end_ - begin_; }
  /// Drops them. Only when next() has returned false: they begin a line.
  void drop_waiting() noexcept;

 private:
  char delimiter_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // behind the line
  std::size_t end_ = 0;
  FieldEnds ends_;  // behind one that ends at -1
  std::size_t lines_done_ = 0;
  std::size_t fields_done_ = 1;
  // The line.
  std::size_t line_begin_ = 0;
  std::size_t line_end_ = 0;
  std::size_t first_ = 1;
  std::size_t fields_ = 0;
  bool carriage_return_ = false;  // its last field ends one byte before the line feed
  std::uint64_t line_number_ = 0;
};

}  // namespace fleetrun::dataset
