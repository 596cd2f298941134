#include "dataset/schema/schema_printer.h"

#include <algorithm>
#include <cstring>

#include "dataset/text/number_print.h"

namespace fleetrun::dataset {
namespace {

/// Beyond a row's own bytes: a lead and a cached result are copied whole.
constexpr std::size_t kSpareBytes = 64;

}  // namespace

SchemaPrinter::SchemaPrinter(const Schema& schema, std::size_t max_line_bytes)
    : rows_(schema, max_line_bytes), cache_(long_rules(schema)) {
  std::uint32_t tables = 0;
  for (const SlotRule& slot : schema.slots) {
    std::string lead = values_.empty() ? "" : " ";
    lead += std::to_string(slot.values.size()) + " ";
    for (const ValueRule& rule : slot.values) {
      const std::optional<ShortHash> hash = short_hash(rule, slot.type);
      Printed& value = values_.emplace_back();
      value.lead_bytes = static_cast<std::uint8_t>(lead.copy(value.lead.data(), value.lead.size()));
      value.is_hash = hash.has_value();
      value.is_float = slot.type == SlotType::float32;
      value.column = static_cast<std::uint32_t>(rule.column);
      if (hash)
        value.hash = *hash;
      else
        value.table = tables++;
      steps_.emplace_back(rule, slot.type);
      lead = " ";
    }
  }
  row_bytes_ = values_.size() * (sizeof(Printed::lead) + kNumberBytes) + kSpareBytes;
}

bool SchemaPrinter::print() {
  text_bytes_ = 0;
  for (;;) {
    const SchemaRows::Outcome outcome = rows_.next();
    if (outcome != SchemaRows::Outcome::row) return outcome == SchemaRows::Outcome::more;
    if (text_.size() - text_bytes_ < row_bytes_) text_.resize(2 * text_.size() + row_bytes_);
    char* end = print_row(text_.data() + text_bytes_);
    if (!end) return false;
    *end++ = '\n';
    text_bytes_ = static_cast<std::size_t>(end - text_.data());
  }
}

/// The end of the row, or nullptr when a value is a fault.
char* SchemaPrinter::print_row(char* out) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Printed& value = values_[i];
    std::memcpy(out, value.lead.data(), value.lead.size());
    out += value.lead_bytes;
    const std::string_view field = rows_.field(value.column);
    if (value.is_hash) {
      out = print_short(out, value.hash(field));
      continue;
    }
    out = field.size() <= TextCache::kKeyBytes ? print_other(i, field, out) : print_steps(i, field, out);
    if (!out) return nullptr;
  }
  return out;
}

char* SchemaPrinter::print_other(std::size_t index, std::string_view field, char* out) {
  const TextCache::Place place = cache_.find(values_[index].table, field);
  if (place.taken) {
    std::memcpy(out, place.entry.result, TextCache::kResultBytes);
    return out + place.entry.result_bytes;
  }
  char* end = print_steps(index, field, out);
  if (end) TextCache::put(place, field, {out, end});
  return end;
}

char* SchemaPrinter::print_steps(std::size_t index, std::string_view field, char* out) {
  Value value;
  std::string fault;
  if (!steps_[index].evaluate(field, value, fault)) {
    rows_.fail(values_[index].column, fault);
    return nullptr;
  }
  if (values_[index].is_float) return print_double(out, value.number);
  if (value.negative) *out++ = '-';
  return print_unsigned(out, value.magnitude);
}

}  // namespace fleetrun::dataset
