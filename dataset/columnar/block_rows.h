// The rows of one block after the other, appended to batches.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/columnar/columnar_file.h"

namespace fleetrun::dataset {

class BlockRows {
 public:
  explicit BlockRows(bool verify) : verify_(verify) {}

  /// Reads the slots `slots` (numbers of those of `file`) of a block, which must be used up before. `file` is
  /// borrowed. Throws: Error(data).
  void load(const ColumnarFile& file, std::uint64_t block, const std::vector<std::size_t>& slots);
  /// Rows that were not taken yet.
  std::size_t left() const noexcept { return rows_ - row_; }

  /// Makes `batch` empty, for up to `rows` rows of `slots`; its memory is used again.
  static void begin(Batch& batch, const std::vector<Slot>& slots, std::size_t rows);
  /// Appends up to `max` rows to a batch that was begun with the slots of load(); how many.
  std::size_t append(Batch& batch, std::size_t max);
  /// Cuts the batch to the rows that it has.
  static void end(Batch& batch, const std::vector<Slot>& slots);

 private:
  struct Column {
    Slot slot;
    ColumnarSection section;
    std::uint64_t each = 0;  // values of a row, where all have as many
    std::vector<std::byte> bytes;
    std::size_t next = 0;  // value

    const std::byte* counts() const noexcept { return bytes.data() + section.values * section.value_bytes; }
  };
  void check_counts(const ColumnarFile& file, std::uint64_t block, std::size_t slot, Column& column) const;
  std::size_t append_offsets(const Column& column, std::vector<std::size_t>& offsets, std::size_t row,
                             std::size_t rows) const;

  const bool verify_;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
  std::size_t row_ = 0;
};

}  // namespace fleetrun::dataset
