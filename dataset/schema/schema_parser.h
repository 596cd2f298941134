// Delimited text straight to batches, by a schema: the values of `fleetrun data read`,
// without the text between.
//
// Threads: one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/schema/schema.h"
#include "dataset/schema/schema_rows.h"
#include "dataset/schema/text_cache.h"
#include "dataset/schema/value_steps.h"
#include "dataset/text/multi_slot_parser.h"

namespace fleetrun::dataset {

class SchemaParser {
 public:
  /// `slots` as schema_for() was asked for `schema`: a batch has them as they say.
  SchemaParser(const Schema& schema, std::span<const Slot> slots, std::size_t max_line_bytes = kMaxLineBytes);

  // As MultiSlotParser has them.
  void begin_input() noexcept { rows_.begin_input(); }
  std::span<char> room() { return rows_.room(); }
  void commit(std::size_t bytes) { rows_.commit(bytes); }
  void end_input() { rows_.end_input(); }
  bool has_partial_line() const noexcept { return rows_.has_partial_line(); }
  void begin_batch(Batch& batch, std::size_t rows);
  MultiSlotParser::Outcome parse();
  std::size_t end_batch();
  void skip_bad_line() noexcept { rows_.skip_bad_line(); }
  const LineFault& fault() const noexcept { return rows_.fault(); }

 private:
  /// What is looked at for every value; the rest is in steps_.
  /// Row r's is to go to ints or floats [r * stride].
  struct Parsed {
    std::uint32_t column = 0;  // of the text
    bool is_hash = false;
    std::uint32_t slot = 0;
    std::uint32_t place = 0;   // within the slot
    std::uint32_t stride = 1;  // the slot's values per row
    std::uint32_t table = 0;   // of the cache, unless it is a hash
    ShortHash hash;
    std::int64_t* ints = nullptr;  // in the batch; the one of the slot's type
    float* floats = nullptr;

    /// Puts a value, by its bits, into row `row` of the batch.
    void put(std::size_t row, std::uint64_t bits) const noexcept {
      if (floats)
        floats[row * stride] = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      else
        ints[row * stride] = static_cast<std::int64_t>(bits);
    }
  };
  void reserve_rows(std::size_t rows);
  bool parse_row();
  bool parse_other(std::size_t index, std::string_view field);
  bool parse_steps(std::size_t index, std::string_view field, std::uint64_t& bits);

  SchemaRows rows_;
  std::vector<Slot> slots_;
  std::vector<Parsed> values_;
  std::vector<ValueSteps> steps_;  // parallel to values_
  TextCache cache_;                // the bits of values
  Batch* batch_ = nullptr;
  std::size_t wanted_rows_ = 0;
  std::size_t row_capacity_ = 0;
};

}  // namespace fleetrun::dataset
