// The roles of a job file, planned: what the modes know of servers and trainers, the file's word over it, and roles of
// other names beside them. Pure.
#pragma once

#include "launcher/plan.h"

namespace fleetrun::launcher {

/// Fills `plan.roles` and `plan.processes` for `config.file`. Roles are in the order in which they can start: each
/// behind those that it comes after, otherwise as in the file.
/// Throws: Error(config) when roles wait for each other, or for nobody.
void plan_roles(const JobConfig& config, const HostFacts& facts, Plan& plan);

/// The file's roles in the order in which they can start, as indices into it.
/// Throws: Error(config) for a role that is not there, and for roles that wait for each other.
std::vector<std::size_t> starting_order(const JobFile& file);

/// The role of this kind; nullptr when there is none.
const JobFileRole* role_of_kind(const JobFile& file, RoleKind kind);

/// Processes of `role`; trainers and plain roles may leave their number to their devices.
int count_of(const JobFileRole& role);

/// Whether processes of this role need endpoints of their own.
bool has_endpoints(const JobFileRole& role);

/// The role's script, or its program, as a path from where fleetrun runs; a program without a slash stays as it is, to
/// be found on PATH.
std::string script_path(const JobFileRole& role);

/// Puts the file's settings behind what the command line says, and its servers and trainers where those of flags
/// would be.
/// Throws: Error(usage) for flags that say what roles say, and for arguments behind the file.
void apply_job_file(const JobFile& file, Options& options);

}  // namespace fleetrun::launcher
