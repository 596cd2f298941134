// What a line of delimited text says, column by column,
// and what becomes of it, slot by slot: fleetrun-schema(5).
//
//   {"delimiter": "\t", "columns": ["label", "I1..I13", "C1..C26"],
//    "slots": [{"name": "dense_input", "type": "float32", "columns": ["I1..I13"], "missing": 0,
//               "steps": ["log"]},
//              {"each": ["C1..C26"], "type": "int64",
//               "steps": [{"hash": "crc32", "prefix": "{column}=", "modulo": 1000001}]},
//              {"name": "label", "type": "int64", "columns": ["label"]}]}
//
// Plain data, and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

enum class StepKind { hash, bucket, log, modulo, normalise, square_log };
enum class HashKind { crc32, fnv1a };

/// One step of a value. A value begins as text; `log` and `normalise` make a number of it, `bucket`, `hash`,
/// `modulo` and `square_log` a whole number. Only the members of its kind are used.
struct Step {
  StepKind kind = StepKind::log;
  double offset = 0;  // normalise: (x - offset) / divisor
  double divisor = 1;
  std::vector<double> boundaries = {};  // bucket: how many of them are x or less; they rise
  HashKind hash = HashKind::crc32;
  std::string prefix = {};   // hash: what is hashed in front of the value
  std::uint64_t modulo = 0;  // hash, modulo: the remainder by this; 0 for the number itself

  bool operator==(const Step&) const = default;
};

/// One value of a slot: from which column, and how.
struct ValueRule {
  std::size_t column = 0;  // from 0
  /// The value where the column is empty, in place of all steps; without it an empty column is hashed as it
  /// is, and is a fault where a number is wanted.
  std::optional<double> missing;
  std::vector<Step> steps;

  bool operator==(const ValueRule&) const = default;
};

struct SlotRule {
  std::string name;
  SlotType type = SlotType::int64;
  std::vector<ValueRule> values;

  bool operator==(const SlotRule&) const = default;
};

struct Schema {
  char delimiter = '\t';
  /// Whether the first line of each input has the columns' names.
  bool header = false;
  std::vector<std::string> columns;
  std::vector<SlotRule> slots;

  bool operator==(const Schema&) const = default;
};

/// `name` is what messages call the text. Throws: Error(config) naming the place in it:
/// "criteo.json: slots[2].type: …".
Schema parse_schema(std::string_view json, const std::string& name);

/// Throws: Error(config) also when the file cannot be read.
Schema read_schema(const std::string& file);

/// The slots of `schema` as a reader of its text has them: dense, as wide as they have columns.
std::vector<Slot> slots_of(const Schema& schema);

/// The rules of `slots`, by name, in their order. Throws: Error(config) for a slot that the schema does not
/// have, or has with another type or width; `name` is what the message calls the schema.
Schema schema_for(const Schema& schema, const std::vector<Slot>& slots, const std::string& name);

}  // namespace fleetrun::dataset
