#include "launcher/status/detach.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cerrno>
#include <memory>
#include <utility>

#include "launcher/logs/log_files.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/own_file.h"

namespace fleetrun::launcher {
namespace {

// A process counts as started when it has a pid; a program that cannot be executed says so a moment later.
constexpr std::chrono::milliseconds kSettled{50};
constexpr std::size_t kMaxShown = 1 << 20;  // of launch.log

/// Signals that the foreground passes on while it waits.
UniqueFd take_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

/// True once the background says that all run; false when it has ended.
bool wait_until_running(int running, int signals, pid_t background) {
  for (;;) {
    pollfd both[] = {{running, POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(both, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    signalfd_siginfo info = {};
    if (both[1].revents != 0 && ::read(signals, &info, sizeof info) == sizeof info)
      ::kill(background, static_cast<int>(info.ssi_signo));
    char byte = 0;
    if (both[0].revents != 0) return ::read(running, &byte, 1) == 1;
  }
}

std::string read_all(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string text;
  char bytes[16384];
  for (ssize_t count;
       file && text.size() < kMaxShown && (count = ::read(file.value(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  return text;
}

Foreground wait_in_foreground(const Plan& plan, UniqueFd running, pid_t background,
                              const std::string& launch_log) {
  // The ports that are leased for the processes are the background's alone from now on:
  // a copy here would keep them.
  const int kept = ::fcntl(running.value(), F_DUPFD_CLOEXEC, 3);
  UniqueFd only(kept == 3 ? kept : ::dup3(running.value(), 3, O_CLOEXEC));
  if (kept != 3 && kept >= 0) ::close(kept);
  running.release();
  ::close_range(4, ~0U, 0);
  const UniqueFd signals = take_signals();
  Foreground foreground;
  if (wait_until_running(only.value(), signals.value(), background)) {
    foreground.output = "job " + plan.job_id + ", pod " + plan.pod_name + ", runs in the background (pid " +
                        std::to_string(background) + ")\n  fleetrun attach " + plan.pod_name +
                        "    shows it until it ends\n  fleetrun stop " + plan.pod_name +
                        "      ends it\n  LAUNCH lines: " + plan.log_dir_shown + "/" + plan.pod_name +
                        "/launch.log\n";
    return foreground;
  }
  int wait_status = 0;
  while (::waitpid(background, &wait_status, 0) < 0 && errno == EINTR) {
  }
  foreground.exit_status = exit_status(exit_reason_from(wait_status));
  foreground.error = read_all(launch_log);
  return foreground;
}

/// Leaves the terminal: a session of its own, /dev/null, and launch.log.
void settle_in_background(const UniqueFd& launch_log) {
  ::setsid();
  ::signal(SIGHUP, SIG_IGN);
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.value(), STDIN_FILENO);
  ::dup2(launch_log.value(), STDOUT_FILENO);
  ::dup2(launch_log.value(), STDERR_FILENO);
}

class Teller final : public JobPart {
 public:
  Teller(JobControl& control, std::shared_ptr<UniqueFd> running)
      : settled_(control.loop()), running_(std::move(running)) {}

  void on_event(const JobEvent& event) override {
    if (std::holds_alternative<event::ProcessNotStarted>(event)) settled_.cancel();
    if (!std::holds_alternative<event::AllRunning>(event) || !*running_) return;
    settled_.expires_after(kSettled);
    settled_.async_wait([running = running_](const boost::system::error_code& error) {
      if (error || !*running) return;
      (void)!::write(running->value(), "R", 1);
      running->reset();
    });
  }

 private:
  boost::asio::steady_timer settled_;
  std::shared_ptr<UniqueFd> running_;  // with what waits
};

}  // namespace

std::optional<Foreground> go_to_background(const Plan& plan, Background& background) {
  const UniqueFd directory = open_pod_directory(plan);
  const UniqueFd log(
      open_own_at(directory.value(), "launch.log", O_WRONLY | O_CREAT | O_APPEND, Readers::owner));
  background.launch_log = plan.log_dir + "/" + plan.pod_name + "/launch.log";
  check_errno(log.value(), "open", "writing " + background.launch_log);
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe", "going to the background");
  UniqueFd reading(ends[0]), writing(ends[1]);
  const pid_t pid = check_errno(::fork(), "fork", "going to the background");
  if (pid == 0) {
    settle_in_background(log);
    background.running = std::move(writing);
    return std::nullopt;
  }
  writing.reset();
  return wait_in_foreground(plan, std::move(reading), pid, background.launch_log);
}

MakeJobPart tell_running(UniqueFd running) {
  auto shared = std::make_shared<UniqueFd>(std::move(running));
  return [shared](JobControl& control) -> std::unique_ptr<JobPart> {
    return std::make_unique<Teller>(control, shared);
  };
}

}  // namespace fleetrun::launcher
