// How a process ended: the wait status of the kernel, decoded once.
#pragma once

#include <string>

namespace fleetrun {

struct ExitReason {
  enum class Kind { exited, signaled };

  Kind kind = Kind::exited;
  int code = 0;  // exit code 0..255, or the signal's number
  bool core_dumped = false;

  bool ok() const noexcept { return kind == Kind::exited && code == 0; }
  bool operator==(const ExitReason&) const = default;
};

/// Decodes what waitpid() stores. Only for a process that has ended (not one that is stopped or continued).
ExitReason exit_reason_from(int wait_status) noexcept;

/// What a shell would show: the exit code, or 128 + the signal's number.
int exit_status(const ExitReason& reason) noexcept;

/// "SIGKILL"; "signal 99" for a number without a name.
std::string signal_name(int number);

/// "exited with 3", "was killed by SIGKILL", "was killed by SIGSEGV (core dumped)".
std::string to_string(const ExitReason& reason);

}  // namespace fleetrun
