// Identity ↔ environment variables, by one table.
//
// The launcher writes the variables, the training process reads them; scripts written for Paddle's launcher
// find every variable that they expect. Reading what was written gives the same Identity: a property test
// walks every role.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/environ.h"
#include "runtime/base/identity.h"

namespace fleetrun {

/// The variables of this process, and no others.
Environ to_environ(const Identity& identity);

/// The variables of other roles, modes and launchers, which this process must not inherit from whoever
/// started the job: they would tell it that it is somebody else. `in_job`: a process of another job did.
std::vector<std::string> foreign_variables(const Identity& identity, bool in_job);

/// Whether a launcher has told this process that it is one of a job.
bool is_in_job(const Environ& environ);

/// Whether `name` is a variable that some process is told.
bool is_in_contract(std::string_view name);

/// Reads an identity back. Variables that only some launchers set have defaults (a pod name, the local rank,
/// …). Throws: Error(config) that names the variable that is missing or makes no sense.
Identity identity_from(const Environ& environ);

}  // namespace fleetrun
