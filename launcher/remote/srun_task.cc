// One loop over poll(): nothing is computed here, and what either side cannot take yet stays
// in the other's pipe.
#include "launcher/remote/srun_task.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "launcher/remote/agent_channel.h"
#include "launcher/remote/command.h"
#include "launcher/remote/srun_lines.h"
#include "launcher/schedulers/slurm_allocation.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

using remote::Addressed;

constexpr std::size_t kMaxWaiting = 1 << 20;

/// The address from which `address` is reached, if it is one of IPv4 or IPv6. Nothing is sent.
std::string own_address_towards(const std::string& address) {
  sockaddr_storage own = {};
  socklen_t length = sizeof(sockaddr_in);
  auto* four = reinterpret_cast<sockaddr_in*>(&own);
  auto* six = reinterpret_cast<sockaddr_in6*>(&own);
  if (::inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(9);
  } else if (::inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(9);
    length = sizeof(sockaddr_in6);
  } else {
    return {};
  }
  const UniqueFd probe(::socket(own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || ::connect(probe.value(), reinterpret_cast<sockaddr*>(&own), length) != 0) return {};
  length = sizeof own;
  if (::getsockname(probe.value(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  const void* number = own.ss_family == AF_INET ? static_cast<const void*>(&four->sin_addr) : &six->sin6_addr;
  return ::inet_ntop(own.ss_family, number, text, sizeof text) ? text : "";
}

/// An agent tells its controller how the two see each other as sshd writes it: srun's address, and our own.
Environ environment_of_agent(Environ environment) {
  const std::string controller = environment.value_or("SLURM_LAUNCH_NODE_IPADDR", "");
  const std::string own = own_address_towards(controller);
  if (own.empty())
    environment.erase("SSH_CONNECTION");
  else
    environment.set("SSH_CONNECTION", controller + " 0 " + own + " 0");
  return environment;
}

std::uint32_t number_of_host(const Environ& environment) {
  const auto allocation = slurm_allocation(environment);
  if (!allocation || !allocation->step)
    throw Error(ErrorKind::config, "this is not a task of srun's",
                "fleetrun starts it by itself in an allocation of Slurm's: fleetrun train.py");
  return static_cast<std::uint32_t>(allocation->step->node);
}

void do_not_block(int fd) {
  const int flags = check_errno(::fcntl(fd, F_GETFL), "fcntl", "standing between srun and an agent");
  check_errno(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), "fcntl", "standing between srun and an agent");
}

class Task {
 public:
  Task(const Environ& environment, std::uint32_t host)
      : host_(host), from_srun_(remote::kLongestOrder, false) {
    listen_for_signals();
    remote::CommandLine line;
    line.argv = {"fleetrun", "agent", "--stdin"};
    line.program = "/proc/self/exe";
    line.environment = environment_of_agent(environment).entries();
    agent_ = remote::start_command(line);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) do_not_block(fd);
  }

  int run() {
    while (!ended_ || !to_srun_.empty()) {
      wait();
      if (readable(kSignals)) take_signals();
      if (readable(kSrun)) take_from_srun();
      if (readable(kOutput)) take_output();
      if (readable(kError)) pass_on_error();
      flush(agent_.input, to_agent_);
      if (closing_ && to_agent_.empty()) agent_.input.reset();
      if (readable(kEnded) && !ended_) on_agent_end();
      if (!write_some(STDOUT_FILENO, to_srun_)) {  // srun is gone: nobody listens any more
        to_srun_.clear();
        close_input();
      }
    }
    return status_;
  }

 private:
  enum Watched { kSignals, kSrun, kOutput, kError, kEnded, kToAgent, kToSrun, kCount };

  void listen_for_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaddset(&set, number);
    check_errno(::sigprocmask(SIG_BLOCK, &set, nullptr), "sigprocmask", "listening for signals");
    signals_ = UniqueFd(
        check_errno(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd", "listening for signals"));
  }

  void wait() {
    const bool room = to_srun_.size() < kMaxWaiting;
    const auto watch = [&](Watched which, int fd, bool wanted, short events) {
      watched_[which] = {wanted ? fd : -1, events, 0};
    };
    watch(kSignals, signals_.value(), true, POLLIN);
    watch(kSrun, STDIN_FILENO, !closing_ && to_agent_.size() < kMaxWaiting, POLLIN);
    watch(kOutput, agent_.output.value(), room && agent_.output, POLLIN);
    watch(kError, agent_.error.value(), static_cast<bool>(agent_.error), POLLIN);
    watch(kEnded, agent_.ended.value(), !ended_, POLLIN);
    watch(kToAgent, agent_.input.value(), agent_.input && !to_agent_.empty(), POLLOUT);
    watch(kToSrun, STDOUT_FILENO, !to_srun_.empty(), POLLOUT);
    while (::poll(watched_, kCount, -1) < 0 && errno == EINTR) {
    }
  }

  bool readable(Watched which) const { return watched_[which].fd >= 0 && watched_[which].revents != 0; }

  void take_signals() {
    signalfd_siginfo info;
    while (::read(signals_.value(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (ended_) continue;
      if (number == SIGUSR1 || number == SIGUSR2)
        to_agent_.append(remote::encode(Addressed{host_, remote::Signal{number}}));
      else
        ::kill(agent_.pid, number);
    }
  }

  void close_input() { closing_ = true; }

  void take_from_srun() {
    char bytes[64 << 10];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return close_input();
    try {
      from_srun_.append({bytes, static_cast<std::size_t>(count)});
      while (auto frame = from_srun_.next()) {
        if (frame->host == host_) to_agent_.append(remote::encode(*frame));
      }
    } catch (const Error&) {
      close_input();
    }
  }

  void take_output() {
    char bytes[64 << 10];
    const ssize_t count = ::read(agent_.output.value(), bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return agent_.output.reset();
    to_srun_.append(srun_lines(host_, {bytes, static_cast<std::size_t>(count)}));
    has_spoken_ = true;
  }

  void pass_on_error() {
    char bytes[4096];
    const ssize_t count = ::read(agent_.error.value(), bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return agent_.error.reset();
    (void)!::write(STDERR_FILENO, bytes, static_cast<std::size_t>(count));
  }

  /// Its last words are in the pipe; then everybody hears that no more will come.
  void on_agent_end() {
    ended_ = true;
    status_ = remote::exit_status_of(agent_);
    while (agent_.output && waits_in(agent_.output)) take_output();
    agent_.output.reset();
    if (agent_.error && waits_in(agent_.error)) pass_on_error();
    agent_.error.reset();
    to_agent_.clear();
    const std::string why = status_ == 0 ? "" : "its agent ended with " + std::to_string(status_);
    std::string last = has_spoken_ ? "" : std::string(remote::kMarker);
    last.append(remote::encode(Addressed{host_, remote::Verdict{why, ""}}));
    to_srun_.append(srun_lines(host_, last));
  }

  static bool waits_in(const UniqueFd& pipe) {
    pollfd one = {pipe.value(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1 && (one.revents & (POLLIN | POLLHUP)) != 0;
  }

  static void flush(UniqueFd& pipe, std::string& bytes) {
    if (pipe && write_some(pipe.value(), bytes)) return;
    bytes.clear();
    pipe.reset();
  }

  /// False: nobody reads there any more.
  static bool write_some(int fd, std::string& bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) return false;
      bytes.erase(0, static_cast<std::size_t>(count));
    }
    return true;
  }

  const std::uint32_t host_;
  remote::ChannelDecoder from_srun_;
  remote::Command agent_;
  UniqueFd signals_;
  pollfd watched_[kCount] = {};
  std::string to_agent_, to_srun_;
  int status_ = 0;
  bool closing_ = false, ended_ = false, has_spoken_ = false;
};

}  // namespace

int run_srun_task(const Environ& environment) {
  return Task(environment, number_of_host(environment)).run();
}

}  // namespace fleetrun::launcher
