// What a reader hands to a trainer thread: the values of up to batch_size examples, slot by slot.
//
// Plain data, owned by whoever holds it; a reader refills the same Batch so that its buffers are reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::dataset {

/// The two types of the MultiSlot text format ("float" and "uint64"; 64-bit ids are kept as their int64
/// bits).
enum class SlotType { float32, int64 };

/// One slot of an example, in the order of `use_var`.
struct Slot {
  std::string name;
  SlotType type = SlotType::int64;
  /// A dense slot holds exactly `width` values in every example; a sparse one (dense == false) any number
  /// above 0.
  bool dense = false;
  std::int64_t width = 1;
  /// An unused slot is in the text, where its values are passed over whatever they are;
  /// it has no place in a Batch.
  bool used = true;

  bool operator==(const Slot&) const = default;
};

/// One slot's values for all examples of a batch; only the vector of the slot's type is used.
///
/// Shape: dense: values[rows * width], offsets empty. Sparse: values[offsets[rows]], example r owns
/// [offsets[r], offsets[r + 1]); offsets[rows + 1] starts with 0.
struct SlotValues {
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::size_t> offsets;

  bool operator==(const SlotValues&) const = default;
};

/// What the log key of a line says: three fields of its hexadecimal digits.
struct LogKey {
  std::uint64_t search_id = 0;
  std::uint32_t cmatch = 0;
  std::uint32_t rank = 0;

  bool operator==(const LogKey&) const = default;
};

/// What stands before the slots of each example: one entry per row, empty where the reader was not asked for
/// it. An example with a log key has it as its id, too.
struct RowPrefixes {
  std::vector<std::string> ids;
  std::vector<std::string> contents;
  std::vector<LogKey> log_keys;

  bool operator==(const RowPrefixes&) const = default;
};

/// `slots` is parallel to the used ones of the Slot list that the reader was made with.
struct Batch {
  std::size_t rows = 0;
  std::vector<SlotValues> slots;
  RowPrefixes prefixes;

  bool operator==(const Batch&) const = default;
};

}  // namespace fleetrun::dataset
