// Examples in memory, packed (example_format.h): batches go in,
// and examples come out as batches in any order.
//
// Each example has a number, which it keeps: its block's times kBlockRows, and its row in it. Numbers of a
// store that is filled in the same order are the same; not every number below the last has an example.
//
// Memory: the values, and a few bytes an example where counts differ; nothing for slots with one count
// everywhere. Threads: one while it changes; any while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/memory/example_format.h"
#include "dataset/memory/pages.h"
#include "dataset/text/line_prefixes.h"

namespace fleetrun::dataset {

using ExampleNumber = std::uint32_t;

class ExampleStore {
 public:
  /// `slots`: the used ones, as a Batch has them. `prefixes`: what batches bring beside them.
  ExampleStore(std::vector<Slot> slots, LinePrefixes prefixes);

  const std::vector<Slot>& slots() const noexcept { return slots_; }
  LinePrefixes prefixes() const noexcept { return prefixes_; }
  const std::vector<ExampleField>& fields() const noexcept { return fields_; }

  /// Adds the examples of `batch`. Throws: Error(data) when there are more than numbers can be given to.
  void add(const Batch& batch);
  /// Adds what another store of the same slots has, behind what is here.
  void append(ExampleStore other);
  /// Adds a block from elsewhere: bytes() of one, as blocks() shows them.
  /// Throws: Error(data) when it is broken.
  void add_block(std::vector<std::uint32_t> counts, std::uint32_t rows, std::span<const std::byte> bytes);

  std::size_t rows() const noexcept { return rows_; }
  /// Of the blocks.
  std::size_t bytes() const noexcept { return bytes_; }
  std::span<const ExampleBlock> blocks() const noexcept { return blocks_; }
  /// All numbers, in the order in which the examples came.
  std::vector<ExampleNumber> numbers() const;
  /// Lets the memory of the blocks [first, last) go; their numbers are not to be used again.
  void drop_blocks(std::size_t first, std::size_t last) noexcept;

  /// Fills `batch` with the examples of these numbers, whose memory is used again.
  void gather(std::span<const ExampleNumber> numbers, Batch& batch) const;
  /// Puts the values that those examples have in `slots` (places in a Batch) where the batch has its own.
  void gather_slots(std::span<const ExampleNumber> numbers, std::span<const std::size_t> slots,
                    Batch& batch) const;
  /// Appends the ids of their lines.
  void gather_ids(std::span<const ExampleNumber> numbers, std::vector<std::string>& ids) const;

 private:
  void add_rows(const Batch& batch, std::size_t begin, std::size_t end);
  void keep(ExampleBlock block);
  void gather_fields(std::span<const ExampleNumber> numbers, const std::vector<bool>& wanted,
                     Batch& batch) const;

  std::vector<Slot> slots_;
  LinePrefixes prefixes_;
  std::vector<ExampleField> fields_;
  std::vector<ExampleBlock> blocks_;
  PageSource pages_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace fleetrun::dataset
