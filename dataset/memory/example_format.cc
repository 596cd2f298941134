#include "dataset/memory/example_format.h"

#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

constexpr std::uint32_t kLongCount = 255;

Error broken(const std::string& what) {
  return Error(ErrorKind::data, "a block of examples is broken: " + what);
}

/// The bytes that the example in [at, end) should have, read with care.
std::size_t example_bytes(std::span<const ExampleField> fields, const BlockShape& shape, const std::byte* at,
                          const std::byte* end) {
  const std::byte* head = at;
  std::size_t values = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::size_t count = shape.counts[f];
    if (count == kVaries) {
      if (head == end || (*head == std::byte{kLongCount} && end - head < 5))
        throw broken("an example ends in its counts");
      count = take_count(head);
    }
    values += count * fields[f].element;
  }
  return static_cast<std::size_t>(head - at) + values;
}

}  // namespace

std::vector<ExampleField> example_fields(std::span<const Slot> slots, LinePrefixes prefixes) {
  using Kind = ExampleField::Kind;
  std::vector<ExampleField> fields;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool is_float = slots[i].type == SlotType::float32;
    fields.push_back({is_float ? Kind::floats : Kind::ints, is_float ? 4U : 8U,
                      slots[i].dense ? static_cast<std::uint32_t>(slots[i].width) : kVaries, i});
  }
  if (prefixes.id || prefixes.log_key) fields.push_back({Kind::id, 1, kVaries, 0});
  if (prefixes.content) fields.push_back({Kind::content, 1, kVaries, 0});
  if (prefixes.log_key) fields.push_back({Kind::log_key, sizeof(LogKey), 1, 0});
  return fields;
}

BlockShape shape_of(std::span<const ExampleField> fields, std::vector<std::uint32_t> counts) {
  BlockShape shape;
  shape.counts = std::move(counts);
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (shape.counts[f] == kVaries)
      ++shape.varying;
    else
      bytes += std::uint64_t{shape.counts[f]} * fields[f].element;
  }
  if (shape.varying == 0 && bytes < kMaxBlockBytes) shape.stride = static_cast<std::uint32_t>(bytes);
  return shape;
}

const std::byte* ExampleBlock::example(std::size_t row) const noexcept {
  if (shape->stride != 0) return memory.get() + row * shape->stride;
  std::uint32_t start;
  std::memcpy(&start, memory.get() + row * sizeof start, sizeof start);
  return memory.get() + start;
}

std::uint32_t take_count(const std::byte*& head) noexcept {
  const auto count = std::to_integer<std::uint32_t>(*head++);
  if (count != kLongCount) return count;
  std::uint32_t long_count;
  std::memcpy(&long_count, head, sizeof long_count);
  head += sizeof long_count;
  return long_count;
}

void check_block(std::span<const ExampleField> fields, const ExampleBlock& block) {
  const BlockShape& shape = *block.shape;
  if (block.rows == 0 || block.rows > kBlockRows) throw broken(std::to_string(block.rows) + " examples");
  if (shape.counts.size() != fields.size())
    throw broken(std::to_string(shape.counts.size()) + " fields, not " + std::to_string(fields.size()));
  for (std::size_t f = 0; f < fields.size(); ++f)
    if (fields[f].count != kVaries && shape.counts[f] != fields[f].count)
      throw broken("a dense slot has " + std::to_string(shape.counts[f]) + " values, not " +
                   std::to_string(fields[f].count));
  if (shape.stride != 0) {
    if (std::size_t{shape.stride} * block.rows != block.bytes)
      throw broken("its size is not that of its examples");
    return;
  }
  std::size_t at = block.rows * sizeof(std::uint32_t);
  for (std::size_t row = 0; row < block.rows; ++row) {
    if (at >= block.bytes || block.example(row) != block.memory.get() + at)
      throw broken("an example is not in its place");
    const std::size_t bytes =
        example_bytes(fields, shape, block.memory.get() + at, block.memory.get() + block.bytes);
    if (bytes == 0 || bytes > block.bytes - at) throw broken("an example goes beyond its end");
    at += bytes;
  }
  if (at != block.bytes) throw broken("it has bytes after its last example");
}

}  // namespace fleetrun::dataset
