// How examples lie in memory: one after the other, each in one piece, so that reading one in any order costs
// a few cache lines, whatever the number of its slots.
//
//   block    [start of each example: u32, from the block's first byte]  only where the examples' sizes differ
//            example, example, …                                        at most kBlockRows
//   example  [count of each varying field]   one byte, or 255 and a u32
//            values of field 0, values of field 1, …                    not aligned
//
// The fields are the used slots (8 bytes an id, 4 a float), then what was kept of the line's prefixes: id and
// content by their bytes, the log key in 16. A field has either the same count in all examples of a block,
// which is then not stored with them, or it varies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/text/line_prefixes.h"

namespace fleetrun::dataset {

inline constexpr std::size_t kBlockRows = 1024;
inline constexpr std::uint32_t kVaries = UINT32_MAX;
/// Bytes of a block at most: starts are 32 bits wide.
inline constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 31;

struct ExampleField {
  enum class Kind { ints, floats, id, content, log_key };
  Kind kind = Kind::ints;
  std::uint32_t element = 8;      // bytes
  std::uint32_t count = kVaries;  // in every example; kVaries: as the data have it
  std::size_t slot = 0;           // of ints and floats: its place in a Batch
};

/// `slots` has used ones only.
std::vector<ExampleField> example_fields(std::span<const Slot> slots, LinePrefixes prefixes);

/// What the examples of a block have in common.
struct BlockShape {
  std::vector<std::uint32_t> counts;  // of each field, or kVaries
  std::uint32_t stride = 0;           // bytes of each example; 0: they differ
  std::uint32_t varying = 0;          // fields

  bool operator==(const BlockShape&) const = default;
};
BlockShape shape_of(std::span<const ExampleField> fields, std::vector<std::uint32_t> counts);

struct ExampleBlock {
  std::shared_ptr<const std::byte> memory;
  std::shared_ptr<const BlockShape> shape;
  std::uint32_t rows = 0;
  std::uint32_t bytes = 0;

  /// Where example `row` begins: its counts, if it has any.
  const std::byte* example(std::size_t row) const noexcept;
};

/// Reads a count of a varying field and moves behind it.
std::uint32_t take_count(const std::byte*& head) noexcept;

/// Throws: Error(data) unless the block is what its shape says, to its last byte:
/// for blocks that come from elsewhere.
void check_block(std::span<const ExampleField> fields, const ExampleBlock& block);

}  // namespace fleetrun::dataset
