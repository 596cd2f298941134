// The roles of a job file: what they say of their processes, and the options that they stand for. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/model/job_config.h"
#include "launcher/model/job_file.h"

namespace fleetrun::launcher {

/// The file's roles in the order in which they can start, as indices into it.
/// Throws: Error(config) for a role that is not there, and for roles that wait for each other.
std::vector<std::size_t> starting_order(const JobFile& file);

/// The roles that `role` comes after, as indices into the file. Trainers come after servers without being
/// told. Throws: Error(config) for a role that is not there.
std::vector<std::size_t> roles_before(const JobFile& file, const JobFileRole& role);

/// The role of this kind; nullptr when there is none.
const JobFileRole* role_of_kind(const JobFile& file, RoleKind kind);

/// Processes of `role`; trainers and plain roles may leave their number to their devices.
int count_of(const JobFileRole& role);

/// Whether processes of this role need endpoints of their own.
bool has_endpoints(const JobFileRole& role);

/// The role's script, or its program, as a path from where fleetrun runs;
/// a program without a slash stays as it is, to be found on PATH.
std::string script_path(const JobFileRole& role);

/// Puts the file's settings behind what the command line says,
/// and its servers and trainers where those of flags would be.
/// Throws: Error(usage) for flags that say what roles say, and for arguments behind the file.
void apply_job_file(const JobFile& file, Options& options);

}  // namespace fleetrun::launcher
