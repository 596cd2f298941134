// What fleetrun data check found, for people and as JSON. Pure.
#pragma once

#include <span>
#include <string>

#include "dataset/base/batch.h"
#include "dataset/tools/check_pass.h"

namespace fleetrun::dataset {

/// "FILE:LINE:COLUMN: slot 'NAME': WHAT", a line for each bad line that is known,
/// and how many others there are.
std::string bad_lines_text(const CheckResult& result);

/// A line of totals and a table of the slots.
std::string check_text(std::span<const Slot> slots, const CheckResult& result, std::size_t files);

/// One object in one line.
std::string check_json(std::span<const Slot> slots, const CheckResult& result, std::size_t files);

}  // namespace fleetrun::dataset
