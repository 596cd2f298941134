#include "launcher/remote/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>

#include "launcher/host/helper_child.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/process_end.h"

namespace fleetrun::launcher::remote {
namespace {

struct Pipe {
  UniqueFd reading, writing;
};

Pipe make_pipe() {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe", "starting a command", ErrorKind::spawn);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void do_not_block(const UniqueFd& fd) {
  check_errno(::fcntl(fd.value(), F_SETFL, O_NONBLOCK), "fcntl", "starting a command", ErrorKind::spawn);
}

/// What the child does before it executes: descriptors, session, signals.
class Preparation {
 public:
  Preparation() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, ours;
    ::sigemptyset(&none);
    ::sigemptyset(&ours);
    for (const int number : {SIGPIPE, SIGTTOU, SIGXFSZ, SIGINT, SIGQUIT, SIGHUP}) ::sigaddset(&ours, number);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &ours);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Preparation() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  void descriptor(int fd, int number) { ::posix_spawn_file_actions_adddup2(&actions_, fd, number); }
  const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }
  const posix_spawnattr_t* attributes() const noexcept { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Command start_command(const CommandLine& line) {
  Pipe input = line.input < 0 ? make_pipe() : Pipe();
  Pipe output = make_pipe(), error = make_pipe();
  Preparation preparation;
  preparation.descriptor(line.input < 0 ? input.reading.value() : line.input, STDIN_FILENO);
  preparation.descriptor(output.writing.value(), STDOUT_FILENO);
  preparation.descriptor(error.writing.value(), STDERR_FILENO);
  const std::string& program = line.program.empty() ? line.argv.front() : line.program;
  Command command;
  const int failed =
      ::posix_spawnp(&command.pid, program.c_str(), preparation.actions(), preparation.attributes(),
                     pointers(line.argv).data(), pointers(line.environment).data());
  if (failed != 0)
    throw Error(ErrorKind::spawn, program + " cannot be started: " + std::strerror(failed),
                failed == ENOENT ? "install it, or name another with --ssh" : "");
  command.kill_target = line.killed_with_children ? -command.pid : command.pid;
  command.ended = watch_end(command.pid);
  check_errno(command.ended.value(), "pidfd_open", "starting a command", ErrorKind::spawn);
  if (input.writing) do_not_block(input.writing);
  do_not_block(output.reading);
  do_not_block(error.reading);
  command.input = std::move(input.writing);
  command.output = std::move(output.reading);
  command.error = std::move(error.reading);
  return command;
}

int exit_status_of(const Command& command) {
  int wait_status = 0;
  while (::waitpid(command.pid, &wait_status, 0) < 0) {
    if (errno != EINTR) return 255;
  }
  return exit_status(exit_reason_from(wait_status));
}

}  // namespace fleetrun::launcher::remote
