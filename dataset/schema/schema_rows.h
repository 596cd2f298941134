// Bytes to lines that have the columns of a schema: what a reader to text and a reader to batches share.
//
// Strict: an empty line, a line with more or fewer columns, a header that is not the schema's,
// a line that is too long.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "dataset/schema/field_lines.h"
#include "dataset/schema/schema.h"
#include "dataset/text/multi_slot_parser.h"

namespace fleetrun::dataset {

class SchemaRows {
 public:
  explicit SchemaRows(const Schema& schema, std::size_t max_line_bytes = kMaxLineBytes);

  // As MultiSlotParser has them.
  void begin_input() noexcept {
    lines_.begin_input();
    skipping_ = false;
  }
  std::span<char> room() { return lines_.room(); }
  void commit(std::size_t bytes) { lines_.commit(bytes); }
  void end_input() { lines_.end_input(); }
  bool has_partial_line() const noexcept { return lines_.has_partial_line(); }

  enum class Outcome { row, more, bad };
  /// Moves to the next line that is an example.
  Outcome next();
  /// The field of a column below the schema's number of them.
  std::string_view field(std::size_t column) const noexcept { return lines_.field(column); }

  /// Goes on after a bad line: the next row is that of the line after it.
  void skip_bad_line() noexcept;

  /// Notes that the line's field of `column` is not what it should be.
  void fail(std::size_t column, const std::string& what);
  const LineFault& fault() const noexcept { return fault_; }

 private:
  bool check_line();
  bool check_header();
  bool fail_line(std::size_t at, const std::string& what);

  const Schema schema_;
  const std::size_t max_line_bytes_;
  FieldLines lines_;
  LineFault fault_;
  bool skipping_ = false;  // the rest of a line that was too long
};

}  // namespace fleetrun::dataset
