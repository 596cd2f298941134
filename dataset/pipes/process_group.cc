// posix_spawn, not fork: a trainer is a large process with many threads. glibc 2.36 declares pidfd_open()
// without C linkage, hence syscall().
#include "dataset/pipes/process_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/process_environment.h"
#include "runtime/base/text.h"

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

bool kill_process(const UniqueFd& pidfd) noexcept {
  return ::syscall(SYS_pidfd_send_signal, pidfd.value(), SIGKILL, nullptr, 0) == 0;
}

/// Kills this user's processes that were started with `variable`, and waits for their end;
/// how many there were.
std::size_t kill_all_with(const std::string& variable) {
  std::size_t killed = 0;
  std::error_code ignored;  // processes come and go
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string directory = entry.path().string();
    const auto pid = parse_integer(entry.path().filename().string());
    struct stat status {};
    if (!pid || ::stat(directory.c_str(), &status) == -1 || status.st_uid != ::geteuid()) continue;
    const auto number = static_cast<pid_t>(*pid);
    if (!was_started_with(number, {variable})) continue;
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
    if (!process || !was_started_with(number, {variable})) continue;  // still the same process
    if (!kill_process(process)) continue;
    pollfd ended = {process.value(), POLLIN, 0};
    ::poll(&ended, 1, 1000);
    ++killed;
  }
  return killed;
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
  const std::string name = std::string("FLEETRUN_PIPE") + "=";
  std::erase_if(environment_, [&](const std::string& variable) { return variable.starts_with(name); });
  mark_ = name + std::to_string(::getpid()) + "." + std::to_string(guard_);
  environment_.push_back(mark_);
}

ProcessGroup::~ProcessGroup() {
  kill();
  for (const Process& process : processes_) {
    if (!process.pidfd) continue;
    kill_process(process.pidfd);  // it may have left the group
    wait_for(process.pid);
  }
  wait_for(guard_);
  constexpr int rounds = 10;  // of processes that start others as fast as they are killed
  try {
    for (int round = 0; round < rounds && kill_all_with(mark_) > 0; ++round) {
    }
  } catch (const std::exception&) {
    // What is left is the business of fleetrun-init.
  }
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
