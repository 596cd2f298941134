// fleetrun ps: finds the job, and runs fleetrun-ps, a program of its own,
// with where its parameter servers are.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Does not return where the program could be executed.
/// Throws: Error(spawn) when there is no fleetrun-ps, Error(usage)
/// when there is no such job or it has no servers.
int run_ps_command(const std::vector<std::string>& arguments, const Environ& environment);

/// What `--job` says among `arguments`, and the rest of them. Throws: Error(usage) where its value is
/// missing, or it is there twice.
struct JobArguments {
  std::vector<std::string> job;  // none or one
  std::vector<std::string> rest;
  bool needs_job = true;  // false: help is wanted, or the servers are named
};
JobArguments split_job_arguments(const std::vector<std::string>& arguments);

}  // namespace fleetrun::cli
