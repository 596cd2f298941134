// Examples are taken in and out in groups of kGroup, field by field: a group's bytes stay in the first-level
// cache, and the next group's are asked for before they are needed.
#include "dataset/memory/example_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

using Kind = ExampleField::Kind;

constexpr std::size_t kGroup = 32;
constexpr std::size_t kMaxBlocks = (std::size_t{1} << 32) / kBlockRows;
constexpr std::size_t kShortCounts = 255;  // counts below it take one byte

/// A field's values in a batch.
struct Column {
  const std::byte* values = nullptr;
  const std::size_t* offsets = nullptr;  // of sparse slots
  const std::string* texts = nullptr;    // of ids and contents
  std::uint32_t element = 8;
  std::uint32_t fixed = kVaries;

  std::size_t count(std::size_t row) const noexcept {
    if (offsets) return offsets[row + 1] - offsets[row];
    return texts ? texts[row].size() : fixed;
  }
  const std::byte* begin(std::size_t row) const noexcept {
    if (texts) return reinterpret_cast<const std::byte*>(texts[row].data());
    return values + (offsets ? offsets[row] : row * fixed) * element;
  }
};

template <class T>
const std::byte* bytes_of(const std::vector<T>& values) noexcept {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<Column> columns_of(std::span<const ExampleField> fields, const Batch& batch) {
  std::vector<Column> columns;
  for (const ExampleField& field : fields) {
    Column& column = columns.emplace_back();
    column.element = field.element;
    column.fixed = field.count;
    switch (field.kind) {
      case Kind::ints:
      case Kind::floats: {
        const SlotValues& values = batch.slots[field.slot];
        column.values = field.kind == Kind::ints ? bytes_of(values.ints) : bytes_of(values.floats);
        if (field.count == kVaries) column.offsets = values.offsets.data();
        break;
      }
      case Kind::id:
        column.texts = batch.prefixes.ids.data();
        break;
      case Kind::content:
        column.texts = batch.prefixes.contents.data();
        break;
      case Kind::log_key:
        column.values = bytes_of(batch.prefixes.log_keys);
        break;
    }
  }
  return columns;
}

/// The count that the field has in all rows of [begin, end), or kVaries.
std::uint32_t common_count(const Column& column, std::size_t begin, std::size_t end) {
  if (column.fixed != kVaries) return column.fixed;
  const std::size_t first = column.count(begin);
  if (first >= kVaries) return kVaries;
  bool same = true;
  if (column.offsets) {
    for (std::size_t row = begin; row < end; ++row)
      same &= column.offsets[row] == column.offsets[begin] + (row - begin) * first;
    same &= column.offsets[end] == column.offsets[begin] + (end - begin) * first;
  } else {
    for (std::size_t row = begin; row < end && same; ++row) same = column.count(row) == first;
  }
  return same ? static_cast<std::uint32_t>(first) : kVaries;
}

std::byte* put_count(std::byte* at, std::size_t count) noexcept {
  if (count < kShortCounts) {
    *at = static_cast<std::byte>(count);
    return at + 1;
  }
  *at++ = static_cast<std::byte>(kShortCounts);
  const auto long_count = static_cast<std::uint32_t>(count);
  std::memcpy(at, &long_count, sizeof long_count);
  return at + sizeof long_count;
}

inline void copy_values(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 8)
    std::memcpy(to, from, 8);  // one id, by far the most frequent
  else
    std::memcpy(to, from, bytes);
}

/// Writes the values of rows [begin, end), at most kGroup, to where `at` points.
void put_group(std::span<const Column> columns, std::size_t begin, std::size_t end, std::byte** at) {
  for (const Column& column : columns) {
    if (column.offsets && column.element == 8 &&
        column.offsets[end] - column.offsets[begin] == end - begin) {  // one id each
      const std::byte* from = column.begin(begin);
      for (std::size_t i = 0; i < end - begin; ++i) {
        std::memcpy(at[i], from + 8 * i, 8);
        at[i] += 8;
      }
      continue;
    }
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t bytes = column.count(row) * column.element;
      copy_values(at[row - begin], column.begin(row), bytes);
      at[row - begin] += bytes;
    }
  }
}

