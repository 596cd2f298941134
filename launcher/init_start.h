// Starts one process of the pod, from inside fleetrun-init.
//
// The child gets a session of its own, default signal dispositions and an empty mask, the log as standard
// output and error, and no other descriptor. It dies with init (PR_SET_PDEATHSIG). Nothing waits for exec:
// when it fails, the child writes the step and errno into a shared slot and ends, and whoever reaps it looks
// there. So a child that ends at once is not lost, and a slow exec holds nobody up.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "launcher/init_protocol.h"
#include "runtime/base/environ.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// Shared memory, one per process: written by a child that could not become its program.
struct ExecFault {
  std::int32_t stage = 0;  // 0: no fault; else a kExecStages index
  std::int32_t error = 0;
};

/// "", "fork", "session", "descriptors", "directory", "exec"
const char* exec_stage_name(std::int32_t stage) noexcept;

struct StartedProcess {
  pid_t pid = -1;  // -1: fork failed, errno in `fault`
  UniqueFd pidfd;  // may be empty on an old kernel
  ExecFault* fault = nullptr;
};

struct StartContext {
  const Environ& base_environment;
  int cgroup_directory = -1;  // -1: none. Set to -1 by start_process when the kernel refuses it
  pid_t init_pid = 0;
  std::uint64_t open_files = 0;  // soft RLIMIT_NOFILE of the child; 0: unchanged
};

/// `stdin_fd` and `log_fd` are borrowed. Single-threaded callers only; all signals must be blocked.
StartedProcess start_process(const StartFrame& spec, int log_fd, int stdin_fd, StartContext& context);

}  // namespace fleetrun::launcher
