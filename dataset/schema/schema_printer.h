// Delimited text to MultiSlot text, by a schema: `fleetrun data read`. The bytes are those that Python's
// str() of the same values gives, so a reader in Python can be compared with it.
//
// Threads: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/schema/schema.h"
#include "dataset/schema/schema_rows.h"
#include "dataset/schema/text_cache.h"
#include "dataset/schema/value_steps.h"

namespace fleetrun::dataset {

class SchemaPrinter {
 public:
  explicit SchemaPrinter(const Schema& schema, std::size_t max_line_bytes = kMaxLineBytes);

  // As MultiSlotParser has them.
  void begin_input() noexcept { rows_.begin_input(); }
  std::span<char> room() { return rows_.room(); }
  void commit(std::size_t bytes) { rows_.commit(bytes); }
  void end_input() { rows_.end_input(); }

  /// Prints the whole lines that wait; false at one that is not an example:
  /// fault() says why, those before it are printed.
  bool print();
  const LineFault& fault() const noexcept { return rows_.fault(); }
  /// What has been printed, until the next print().
  std::string_view text() const noexcept { return {text_.data(), text_bytes_}; }

 private:
  /// What is looked at for every value; the rest is in steps_.
  struct Printed {
    std::array<char, 12> lead{};  // what stands in front of the value: the blank, and a slot's count
    std::uint8_t lead_bytes = 0;
    bool is_hash = false;
    bool is_float = false;
    std::uint32_t column = 0;
    std::uint32_t table = 0;  // of the cache, if it is not a hash
    ShortHash hash;
  };
  char* print_row(char* out);
  char* print_other(std::size_t index, std::string_view field, char* out);
  char* print_steps(std::size_t index, std::string_view field, char* out);

  SchemaRows rows_;
  std::vector<Printed> values_;
  std::vector<ValueSteps> steps_;  // parallel
  TextCache cache_;
  std::vector<char> text_;
  std::size_t text_bytes_ = 0;
  std::size_t row_bytes_ = 0;  // the most that a row can take
};

}  // namespace fleetrun::dataset
