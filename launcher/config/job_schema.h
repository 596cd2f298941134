// The JSON schema of a job file (fleetrun-jobfile(5)), by which editors complete and check one:
// `fleetrun --job_schema`. Made from launcher/model/job_settings and the keys of a role (read_job_file).
// Numbers and truths are asked for as such, though the program reads them from texts too.
#pragma once

#include <string>

namespace fleetrun::launcher {

std::string job_schema();

}  // namespace fleetrun::launcher
