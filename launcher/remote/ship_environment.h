// The Python environment of a job as something that travels (--ship=venv): the virtual environment, the
// interpreter that it was made from with its standard library, and the shared libraries that these are
// linked against.
#pragma once

#include <string>

#include "launcher/model/job_config.h"
#include "launcher/ship/read_tree.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher::remote {

/// Adds it, and returns the interpreter's path here. Throws: Error(config) where the job's Python is not of
/// an environment, or there is none; Error(host) for what cannot be read.
std::string add_environment(ship::Cargo& cargo, const JobConfig& config, const Environ& environ,
                            const std::string& fleetrun_directory);

/// The libraries of a cargo that this host has not: their names, below the list's prefix. Asks the loader.
std::vector<std::string> missing_libraries(const ship::List& list);

constexpr std::string_view kLibraryFolder = "/.libraries", kMissingFolder = "/.missing-libraries";

/// What `ld.so --list` has written, as paths; without those that are the C library's. Pure.
std::vector<std::string> paths_of_libraries(std::string_view text);

}  // namespace fleetrun::launcher::remote
