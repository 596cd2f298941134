// posix_spawn, not fork: a trainer is a large process with many threads. glibc 2.36 declares pidfd_open()
// without C linkage, hence syscall().
#include "dataset/process_group.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

/// A descriptor that is a copy of `fd` if that is one of 0, 1 and 2 (this process was started with one of
/// them closed): dup2() onto 0, 1, 2 must not overwrite what it still needs.
UniqueFd above_standard_streams(UniqueFd fd) {
  if (fd.value() > STDERR_FILENO) return fd;
  return UniqueFd(check_errno(::fcntl(fd.value(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1), "fcntl",
                              "cannot copy a descriptor", ErrorKind::spawn));
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void wait_for(pid_t pid) noexcept {
  while (::waitpid(pid, nullptr, 0) == -1 && errno == EINTR) {
  }
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe2", "cannot make a pipe", ErrorKind::spawn);
  UniqueFd reader(ends[0]), writer(ends[1]);
  return {above_standard_streams(std::move(reader)), above_standard_streams(std::move(writer))};
}

/// Starts a process in `group` (0: a new one) with no signal blocked or ignored.
pid_t ProcessGroup::spawn(std::vector<std::string> argv, const Streams& streams, pid_t group) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, streams.input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, streams.output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, streams.error, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, group);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes, pointers_to(argv).data(),
                                   pointers_to(environment_).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw Error(ErrorKind::spawn, "cannot start " + argv[0] + ": " + std::generic_category().message(error));
  return pid;
}

ProcessGroup::ProcessGroup(std::vector<std::string> environment) : environment_(std::move(environment)) {
  Pipe lifeline = make_pipe();
  const UniqueFd null = above_standard_streams(
      UniqueFd(check_errno(::open("/dev/null", O_RDWR | O_CLOEXEC), "open", "/dev/null", ErrorKind::spawn)));
  guard_ = spawn({"/bin/sh", "-c", "read line; kill -KILL 0", "fleetrun-pipe-guard"},
                 {lifeline.reader.value(), null.value(), null.value()}, 0);
  lifeline_ = std::move(lifeline.writer);
}

ProcessGroup::~ProcessGroup() {
  kill();
  for (const Process& process : processes_)
    if (process.pidfd) wait_for(process.pid);
  wait_for(guard_);
}

std::size_t ProcessGroup::start(const std::vector<std::string>& argv, const Streams& streams) {
  Process& process = processes_.emplace_back();
  try {
    process.pid = spawn(argv, streams, guard_);
  } catch (...) {
    processes_.pop_back();
    throw;
  }
  process.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!process.pidfd) {
    const int error = errno;
    kill();
    wait_for(process.pid);
    processes_.pop_back();
    throw Error(ErrorKind::spawn, "cannot watch " + argv[0] + ": " + std::generic_category().message(error));
  }
  return processes_.size() - 1;
}

bool ProcessGroup::all_reaped() const noexcept {
  return std::none_of(processes_.begin(), processes_.end(),
                      [](const Process& process) { return bool(process.pidfd); });
}

ExitReason ProcessGroup::reap(std::size_t index) {
  Process& process = processes_[index];
  int status = 0;
  pid_t ended;
  do {
    ended = ::waitpid(process.pid, &status, 0);
  } while (ended == -1 && errno == EINTR);
  process.pidfd.reset();
  if (ended == -1)
    throw Error(ErrorKind::spawn,
                "the exit status of a pipe command is lost: SIGCHLD is ignored in this process",
                "do not ignore SIGCHLD while a dataset is read");
  return exit_reason_from(status);
}

void ProcessGroup::kill() noexcept {
  ::kill(-guard_, SIGKILL);
}

}  // namespace fleetrun::dataset
