// A hang, told: who is at fault, what was seen, and where everybody is. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/model/hang_rules.h"
#include "launcher/stacks/stack_groups.h"

namespace fleetrun::launcher {

struct HangReport {
  std::vector<std::size_t> culprits;  // the processes to end
  std::vector<std::size_t> silent;    // all that hang: the culprits, then those that wait for them
  std::string why;                    // of the first culprit: "sent no heartbeat for 30 s"
  std::string text;                   // for a terminal; each line ends with a newline
  std::string json;  // {"culprits", "silent": [{"index", "why", "seconds", "step"}], "stacks"}
};

/// At fault are, in this order: who was stopped by a signal; who is silent and not where most of its role
/// are; who made the fewest steps, if there is one; else who has been silent for longest. `names` are those
/// of the plan's processes, `silent` is not empty, its longest silence first.
HangReport make_hang_report(const std::vector<Silence>& silent, const std::vector<ProcessStacks>& stacks,
                            const std::vector<std::string>& names);

}  // namespace fleetrun::launcher
