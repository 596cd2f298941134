// What `fleetrun doctor` found, for people: a line for each host,
// a matrix of who can dial whom, and what to do. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/diagnosis.h"

namespace fleetrun::cli {

/// `directory`: the job's, as it was asked for.
std::string doctor_text(const std::vector<launcher::doctor::HostReport>& reports,
                        const std::vector<launcher::doctor::Finding>& findings, const std::string& directory);

}  // namespace fleetrun::cli
