#include "dataset/schema/schema_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kFirstRows = 1024;

}  // namespace

SchemaParser::SchemaParser(const Schema& schema, std::span<const Slot> slots, std::size_t max_line_bytes)
    : rows_(schema, max_line_bytes), slots_(slots.begin(), slots.end()), cache_(long_rules(schema)) {
  std::uint32_t tables = 0;
  for (std::size_t slot = 0; slot < schema.slots.size(); ++slot) {
    const SlotRule& rule = schema.slots[slot];
    slots_[slot].width = static_cast<std::int64_t>(rule.values.size());
    for (std::size_t place = 0; place < rule.values.size(); ++place) {
      const std::optional<ShortHash> hash = short_hash(rule.values[place], rule.type);
      Parsed& value = values_.emplace_back();
      value.column = static_cast<std::uint32_t>(rule.values[place].column);
      value.is_hash = hash.has_value();
      value.slot = static_cast<std::uint32_t>(slot);
      value.place = static_cast<std::uint32_t>(place);
      value.stride = static_cast<std::uint32_t>(rule.values.size());
      if (hash)
        value.hash = *hash;
      else
        value.table = tables++;
      steps_.emplace_back(rule.values[place], rule.type);
    }
  }
}

void SchemaParser::begin_batch(Batch& batch, std::size_t rows) {
  batch.rows = 0;
  batch.slots.resize(slots_.size());
  batch.prefixes = {};
  batch_ = &batch;
  wanted_rows_ = rows;
  reserve_rows(std::min(rows, kFirstRows));
}

void SchemaParser::reserve_rows(std::size_t rows) {
  row_capacity_ = rows;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    SlotValues& values = batch_->slots[slot];
    const std::size_t wanted = rows * static_cast<std::size_t>(slots_[slot].width);
    if (slots_[slot].type == SlotType::float32)
      values.floats.resize(std::max(wanted, values.floats.size()));
    else
      values.ints.resize(std::max(wanted, values.ints.size()));
  }
  for (Parsed& value : values_) {
    SlotValues& values = batch_->slots[value.slot];
    const bool is_float = slots_[value.slot].type == SlotType::float32;
    value.floats = is_float ? values.floats.data() + value.place : nullptr;
    value.ints = is_float ? nullptr : values.ints.data() + value.place;
  }
}

std::size_t SchemaParser::end_batch() {
  const std::size_t rows = batch_->rows;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    SlotValues& values = batch_->slots[slot];
    const auto width = static_cast<std::size_t>(slots_[slot].width);
    const bool is_float = slots_[slot].type == SlotType::float32;
    values.floats.resize(is_float ? rows * width : 0);
    values.ints.resize(is_float ? 0 : rows * width);
    values.offsets.resize(slots_[slot].dense ? 0 : rows + 1);
    for (std::size_t row = 0; row < values.offsets.size(); ++row) values.offsets[row] = row * width;
  }
  batch_ = nullptr;
  return rows;
}

MultiSlotParser::Outcome SchemaParser::parse() {
  for (;;) {
    if (batch_->rows == wanted_rows_) return MultiSlotParser::Outcome::full;
    const SchemaRows::Outcome outcome = rows_.next();
    if (outcome == SchemaRows::Outcome::more) return MultiSlotParser::Outcome::more;
    if (outcome == SchemaRows::Outcome::bad || !parse_row()) return MultiSlotParser::Outcome::bad;
  }
}

/// A row that fails leaves values behind the batch's last row, where end_batch() cuts them off.
bool SchemaParser::parse_row() {
  const std::size_t row = batch_->rows;
  if (row == row_capacity_) reserve_rows(std::min(wanted_rows_, 2 * row_capacity_));
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Parsed& value = values_[i];
    const std::string_view field = rows_.field(value.column);
    if (value.is_hash)
      value.ints[row * value.stride] = value.hash(field);
    else if (!parse_other(i, field))
      return false;
  }
  ++batch_->rows;
  return true;
}

bool SchemaParser::parse_other(std::size_t index, std::string_view field) {
  std::uint64_t bits = 0;
  if (field.size() > TextCache::kKeyBytes) {
    if (!parse_steps(index, field, bits)) return false;
  } else {
    const TextCache::Place place = cache_.find(values_[index].table, field);
    if (place.taken) {
      std::memcpy(&bits, place.entry.result, sizeof bits);
    } else {
      if (!parse_steps(index, field, bits)) return false;
      TextCache::put(place, field, {reinterpret_cast<const char*>(&bits), sizeof bits});
    }
  }
  values_[index].put(batch_->rows, bits);
  return true;
}

bool SchemaParser::parse_steps(std::size_t index, std::string_view field, std::uint64_t& bits) {
  const Parsed& target = values_[index];
  Value value;
  std::string fault;
  if (!steps_[index].evaluate(field, value, fault)) {
    rows_.fail(target.column, fault);
    return false;
  }
  if (target.floats)
    bits = std::bit_cast<std::uint32_t>(rounded(value.number));
  else
    bits = value.negative ? 0 - value.magnitude : value.magnitude;
  return true;
}

}  // namespace fleetrun::dataset