/// Where a group of examples is being read: the next count and the next value of each.
struct Cursor {
  const BlockShape* shape;
  const std::byte* head;
  const std::byte* value;

  std::size_t count(std::size_t field) noexcept {
    const std::uint32_t fixed = shape->counts[field];
    return fixed != kVaries ? fixed : take_count(head);
  }
};

void prefetch(const ExampleBlock& block, std::size_t row) noexcept {
  const std::byte* at = block.memory.get() + row * block.shape->stride;
  const std::size_t bytes = std::clamp<std::size_t>(block.shape->stride, 1, 1024);
  if (block.shape->stride == 0) at = block.memory.get() + row * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < bytes + 63; i += 64) __builtin_prefetch(at + i);
}

/// Makes room for `rows` examples of a sparse slot, whose offsets they get, or of a dense one.
template <class T>
T* room_for(std::vector<T>& values, std::size_t used, std::size_t more) {
  if (values.size() < used + more) values.resize(std::max(used + more, 2 * values.size()));
  return values.data() + used;
}

}  // namespace

ExampleStore::ExampleStore(std::vector<Slot> slots, LinePrefixes prefixes)
    : slots_(std::move(slots)), prefixes_(prefixes), fields_(example_fields(slots_, prefixes_)) {}

void ExampleStore::add(const Batch& batch) {
  for (std::size_t begin = 0; begin < batch.rows; begin += kBlockRows)
    add_rows(batch, begin, std::min(batch.rows, begin + kBlockRows));
}

void ExampleStore::add_rows(const Batch& batch, std::size_t begin, std::size_t end) {
  const std::vector<Column> columns = columns_of(fields_, batch);
  std::vector<std::uint32_t> counts;
  for (const Column& column : columns) counts.push_back(common_count(column, begin, end));
  const BlockShape shape = shape_of(fields_, std::move(counts));

  const std::size_t rows = end - begin;
  std::vector<std::size_t> starts(rows + 1);
  starts[0] = shape.stride != 0 ? 0 : rows * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < rows; ++i) {
    std::size_t bytes = shape.stride;
    for (std::size_t f = 0; shape.stride == 0 && f < columns.size(); ++f) {
      const std::size_t count = columns[f].count(begin + i);
      bytes += count * columns[f].element;
      if (shape.counts[f] == kVaries) bytes += count < kShortCounts ? 1 : 1 + sizeof(std::uint32_t);
    }
    starts[i + 1] = starts[i] + bytes;
  }
  if (starts[rows] >= kMaxBlockBytes) {
    if (rows == 1) throw Error(ErrorKind::data, "an example is larger than 2 GiB");
    add_rows(batch, begin, begin + rows / 2);
    return add_rows(batch, begin + rows / 2, end);
  }

  const std::shared_ptr<std::byte> memory = pages_.take(starts[rows]);
  std::array<std::byte*, kGroup> at;
  for (std::size_t group = 0; group < rows; group += kGroup) {
    const std::size_t group_end = std::min(rows, group + kGroup);
    for (std::size_t i = group; i < group_end; ++i) {
      at[i - group] = memory.get() + starts[i];
      if (shape.stride != 0) continue;
      const auto start = static_cast<std::uint32_t>(starts[i]);
      std::memcpy(memory.get() + i * sizeof start, &start, sizeof start);
      for (std::size_t f = 0; f < columns.size(); ++f)
        if (shape.counts[f] == kVaries) at[i - group] = put_count(at[i - group], columns[f].count(begin + i));
    }
    put_group(columns, begin + group, begin + group_end, at.data());
  }
  keep({memory, std::make_shared<const BlockShape>(shape), static_cast<std::uint32_t>(rows),
        static_cast<std::uint32_t>(starts[rows])});
}

