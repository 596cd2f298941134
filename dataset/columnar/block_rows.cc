// Vectors of a batch keep the size that they had, so that what is overwritten is
// not set to 0 first; end() cuts them.
#include "dataset/columnar/block_rows.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kMaxExpected = std::size_t{1} << 20;  // rows of a batch that room is made for at once

template <class T>
T value_at(const std::byte* bytes, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

/// Calls `with(T{})` for the unsigned type of so many bytes.
template <class With>
decltype(auto) with_width(std::uint8_t bytes, With with) {
  switch (bytes) {
    case 1:
      return with(std::uint8_t{});
    case 2:
      return with(std::uint16_t{});
    case 4:
      return with(std::uint32_t{});
    default:
      return with(std::uint64_t{});
  }
}

template <class T>
void make_room(std::vector<T>& values, std::size_t wanted) {
  if (values.size() >= wanted) return;
  if (values.capacity() < wanted) values.reserve(std::max(wanted, values.capacity() + values.capacity() / 2));
  values.resize(wanted);
}

}  // namespace

void BlockRows::load(const ColumnarFile& file, std::uint64_t block, const std::vector<std::size_t>& slots) {
  rows_ = row_ = 0;
  columns_.resize(slots.size());
  const std::uint64_t rows = file.rows_of(block);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Column& column = columns_[i];
    column.slot = file.slots()[slots[i]];
    column.section = file.section(block, slots[i]);
    column.each = column.section.count_bytes == 0 ? column.section.values / rows : 0;
    column.next = 0;
    file.read(block, slots[i], verify_, column.bytes);
    check_counts(file, block, slots[i], column);
  }
  rows_ = rows;
}

void BlockRows::check_counts(const ColumnarFile& file, std::uint64_t block, std::size_t slot,
                             Column& column) const {
  if (column.section.count_bytes == 0) return;
  std::uint64_t sum = 0;
  with_width(column.section.count_bytes, [&](auto type) {
    for (std::uint64_t row = 0; row < file.rows_of(block); ++row)
      sum += value_at<decltype(type)>(column.counts(), row);
  });
  if (sum != column.section.values)
    file.refuse(block, slot,
                "is damaged: its rows have " + std::to_string(sum) + " values, and there are " +
                    std::to_string(column.section.values));
}

void BlockRows::begin(Batch& batch, const std::vector<Slot>& slots, std::size_t rows) {
  batch.rows = 0;
  batch.prefixes = {};
  batch.slots.resize(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SlotValues& values = batch.slots[i];
    if (slots[i].type == SlotType::float32)
      values.ints.clear();
    else
      values.floats.clear();
    if (slots[i].dense) {
      values.offsets.clear();
    } else {
      make_room(values.offsets, std::min(rows, kMaxExpected) + 1);
      values.offsets[0] = 0;
    }
  }
}

std::size_t BlockRows::append_offsets(const Column& column, std::vector<std::size_t>& offsets,
                                      std::size_t row, std::size_t rows) const {
  make_room(offsets, row + rows + 1);
  std::size_t* to = offsets.data() + row;
  const std::size_t first = to[0];
  if (column.each > 0) {
    for (std::size_t i = 1; i <= rows; ++i) to[i] = first + i * column.each;
  } else {
    with_width(column.section.count_bytes, [&](auto type) {
      std::size_t at = first;
      for (std::size_t i = 0; i < rows; ++i)
        to[i + 1] = at += value_at<decltype(type)>(column.counts(), row_ + i);
    });
  }
  return to[rows] - first;
}

std::size_t BlockRows::append(Batch& batch, std::size_t max) {
  const std::size_t rows = std::min(max, left());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    SlotValues& values = batch.slots[i];
    const std::size_t used = column.slot.dense ? batch.rows * static_cast<std::size_t>(column.slot.width)
                                               : values.offsets[batch.rows];
    const std::size_t count =
        column.slot.dense ? rows * column.each : append_offsets(column, values.offsets, batch.rows, rows);
    const std::byte* from = column.bytes.data() + column.next * column.section.value_bytes;
    column.next += count;
    if (count == 0) continue;
    if (column.slot.type == SlotType::float32) {
      make_room(values.floats, used + count);
      std::memcpy(values.floats.data() + used, from, count * sizeof(float));
    } else {
      make_room(values.ints, used + count);
      std::int64_t* to = values.ints.data() + used;
      with_width(column.section.value_bytes,
                 [&, base = static_cast<std::uint64_t>(column.section.base)](auto type) {
                   for (std::size_t at = 0; at < count; ++at)
                     to[at] = static_cast<std::int64_t>(base + value_at<decltype(type)>(from, at));
                 });
    }
  }
  row_ += rows;
  batch.rows += rows;
  return rows;
}

void BlockRows::end(Batch& batch, const std::vector<Slot>& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SlotValues& values = batch.slots[i];
    const std::size_t count =
        slots[i].dense ? batch.rows * static_cast<std::size_t>(slots[i].width) : values.offsets[batch.rows];
    if (slots[i].type == SlotType::float32)
      values.floats.resize(count);
    else
      values.ints.resize(count);
    if (!slots[i].dense) values.offsets.resize(batch.rows + 1);
  }
}

}  // namespace fleetrun::dataset
