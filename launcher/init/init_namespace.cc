// Steps of inner init, in their order: die with outer; own the user namespace, if there is one; take the
// host's mounts but give it none; mount /proc; say through a pipe that all is well, or which step failed.
#include "launcher/init/init_namespace.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace fleetrun::launcher {
namespace {

enum Step : std::int32_t { kNone, kDeathSignal, kIdentity, kMounts, kProc };
constexpr const char* kStepNames[] = {"", "its parent is gone", "user and group", "private mounts", "/proc"};

struct Outcome {
  std::int32_t step = kNone;
  std::int32_t error = 0;
};

pid_t clone_into(std::uint64_t namespaces) {
  clone_args args = {};
  args.flags = namespaces;
  args.exit_signal = SIGCHLD;
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

bool write_file(const char* path, const std::string& text) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// The same user and group inside as outside, and no other.
bool keep_identity(uid_t user, gid_t group) {
  const auto itself = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", itself(user)) &&
         write_file("/proc/self/gid_map", itself(group));
}

Outcome settle(bool own_user_namespace, uid_t user, gid_t group) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return {kDeathSignal, errno};
  if (own_user_namespace && !keep_identity(user, group)) return {kIdentity, errno};
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return {kMounts, errno};
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) return {kProc, errno};
  ::setsid();
  return {};
}

NamespaceAttempt attempt(bool own_user_namespace) {
  NamespaceAttempt result;
  UniqueFd host_proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    result.refusal = std::string("no pipe: ") + ::strerror(errno);
    return result;
  }
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  const pid_t pid =
      clone_into(CLONE_NEWPID | CLONE_NEWNS | (own_user_namespace ? CLONE_NEWUSER : std::uint64_t{0}));
  if (pid == 0) {
    read_end.reset();  // outer has the only one: the write fails when it died before the death signal was set
    const Outcome outcome = settle(own_user_namespace, user, group);
    const bool told = ::write(write_end.value(), &outcome, sizeof outcome) == sizeof outcome;
    if (!told || outcome.step != kNone) ::_exit(1);
    result.inside.emplace(std::move(host_proc));
    return result;
  }
  if (pid == -1) {
    result.refusal = std::string("no pid namespace: ") + ::strerror(errno);
    return result;
  }
  write_end.reset();
  Outcome outcome;
  if (::read(read_end.value(), &outcome, sizeof outcome) != sizeof outcome) outcome = {kDeathSignal, ECHILD};
  if (outcome.step == kNone) {
    result.inner = pid;
    return result;
  }
  ::waitpid(pid, nullptr, 0);
  result.refusal =
      std::string("no pid namespace: ") + kStepNames[outcome.step] + ": " + ::strerror(outcome.error);
  return result;
}

}  // namespace

pid_t PidNamespace::host_pid(int pidfd) const {
  // A process directory shows pids as the namespace does in which that /proc was mounted.
  const std::string path = "self/fdinfo/" + std::to_string(pidfd);
  const UniqueFd fd(::openat(host_proc_.value(), path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!fd || ::read(fd.value(), text, sizeof text - 1) <= 0) return -1;
  const char* line = ::strstr(text, "\nPid:\t");
  return line == nullptr ? -1 : static_cast<pid_t>(std::strtol(line + 6, nullptr, 10));
}

NamespaceAttempt enter_pid_namespace() {
  return attempt(::geteuid() != 0);
}

int await_inner_init(pid_t inner, int signals) {
  for (;;) {
    int status = 0;
    if (::waitpid(inner, &status, WNOHANG) == inner) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    pollfd ready = {signals, POLLIN, 0};
    ::poll(&ready, 1, -1);
    signalfd_siginfo info[8];
    for (ssize_t got; (got = ::read(signals, info, sizeof info)) > 0;) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof info[0]; ++i) {
        if (info[i].ssi_signo == SIGTERM) ::kill(inner, SIGTERM);
      }
    }
  }
}

}  // namespace fleetrun::launcher
