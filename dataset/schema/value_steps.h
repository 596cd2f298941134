// The value of one column: its text through the steps of its rule.
//
// Pure; threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataset/schema/hashes.h"
#include "dataset/schema/schema.h"

namespace fleetrun::dataset {

/// What a slot's value is in the end: of a float32 slot `number`,
/// of an int64 slot the whole number ±`magnitude`.
struct Value {
  double number = 0;
  std::uint64_t magnitude = 0;
  bool negative = false;
};

/// The rule of most columns, made short: one CRC-32 with a remainder below 10^8,
/// and an empty column no exception.
struct ShortHash {
  std::uint32_t prefix = 0;  // the hash of what is hashed in front of the value
  Remainder32 remainder;

  /// 8 bytes from the field's beginning must be readable.
  std::uint32_t operator()(std::string_view field) const noexcept {
    // Eight bytes or none, which nobody can foretell: no branch between them.
    const auto eight = static_cast<std::uint32_t>(0 - (field.size() >> 3 & 1));
    std::uint32_t hash = (crc32_of_eight(field.data(), prefix) & eight) | (prefix & ~eight);
    if ((field.size() & ~std::size_t{8}) != 0) [[unlikely]]
      hash = crc32(field, prefix);
    return remainder(hash);
  }
};

/// The rule as a ShortHash, if it is one.
std::optional<ShortHash> short_hash(const ValueRule& rule, SlotType type);

/// How many values of the schema are not ShortHash.
std::size_t long_rules(const Schema& schema);

/// A rule made ready.
class ValueSteps {
 public:
  ValueSteps(const ValueRule& rule, SlotType type) : rule_(rule), type_(type) {}

  /// False when the field cannot be the slot's value; `fault` says why.
  /// kTextPadding bytes behind it must be readable.
  bool evaluate(std::string_view field, Value& value, std::string& fault) const;

 private:
  ValueRule rule_;
  SlotType type_;
};

/// `value` as a float32 slot holds it, as if it had been written and read again.
float rounded(double value);

}  // namespace fleetrun::dataset
