// MultiSlot text to batches. A line is one example: for each slot in order `count value … value`, separated
// by blanks. The slots' names are not in the text.
//
//   slots: words (int64), price (float32, dense, width 2), label (int64, dense, width 1)
//   text:  3 1002 7 45  2 0.5 1e-3  1 0
//
// Where asked for, an id, a content and a log key stand before the slots (line_prefixes.h). An unused slot is
// passed over: its count must be one, its values may be anything.
//
// Strict where a mistake would turn into invented or lost values: a count of 0, a count that a dense slot
// does not have, a line that ends early or goes on after the last slot, an empty line, and anything that is
// not a number of the slot's type is a LineFault. Accepted: several separators (blank, \t, \v, \f, \r, so
// also CRLF), separators at either end, a last line without a line feed, and the numbers that number_text.h
// describes.
//
// The parser reads from a buffer of its own, which the caller fills: room(), commit(), … end_input(). The
// result does not depend on how the bytes are cut. Memory: the buffer, at most one line longer than its start
// size; never more because of a number that the text claims.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/text/line_prefixes.h"

namespace fleetrun::dataset {

/// Why a line is not an example.
struct LineFault {
  std::uint64_t line = 1;  // of the input, from 1
  std::size_t column = 1;  // in bytes, from 1
  std::string slot = {};   // its name; empty for a fault of the whole line or of a prefix
  std::string what = {};   // "7.9 is not an integer id"
  bool packed = false;     // the input is not text, but what gzip or another packed
  bool operator==(const LineFault&) const = default;
};

/// "LINE:COLUMN: slot 'NAME': WHAT"
std::string to_string(const LineFault& fault);

inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

struct MultiSlotParserOptions {
  /// What every line begins with.
  LinePrefixes prefixes = {};
  /// Without the line feed.
  std::size_t max_line_bytes = kMaxLineBytes;
};

class MultiSlotParser {
 public:
  /// Copies what it needs of `slots`.
  explicit MultiSlotParser(std::span<const Slot> slots, MultiSlotParserOptions options = {});
  ~MultiSlotParser();
  MultiSlotParser(const MultiSlotParser&) = delete;
  MultiSlotParser& operator=(const MultiSlotParser&) = delete;

  // ---- Input ----
  /// Forgets bytes that are left and counts lines from 1 again. A batch that has been begun goes on.
  void begin_input() noexcept;
  /// Space for the next bytes, never empty. Valid until the next call. Only after parse() returned `more`.
  std::span<char> room();
  /// `bytes` of room() were filled.
  void commit(std::size_t bytes) noexcept;
  /// No more bytes: a last line without a line feed counts as one.
  void end_input();
  /// Whether bytes of a line that has not ended are waiting for the rest.
  bool has_partial_line() const noexcept;

  // ---- Output ----
  /// Starts filling `batch` with up to `rows` (at least 1) examples; reuses its memory. `batch` must stay
  /// where it is until end_batch().
  void begin_batch(Batch& batch, std::size_t rows);
  enum class Outcome {
    more,  // all whole lines are taken: fill room(), or end the input
    full,  // the batch has its rows
    bad,   // fault() says why; the rows before the bad line are in the batch
  };
  Outcome parse();
  /// After `bad`: goes on behind the bad line, however long that is.
  void skip_bad_line() noexcept;
  /// Cuts the batch to the rows that it got, and returns their number (which may be 0).
  std::size_t end_batch();
  const LineFault& fault() const noexcept { return fault_; }
  /// The line of the fault, as far as it has come.
  std::string_view bad_line() const noexcept;

 private:
  struct Column;
  const char* parse_row(const char* text);
  const char* parse_prefixes(const char* text);
  const char* parse_prefix(const char* text, std::string_view kind, std::string_view& token);
  const char* skip_unused(const Column& column, const char* text);
  bool take_one_id(Column& column, const char*& text, std::size_t row) noexcept;
  const char* parse_count(const Column& column, const char* text, std::uint64_t& count);
  template <auto read, class T>
  const char* parse_values(Column& column, T* const& values, const char* text, std::uint64_t count);
  const char* parse_slow(Column& column, const char* text, std::size_t at, std::uint64_t done,
                         std::uint64_t count);
  const char* fail(const char* at, const Column* column, std::string what);
  const char* fail_length();
  void judge_first_line();
  std::string_view token_at(const char* text) const noexcept;

  const MultiSlotParserOptions options_;
  std::vector<Column> columns_;
  std::size_t batch_slots_ = 0;  // the used ones
  // buffer_[begin_, end_) waits; of it [begin_, lines_end_) are whole lines.
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t lines_end_ = 0;
  std::uint64_t line_ = 1;
  bool discarding_ = false;  // up to the next line feed
  Batch* batch_ = nullptr;
  std::size_t wanted_rows_ = 0;
  std::size_t row_capacity_ = 0;
  const char* line_start_ = nullptr;
  LineFault fault_;
};

/// Parses a whole text into `batch` (all rows); the fault of its first bad line, if there is one, with the
/// rows before it in `batch`.
std::optional<LineFault> parse_multi_slot(std::span<const Slot> slots, std::string_view text, Batch& batch,
                                          LinePrefixes prefixes = {});

}  // namespace fleetrun::dataset
