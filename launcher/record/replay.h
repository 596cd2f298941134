// A recorded job, gone through again: its reducer and its history are told what they were told then, and what
// comes out is compared with what came out then. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/failure/report.h"
#include "launcher/record/flight_record.h"

namespace fleetrun::launcher {

using ScreenMaker =
    std::function<std::string(const Report&, const Plan&, const JobHistory&, std::string_view last_lines)>;

struct Replayed {
  std::size_t decisions = 0;             // of the reducer
  std::vector<std::string> differences;  // from what was recorded, a sentence each
  Report report;                         // how the job ended; of one without an end: how it stands
  std::string verdict, screen;
};

/// `tell` hears each event, with the plan of that moment.
/// Throws: Error(data) for a record that names processes or roles which its plan has not.
Replayed replay(const FlightRecord& record, const ScreenMaker& make_screen,
                const std::function<void(const Told&, const Plan&)>& tell);

}  // namespace fleetrun::launcher