void ExampleStore::keep(ExampleBlock block) {
  if (blocks_.size() == kMaxBlocks)
    throw Error(ErrorKind::data,
                "more than " + std::to_string(rows_) + " examples do not fit into one process's dataset",
                "give each trainer fewer files");
  if (!blocks_.empty() && *blocks_.back().shape == *block.shape) block.shape = blocks_.back().shape;
  rows_ += block.rows;
  bytes_ += block.bytes;
  blocks_.push_back(std::move(block));
}

void ExampleStore::append(ExampleStore other) {
  for (ExampleBlock& block : other.blocks_) keep(std::move(block));
}

void ExampleStore::add_block(std::vector<std::uint32_t> counts, std::uint32_t rows,
                             std::span<const std::byte> bytes) {
  if (counts.size() != fields_.size() || bytes.empty() || bytes.size() >= kMaxBlockBytes)
    throw Error(ErrorKind::data, "a block of examples is broken: " + std::to_string(counts.size()) +
                                     " fields in " + std::to_string(bytes.size()) + " bytes");
  const std::shared_ptr<std::byte> memory = pages_.take(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  ExampleBlock block{memory, std::make_shared<const BlockShape>(shape_of(fields_, std::move(counts))), rows,
                     static_cast<std::uint32_t>(bytes.size())};
  check_block(fields_, block);
  keep(std::move(block));
}

std::vector<ExampleNumber> ExampleStore::numbers() const {
  std::vector<ExampleNumber> numbers(rows_);
  std::size_t at = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    for (std::size_t row = 0; row < blocks_[b].rows; ++row)
      numbers[at++] = static_cast<ExampleNumber>(b * kBlockRows + row);
  return numbers;
}

void ExampleStore::drop_blocks(std::size_t first, std::size_t last) noexcept {
  for (std::size_t b = first; b < last; ++b) {
    rows_ -= blocks_[b].rows;
    bytes_ -= blocks_[b].bytes;
    blocks_[b].memory = nullptr;
    blocks_[b].rows = blocks_[b].bytes = 0;
  }
}

void ExampleStore::gather(std::span<const ExampleNumber> numbers, Batch& batch) const {
  batch.slots.resize(slots_.size());
  gather_fields(numbers, std::vector<bool>(fields_.size(), true), batch);
}

void ExampleStore::gather_slots(std::span<const ExampleNumber> numbers, std::span<const std::size_t> slots,
                                Batch& batch) const {
  std::vector<bool> wanted(fields_.size());
  for (const std::size_t slot : slots) wanted[slot] = true;  // the slots are the first fields
  gather_fields(numbers, wanted, batch);
}

void ExampleStore::gather_ids(std::span<const ExampleNumber> numbers, std::vector<std::string>& ids) const {
  std::vector<bool> wanted(fields_.size());
  for (std::size_t f = 0; f < fields_.size(); ++f) wanted[f] = fields_[f].kind == Kind::id;
  Batch batch;
  batch.slots.resize(slots_.size());
  gather_fields(numbers, wanted, batch);
  ids.insert(ids.end(), std::make_move_iterator(batch.prefixes.ids.begin()),
             std::make_move_iterator(batch.prefixes.ids.end()));
}

namespace {

/// Takes one field of a group of examples into a batch, from row `row` on.
class FieldReader {
 public:
  FieldReader(const ExampleField& field, std::size_t index, std::size_t rows, Batch& batch)
      : field_(field),
        index_(index),
        batch_(batch),
        values_(field.kind <= Kind::floats ? &batch.slots[field.slot] : nullptr) {
    if (field.kind == Kind::id) batch.prefixes.ids.resize(rows);
    if (field.kind == Kind::content) batch.prefixes.contents.resize(rows);
    if (field.kind == Kind::log_key) batch.prefixes.log_keys.resize(rows);
    if (!values_) return;
    values_->offsets.resize(field.count == kVaries ? rows + 1 : 0);
    if (field.count == kVaries) values_->offsets[0] = 0;
  }

  void take(std::span<Cursor> group, std::size_t row, bool wanted);
  void finish() {
    if (!values_) return;
    values_->ints.resize(field_.kind == Kind::ints ? used_ : 0);
    values_->floats.resize(field_.kind == Kind::floats ? used_ : 0);
  }

 private:
  std::byte* target(std::size_t count, std::size_t row);

  const ExampleField& field_;
  const std::size_t index_;
  Batch& batch_;
  SlotValues* const values_;
  std::size_t used_ = 0;
};

std::byte* FieldReader::target(std::size_t count, std::size_t row) {
  switch (field_.kind) {
    case Kind::ints:
      return reinterpret_cast<std::byte*>(room_for(values_->ints, used_, count));
    case Kind::floats:
      return reinterpret_cast<std::byte*>(room_for(values_->floats, used_, count));
    case Kind::id:
    case Kind::content: {
      std::string& text = (field_.kind == Kind::id ? batch_.prefixes.ids : batch_.prefixes.contents)[row];
      text.resize(count);
      return reinterpret_cast<std::byte*>(text.data());
    }
    case Kind::log_key:
      return reinterpret_cast<std::byte*>(&batch_.prefixes.log_keys[row]);
  }
  return nullptr;
}

void FieldReader::take(std::span<Cursor> group, std::size_t row, bool wanted) {
  const bool ones = wanted && values_ && field_.element == 8 &&
                    std::all_of(group.begin(), group.end(),
                                [this](const Cursor& cursor) { return cursor.shape->counts[index_] == 1; });
  if (ones) {  // one id each
    std::byte* to = target(group.size(), row);
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::memcpy(to + 8 * i, group[i].value, 8);
      group[i].value += 8;
    }
    if (field_.count == kVaries)
      for (std::size_t i = 0; i < group.size(); ++i) values_->offsets[row + i + 1] = used_ + i + 1;
    used_ += group.size();
    return;
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::size_t count = group[i].count(index_);
    const std::size_t bytes = count * field_.element;
    if (wanted) {
      std::byte* to = target(count, row + i);
      if (bytes > 0) std::memcpy(to, group[i].value, bytes);
      used_ += count;
      if (values_ && field_.count == kVaries) values_->offsets[row + i + 1] = used_;
    }
    group[i].value += bytes;
  }
}

}  // namespace

