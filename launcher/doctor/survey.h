// Asks all hosts of a list, over ssh as a launch does: first what each is like, then who can dial whom.
//
// Each host listens at some of the ports that a launch would choose, at the address at which ssh reached it,
// and dials the 32 hosts that follow it in the list (with up to 33 hosts: all others),
// so that every pair is tried both ways where hosts are few.
#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/diagnosis.h"
#include "launcher/remote/fan_out.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher::doctor {

struct SurveySettings {
  std::vector<RemoteHost> hosts;
  remote::FanOutSettings fan_out;  // its words are set here
  Spec spec;
};

/// In the order of the hosts. Puts a file into the working directory for the time of the survey, to see who
/// shares it. Blocks; what does not answer is given up after its time.
/// Throws: Error(usage) as remote_command() does.
std::vector<HostReport> survey(const SurveySettings& settings);

/// This host alone, which nobody has to log in to.
HostReport survey_here(const Spec& spec, const Environ& environment);

}  // namespace fleetrun::launcher::doctor
