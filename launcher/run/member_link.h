// The line to each process that may take another's place (--on_failure=replace): FLEETRUN_MEMBER_FD, a
// stream socket with one JSON object a line.
//
//   from a process   {"waits":true}                 it stands by, and is ready to be given a rank
//                    {"trains":true}                it has the state of the training
//                    {"leaves":0,"step":17}         it is out of generation 0, before step 17
//   to a process     {"lost":3,"generation":0}      rank 3 of this generation has ended
//                    {"generation":1,"rank":3,"size":8,"newcomers":[3],"store":"127.0.0.1:6170",
//                     "environment":{"RANK":"3",…}}
//
// The last is a new generation: everybody joins it at this endpoint, whose port is held for rank 0. The
// environment is that of the rank; only a process that had none needs it.
// What a process says counts as launcher/job/replacements.h has it; what makes no sense counts nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/host/port_lease.h"
#include "launcher/model/job_action.h"
#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

/// What the line says, of the process with this index. Pure.
std::optional<MemberSaid> parse_member_line(std::string_view line, std::size_t index);

/// Nothing, where no process stands by. `leases` gives the ports of generations at `host`, and outlives it.
MakeJobPart member_link(PortLeases& leases, const std::string& host);

}  // namespace fleetrun::launcher
