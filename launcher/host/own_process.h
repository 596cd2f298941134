// This process of fleetrun: where its program lies, how it was called, how many files it may open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::launcher {

/// The path of this program. Throws: Error(host) where there is no /proc.
std::string own_program();

/// The arguments of this program, as the user wrote them.
std::vector<std::string> own_arguments();

/// Takes as many descriptors as it may: every process of a job costs it a log and a port, every login four.
/// Returns the limit that it had, which is its processes'.
std::uint64_t raise_open_files();

/// Throws: Error(host) where there is none, as in a root that has no /dev.
void check_null_device();

/// Throws: Error(host) where the limit of open files is too low for so many processes.
void check_open_files(std::size_t processes);

}  // namespace fleetrun::launcher
