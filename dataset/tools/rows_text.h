// Rows of a batch for people, and as JSON. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

/// One block of lines for each row, beginning with its number (of the first row: `number`);
/// of a slot with many values the first 16.
std::string rows_text(std::span<const Slot> slots, const Batch& batch, std::uint64_t number);

/// One line of JSON for each row: {"NAME": [value, …], …}; nan and infinities are strings.
std::string rows_json(std::span<const Slot> slots, const Batch& batch);

}  // namespace fleetrun::dataset
