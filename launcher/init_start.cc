#include "launcher/init_start.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace fleetrun::launcher {
namespace {

enum Stage : std::int32_t { kNone, kFork, kSession, kDescriptors, kDirectory, kExec };

struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  const char* cwd;  // nullptr: stay
  int log_fd;
  int stdin_fd;
  pid_t init_pid;
  rlim_t open_files;
  ExecFault* fault;
};

[[noreturn]] void give_up(const ChildPlan& plan, Stage stage) noexcept {
  plan.fault->error = errno;
  plan.fault->stage = stage;
  ::_exit(127);
}

/// Between clone and exec: system calls only.
[[noreturn]] void become_program(const ChildPlan& plan) noexcept {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(plan, kSession);
  if (::getppid() != plan.init_pid) ::_exit(127);  // init died before the line above
  if (::setsid() == -1) give_up(plan, kSession);
  if (::dup2(plan.stdin_fd, 0) == -1 || ::dup2(plan.log_fd, 1) == -1 || ::dup2(plan.log_fd, 2) == -1)
    give_up(plan, kDescriptors);
  // Everything init opens is close-on-exec already; this is for what it inherited. Kernels before 5.11 lack
  // it.
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  rlimit files;
  if (plan.open_files != 0 && ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = plan.open_files;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) give_up(plan, kDescriptors);
  }
  if (plan.cwd != nullptr && ::chdir(plan.cwd) != 0) give_up(plan, kDirectory);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(plan.program, plan.argv, plan.envp);
  give_up(plan, kExec);
}

pid_t clone_child(int cgroup_directory, int* pidfd) {
  clone_args args = {};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_directory >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_directory);
  }
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

/// fork() with a pidfd, in the cgroup where the kernel allows it; what it refuses is not tried again.
pid_t fork_child(StartContext& context, UniqueFd& pidfd) {
  int fd = -1;
  pid_t pid = -1;
  if (context.cgroup_directory >= 0) {
    pid = clone_child(context.cgroup_directory, &fd);
    if (pid == -1 && errno != EAGAIN && errno != ENOMEM) context.cgroup_directory = -1;
  }
  if (pid == -1 && context.cgroup_directory < 0) pid = clone_child(-1, &fd);
  if (pid == -1 && (errno == ENOSYS || errno == EPERM || errno == EINVAL)) {
    pid = ::fork();
    if (pid > 0) fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  }
  if (pid > 0) pidfd.reset(fd);
  return pid;
}

/// A machine that is out of processes for a moment is asked again, for up to a third of a second.
pid_t fork_with_patience(StartContext& context, UniqueFd& pidfd) {
  timespec pause = {0, 10'000'000};
  for (int attempt = 0;; ++attempt) {
    const pid_t pid = fork_child(context, pidfd);
    if (pid != -1 || errno != EAGAIN || attempt == 5) return pid;
    ::nanosleep(&pause, nullptr);
    pause.tv_nsec *= 2;
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> merged_environment(const Environ& base, const std::vector<std::string>& additions) {
  Environ merged = base;
  for (const std::string& entry : additions) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos)
      merged.erase(entry);
    else
      merged.set(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return merged.entries();
}

}  // namespace

const char* exec_stage_name(std::int32_t stage) noexcept {
  constexpr const char* kNames[] = {"", "fork", "session", "descriptors", "directory", "exec"};
  return stage >= kNone && stage <= kExec ? kNames[stage] : "";
}

StartedProcess start_process(const StartFrame& spec, int log_fd, int stdin_fd, StartContext& context) {
  StartedProcess started;
  void* shared =
      ::mmap(nullptr, sizeof(ExecFault), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return started;
  started.fault = new (shared) ExecFault();

  std::vector<std::string> argv_texts = spec.argv;
  std::vector<std::string> env_texts = merged_environment(context.base_environment, spec.environment);
  const std::vector<char*> argv = pointers_to(argv_texts), envp = pointers_to(env_texts);
  const ChildPlan plan = {.program = spec.program.c_str(),
                          .argv = argv.data(),
                          .envp = envp.data(),
                          .cwd = spec.cwd.empty() ? nullptr : spec.cwd.c_str(),
                          .log_fd = log_fd,
                          .stdin_fd = stdin_fd,
                          .init_pid = context.init_pid,
                          .open_files = context.open_files,
                          .fault = started.fault};
  started.pid = fork_with_patience(context, started.pidfd);
  if (started.pid == 0) become_program(plan);
  if (started.pid == -1) *started.fault = {kFork, errno};
  return started;
}

}  // namespace fleetrun::launcher
