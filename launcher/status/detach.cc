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

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "launcher/logs/log_files.h"
#include "runtime/base/close_from.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/own_file.h"
#include "runtime/base/still_here.h"

namespace fleetrun::launcher {
namespace {

// A process counts as started when it has a pid; a program that cannot be executed says so a moment later.
constexpr std::chrono::milliseconds kSettled{50};
constexpr std::string_view kInit = "/fleetrun-init";
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
  close_from(4);
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

/// Whether the process does not run its program yet, or has ended and that was not told yet.
bool is_beginning(pid_t pid) {
  char name[4096];
  const ssize_t size = ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), name, sizeof name);
  if (size < 0) return errno == ENOENT;
  return std::string_view(name, static_cast<std::size_t>(size)).ends_with(kInit);
}

class Teller final : public JobPart {
 public:
  Teller(JobControl& control, std::shared_ptr<UniqueFd> running)
      : settled_(control.loop()), running_(std::move(running)) {}

  void on_event(const JobEvent& event) override {
    if (const auto* started = std::get_if<event::ProcessStarted>(&event))
      pids_[started->index] = started->pid;
    else if (const auto* exited = std::get_if<event::ProcessExited>(&event))
      pids_.erase(exited->index);
    else if (std::holds_alternative<event::ProcessNotStarted>(event))
      settled_.cancel();
    else if (std::holds_alternative<event::AllRunning>(event))
      look_later();
  }

 private:
  void look_later() {
    settled_.expires_after(kSettled);
    settled_.async_wait(still_here_.only([this](const boost::system::error_code& error) {
      if (error || !*running_) return;
      if (std::any_of(pids_.begin(), pids_.end(), [](const auto& at) { return is_beginning(at.second); }))
        return look_later();
      (void)!::write(running_->value(), "R", 1);
      running_->reset();
    }));
  }

  boost::asio::steady_timer settled_;
  std::shared_ptr<UniqueFd> running_;  // with what waits
  std::map<std::size_t, pid_t> pids_;  // by index in the plan
  StillHere still_here_;
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
