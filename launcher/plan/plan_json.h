// Plan → JSON, for --dry-run=json and for programs that read plans.
#pragma once

#include <string>

#include "launcher/model/plan.h"

namespace fleetrun::launcher {

constexpr int kPlanSchema = 1;

/// Two blanks of indentation, keys in the order in which a person reads them, one final newline.
std::string to_json(const Plan& plan);

}  // namespace fleetrun::launcher
