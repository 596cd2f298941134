// What slots a text file has, as a person writes it.
//
//   ids:int64,price:float32[13],label:int64[1]  NAME:TYPE is sparse (any number of values above 0 in each
//                                               row), NAME:TYPE[N] is dense (N values)
//   @slots.json                                 a list of {"name": …, "type": "int64"|"float32", "width": N},
//                                               where a slot without a width is sparse;
//                                               for names with ',' or ':' too
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

inline constexpr std::int64_t kMaxSlotWidth = std::int64_t{1} << 31;

/// Reads `@FILE` too. Throws: Error(usage) naming the slot that is wrong,
/// Error(data) for a FILE that cannot be read.
std::vector<Slot> parse_slots(const std::string& text);

/// The slots of a JSON text. Throws: Error(usage); `name` says what the text is.
std::vector<Slot> slots_from_json(std::string_view text, const std::string& name);

/// As parse_slots() reads it: "price:float32[13]".
std::string to_string(const Slot& slot);

/// Throws: Error(usage) for none, and for two of one name.
void check_slots(const std::vector<Slot>& slots);

}  // namespace fleetrun::dataset
