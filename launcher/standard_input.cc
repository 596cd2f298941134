#include "launcher/standard_input.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The signal to the process leaves through the lifeline, which the loop writes; then fleetrun may stop.
constexpr std::chrono::milliseconds kOnItsWay{10};

class Share final : public TerminalShare {
 public:
  Share(asio::io_context& loop, std::function<void(int)> send)
      : signals_(loop, SIGTSTP, SIGCONT), stop_(loop), send_(std::move(send)) {
    wait();
  }

 private:
  void wait() {
    signals_.async_wait([this](const error_code& error, int number) {
      if (error) return;
      if (number == SIGTSTP) {
        send_(SIGSTOP);
        stop_.expires_after(kOnItsWay);
        stop_.async_wait([](const error_code& cancelled) {
          if (!cancelled) ::raise(SIGSTOP);
        });
      } else {
        stop_.cancel();
        send_(SIGCONT);
      }
      wait();
    });
  }

  asio::signal_set signals_;
  asio::steady_timer stop_;
  std::function<void(int)> send_;
};

}  // namespace

std::optional<std::size_t> process_with_input(const Plan& plan, const StandardInput& choice) {
  if (choice.kind == StandardInput::Kind::none) return std::nullopt;
  if (choice.kind == StandardInput::Kind::lone)
    return plan.processes.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    const ProcessSpec& process = plan.processes[i];
    if (process.identity.role == Role::trainer && process.identity.rank == choice.rank) return i;
  }
  throw Error(ErrorKind::config, "--stdin=" + std::to_string(choice.rank) + " names no trainer of this job",
              "name the rank of a trainer, or none");
}

int usable_input(int fd) noexcept {
  if (fd < 0 || !::isatty(fd)) return fd;
  const pid_t foreground = ::tcgetpgrp(fd);
  // A terminal that is not this session's (ENOTTY) has no foreground that would matter.
  return foreground >= 0 && foreground != ::getpgrp() ? -1 : fd;
}

std::unique_ptr<TerminalShare> share_terminal(asio::io_context& loop, std::function<void(int)> send) {
  return std::make_unique<Share>(loop, std::move(send));
}

}  // namespace fleetrun::launcher