void ExampleStore::gather_fields(std::span<const ExampleNumber> numbers, const std::vector<bool>& wanted,
                                 Batch& batch) const {
  batch.rows = numbers.size();
  Batch unwanted;  // where nothing is put
  unwanted.slots.resize(slots_.size());
  std::vector<FieldReader> readers;
  readers.reserve(fields_.size());
  for (std::size_t f = 0; f < fields_.size(); ++f)
    readers.emplace_back(fields_[f], f, wanted[f] ? numbers.size() : 0, wanted[f] ? batch : unwanted);
  std::array<Cursor, kGroup> group;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kGroup) {
    const std::size_t size = std::min(kGroup, numbers.size() - begin);
    for (std::size_t i = begin + kGroup; i < std::min(numbers.size(), begin + 2 * kGroup); ++i)
      prefetch(blocks_[numbers[i] / kBlockRows], numbers[i] % kBlockRows);
    for (std::size_t i = 0; i < size; ++i) {
      const ExampleBlock& block = blocks_[numbers[begin + i] / kBlockRows];
      const std::byte* example = block.example(numbers[begin + i] % kBlockRows);
      group[i] = {block.shape.get(), example, example};
      for (std::uint32_t v = 0; v < block.shape->varying; ++v) static_cast<void>(take_count(group[i].value));
    }
    for (std::size_t f = 0; f < fields_.size(); ++f) readers[f].take({group.data(), size}, begin, wanted[f]);
  }
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (wanted[f]) readers[f].finish();
}

}  // namespace fleetrun::dataset
