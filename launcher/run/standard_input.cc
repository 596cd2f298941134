#include "launcher/run/standard_input.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/spawn/spawner.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

using boost::system::error_code;

// The signal to the process leaves through the lifeline, which the loop writes; then fleetrun may stop.
constexpr std::chrono::milliseconds kOnItsWay{20};

class Input final : public JobPart {
 public:
  Input(std::size_t index, int fd) : index_(index), fd_(fd) {}
  void prepare(std::size_t index, StartExtras& extras) override {
    if (index == index_) extras.stdin_fd = fd_;
  }

 private:
  std::size_t index_;
  int fd_;
};

class Share final : public JobPart {
 public:
  Share(JobControl& control, std::size_t index)
      : control_(control), index_(index), signals_(control.loop(), SIGTSTP, SIGCONT), stop_(control.loop()) {
    wait();
  }

 private:
  void wait() {
    signals_.async_wait([this](const error_code& error, int number) {
      if (error) return;
      on_signal(number);
      wait();
    });
  }

  void on_signal(int number) {
    stop_.cancel();
    if (number == SIGCONT) return control_.send_signal(index_, SIGCONT);
    control_.send_signal(index_, SIGSTOP);
    stop_.expires_after(kOnItsWay);
    stop_.async_wait([](const error_code& error) {
      if (!error) ::raise(SIGSTOP);
    });
  }

  JobControl& control_;
  std::size_t index_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer stop_;
};

}  // namespace

std::optional<std::size_t> input_process(const StandardInput& spec, const Plan& plan) {
  using Kind = StandardInput::Kind;
  const bool several_hosts = plan.processes.front().identity.world.has_value();
  if (spec.kind == Kind::none) return std::nullopt;
  if (spec.kind == Kind::lone)
    return plan.processes.size() == 1 && !several_hosts ? std::optional<std::size_t>(0) : std::nullopt;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    const Identity& identity = plan.processes[i].identity;
    if (identity.role == Role::trainer && identity.rank == spec.rank) return i;
  }
  if (several_hosts) return std::nullopt;
  throw Error(ErrorKind::usage,
              "--stdin is " + std::to_string(spec.rank) + ", and the job has no such trainer",
              "name the rank of a trainer, counted from 0");
}

int usable_input(int fd) noexcept {
  if (fd < 0 || !::isatty(fd)) return fd;
  const pid_t foreground = ::tcgetpgrp(fd);
  // A terminal that is not this session's (ENOTTY) has no foreground that would matter.
  return foreground >= 0 && foreground != ::getpgrp() ? -1 : fd;
}

MakeJobPart give_input(std::size_t index, int fd) {
  return [index, fd](JobControl&) -> std::unique_ptr<JobPart> { return std::make_unique<Input>(index, fd); };
}

MakeJobPart share_terminal(std::size_t index) {
  return [index](JobControl& control) -> std::unique_ptr<JobPart> {
    return std::make_unique<Share>(control, index);
  };
}

}  // namespace fleetrun::launcher
