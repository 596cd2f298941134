#include "runtime/base/exit_reason.h"

#include <string.h>
#include <sys/wait.h>

#include <csignal>

namespace fleetrun {

ExitReason exit_reason_from(int wait_status) noexcept {
  if (WIFSIGNALED(wait_status))
    return {ExitReason::Kind::signaled, WTERMSIG(wait_status), WCOREDUMP(wait_status) != 0};
  return {ExitReason::Kind::exited, WEXITSTATUS(wait_status), false};
}

int exit_status(const ExitReason& reason) noexcept {
  return reason.kind == ExitReason::Kind::signaled ? 128 + reason.code : reason.code;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(number);
}

std::string to_string(const ExitReason& reason) {
  if (reason.kind == ExitReason::Kind::exited) return "exited with " + std::to_string(reason.code);
  return "was killed by " + signal_name(reason.code) + (reason.core_dumped ? " (core dumped)" : "");
}

}  // namespace fleetrun
