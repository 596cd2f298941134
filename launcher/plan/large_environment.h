// Environments that are too large: for the consumers of one variable, and for the kernel.
//
// A job of thousands of processes has a list of endpoints that fills the environment of each. From
// PADDLE_ENV_LIMIT_LEN bytes on (48,000) Paddle's launcher leaves it out and names a file that has it
// (PADDLE_BACKUP_ENV_PATH), where Paddle's processes look. Ours does so too, with one file for the pod, which
// holds that list and nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/model/plan.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Takes lists of endpoints of `limit` bytes or more out of a process's environment, and into `moved`: from
/// each process as it is made, since ten thousand of them with all lists are gigabytes. Pure.
void move_large_lists(const Plan& plan, ProcessSpec& process, std::size_t limit, Environ& moved);

/// From all processes of the plan; what was moved before and now is its backup. Pure.
void move_large_lists(Plan& plan, std::size_t limit, Environ moved = {});

/// Writes plan.backup, readable by this user alone; where there is none, nothing.
/// Throws: Error(host).
void write_backup(const Plan& plan);

/// What the kernel lets execve() hand over, arguments and environment together, under this process's limits.
std::size_t max_exec_bytes();

/// Refuses a plan whose processes the kernel would not start (E2BIG), naming the largest variable. Pure.
/// Throws: Error(config).
void check_exec_size(const Plan& plan, const Environ& base, std::size_t max_bytes);

}  // namespace fleetrun::launcher
