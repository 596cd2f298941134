// Writes the record of a job while it runs (launcher/record/flight_record).
//
// A record that cannot be written costs nothing but itself: `fleetrun report` then says that there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/record/flight_record.h"
#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

struct RecorderSettings {
  std::uint64_t seed = 0;
  std::optional<int> first_attempt;
  bool torchrun = false;
  std::vector<std::string> command;
  Redactor redactor;
};

/// Knows the secrets of fleetrun's own environment and arguments, and of the processes'.
Redactor job_redactor(const Plan& plan, const Environ& environment, const std::vector<std::string>& command);

MakeJobPart flight_recorder(RecorderSettings settings);

/// Ends the record of `plan`'s job, once its part is gone.
void end_record(const Plan& plan, RecordEnd end, const Redactor& redactor) noexcept;

}  // namespace fleetrun::launcher
