#include "launcher/run/own_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "launcher/spawn/spawner.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Stream = asio::posix::stream_descriptor;

constexpr std::size_t kChunk = 4096;  // what a pipe that is writable takes without blocking
constexpr int kMostChunks = 256;      // more than a terminal holds: the rest is written meanwhile
constexpr int kScreenPatience = 200;  // ms, for a screen that takes nothing when the process has ended

int checked(int result, const char* call) {
  return check_errno(result, call, "making a terminal for --pty", ErrorKind::host);
}

/// An epoll of its own on `fd`, readable when `fd` is ready: what asio waits for it makes non-blocking, and
/// those who share the terminal with fleetrun would have it so.
int watch(int fd, std::uint32_t events) {
  UniqueFd watch(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
  epoll_event event = {.events = events, .data = {}};
  if (::epoll_ctl(watch.value(), EPOLL_CTL_ADD, fd, &event) != 0 &&
      errno != EPERM)  // of a file: always ready
    checked(-1, "epoll_ctl");
  return watch.release();
}

/// The user's terminal, which is as it was whenever this is gone.
class UserTerminal {
 public:
  UserTerminal() { checked(::tcgetattr(STDIN_FILENO, &before_), "tcgetattr"); }
  UserTerminal(const UserTerminal&) = delete;
  UserTerminal& operator=(const UserTerminal&) = delete;
  ~UserTerminal() { restore(); }

  const termios& before() const { return before_; }
  bool is_raw() const { return raw_; }

  /// In the background it is the shell's.
  void make_raw() {
    if (raw_ || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    raw_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }

  void restore() {
    if (!std::exchange(raw_, false)) return;
    sigset_t background, mask;  // whose SIGTTOU would stop fleetrun instead
    ::sigemptyset(&background);
    ::sigaddset(&background, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &background, &mask);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  }

 private:
  termios before_;
  bool raw_ = false;
};

class OwnTerminal final : public JobPart {
 public:
  OwnTerminal(JobControl& control, std::size_t index)
      : index_(index),
        loop_(control.loop()),
        signals_(control.loop(), SIGTSTP, SIGCONT, SIGWINCH),
        keys_(control.loop(), watch(STDIN_FILENO, EPOLLIN)),
        screen_(control.loop(), watch(STDOUT_FILENO, EPOLLOUT)),
        master_(control.loop()) {
    await_signal();
  }

  void prepare(std::size_t index, StartExtras& extras) override {
    if (index != index_) return;
    ++attempt_;
    hung_up_ = false;
    error_code ignored;
    master_.close(ignored);
    UniqueFd master(checked(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), "posix_openpt"));
    checked(::grantpt(master.value()), "grantpt");
    checked(::unlockpt(master.value()), "unlockpt");
    slave_ =
        UniqueFd(checked(::ioctl(master.value(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC), "TIOCGPTPEER"));
    ::tcsetattr(slave_.value(), TCSANOW, &user_.before());
    master_.assign(master.release());
    resize();
    int log = extras.log_fd;
    std::erase_if(extras.passed, [&log](const PassedDescriptor& passed) {
      if (passed.number == STDOUT_FILENO) log = passed.fd;
      return passed.number == STDOUT_FILENO || passed.number == STDERR_FILENO;
    });
    log_ = UniqueFd(checked(::fcntl(log, F_DUPFD_CLOEXEC, 3), "fcntl"));
    extras.stdin_fd = slave_.value();
    extras.controls_stdin = true;
    extras.passed.push_back({slave_.value(), STDOUT_FILENO});
    extras.passed.push_back({slave_.value(), STDERR_FILENO});
  }

  void on_event(const JobEvent& event) override {
    if (const auto* started = std::get_if<event::ProcessStarted>(&event);
        started && started->index == index_) {
      slave_ = UniqueFd();  // from here on the end of the process is the end of its output
      await_output();
      asio::post(loop_, [this] { take_keys(); });  // when the launcher has told of the start
    }
    if (std::holds_alternative<event::SignalReceived>(event)) {
      stopping_ = true;  // Ctrl-C is fleetrun's again, and does not wait for the grace
      user_.restore();
    }
    const auto* exited = std::get_if<event::ProcessExited>(&event);
    if (exited && exited->index == index_) user_.restore();
  }

  void catch_up() override {
    for (int i = 0; i < kMostChunks && take_output(); ++i) {
    }
    for (pollfd ready = {STDOUT_FILENO, POLLOUT, 0}; !to_show_.empty(); show()) {
      if (::poll(&ready, 1, kScreenPatience) == 0) break;  // the log has it
    }
    if (hung_up_) user_.restore();  // before anybody tells how it ended
  }

 private:
  void await_signal() {
    signals_.async_wait([this](const error_code& error, int number) {
      if (error) return;
      if (number == SIGTSTP) user_.restore();
      if (number != SIGTSTP) resize();
      if (number == SIGCONT) take_keys();
      await_signal();
    });
  }

  void resize() {
    winsize size;
    if (master_.is_open() && ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
      ::ioctl(master_.native_handle(), TIOCSWINSZ, &size);
  }

  // Keys

  void take_keys() {
    if (!master_.is_open() || slave_ || hung_up_ || stopping_) return;
    user_.make_raw();
    await_keys();
  }

  void await_keys() {
    if (!user_.is_raw() || std::exchange(awaiting_keys_, true)) return;
    keys_.async_wait(Stream::wait_read, [this](const error_code& error) {
      awaiting_keys_ = false;
      if (error || !user_.is_raw() || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
      char bytes[kChunk];
      const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return;  // it was hung up
      if (count > 0) typed_.append(bytes, static_cast<std::size_t>(count));
      take_suspend();
      type();
    });
  }

  /// A session of its own has no shell that could wake the process, so Ctrl-Z is fleetrun's: it stops both.
  /// As the leader of its session, fleetrun itself would sleep for ever.
  void take_suspend() {
    termios line;
    if (::getsid(0) == ::getpgrp() || ::tcgetattr(master_.native_handle(), &line) != 0) return;
    const std::size_t at = typed_.find(static_cast<char>(line.c_cc[VSUSP]));
    if ((line.c_lflag & ISIG) == 0 || line.c_cc[VSUSP] == 0 || at == std::string::npos) return;
    typed_.erase(at, 1);
    ::kill(0, SIGTSTP);
  }

  void type() {
    const ssize_t count = ::write(master_.native_handle(), typed_.data(), typed_.size());
    if (count > 0) typed_.erase(0, static_cast<std::size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR) typed_.clear();
    if (typed_.empty()) return await_keys();
    master_.async_wait(Stream::wait_write, [this](const error_code& error) {
      if (!error) type();
    });
  }

  // Output

  void await_output() {
    master_.async_wait(Stream::wait_read, [this, attempt = attempt_](const error_code& error) {
      if (error || attempt != attempt_) return;
      take_output();
      await_screen(attempt);
    });
  }

  void await_screen(int attempt) {
    struct stat screen;
    if (::fstat(STDOUT_FILENO, &screen) == 0 && S_ISREG(screen.st_mode)) show();
    if (to_show_.empty()) return hung_up_ ? user_.restore() : await_output();
    screen_.async_wait(Stream::wait_read, [this, attempt](const error_code& error) {
      if (error || attempt != attempt_) return;
      show();
      await_screen(attempt);
    });
  }

  /// Reads once; false when there is nothing, or the end has come.
  bool take_output() {
    if (!master_.is_open()) return false;
    char bytes[kChunk];
    const ssize_t count = ::read(master_.native_handle(), bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {
      hung_up_ = !slave_;
      return false;
    }
    to_show_.append(bytes, static_cast<std::size_t>(count));
    write_log({bytes, static_cast<std::size_t>(count)});
    return true;
  }

  void show() {
    if (to_show_.empty()) return;
    const ssize_t count = ::write(STDOUT_FILENO, to_show_.data(), std::min(to_show_.size(), kChunk));
    if (count > 0) to_show_.erase(0, static_cast<std::size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR) to_show_.clear();  // its reader has left
  }

  /// The terminal ends lines with \r\n; a log, and who reads it, has \n.
  void write_log(std::string_view bytes) {
    std::string lines;
    for (const char c : bytes) {
      if (std::exchange(held_return_, false) && c != '\n') lines += '\r';
      held_return_ = c == '\r';
      if (!held_return_) lines += c;
    }
    write_all(log_.value(), lines);  // where the disk is full, the rest is lost as a process's own is
  }

  std::size_t index_;
  asio::io_context& loop_;
  int attempt_ = 0;
  UserTerminal user_;
  asio::signal_set signals_;
  Stream keys_, screen_;  // watches of the user's
  Stream master_;
  UniqueFd slave_, log_;  // the process's end, until it was started
  bool awaiting_keys_ = false, held_return_ = false, hung_up_ = false, stopping_ = false;
  std::string typed_, to_show_;
};

}  // namespace

void check_own_terminal(const Plan& plan, std::optional<std::size_t> index, int input) {
  const auto refuse = [](const std::string& why, const char* hint) {
    throw Error(ErrorKind::usage, "--pty is given, and " + why, hint);
  };
  if (plan.processes.front().identity.world)
    refuse("the job has several hosts: no terminal reaches them all", "run the script on one host");
  if (!index)
    refuse("no process has standard input: the job has " + std::to_string(plan.processes.size()),
           "--stdin=RANK names the trainer that gets the terminal");
  if (!::isatty(STDIN_FILENO))
    refuse("standard input is no terminal", "run it in one, or under script -c 'fleetrun …'");
  if (input < 0) refuse("fleetrun is in the background of its terminal", "start it in the foreground");
}

MakeJobPart own_terminal(std::size_t index) {
  return [index](JobControl& control) -> std::unique_ptr<JobPart> {
    return std::make_unique<OwnTerminal>(control, index);
  };
}

}  // namespace fleetrun::launcher
