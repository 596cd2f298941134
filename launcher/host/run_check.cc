// One thread answers whoever calls; the other calls everybody, again and again until they listen. Both ends
// of a call send their greeting and read the other's.
#include "launcher/host/run_check.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/base/env_contract.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::milliseconds kBetweenCalls{20};
constexpr std::size_t kLongestGreeting = 1 << 20;

using Clock = std::chrono::steady_clock;

/// The addresses of an endpoint, in the order to try them.
class Addresses {
 public:
  explicit Addresses(const Endpoint& endpoint) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    const int error =
        ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &first_);
    if (error != 0)
      throw Error(ErrorKind::network, to_string(endpoint) + " is not an address: " + ::gai_strerror(error));
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  ~Addresses() { ::freeaddrinfo(first_); }
  const addrinfo& front() const { return *first_; }

 private:
  addrinfo* first_ = nullptr;
};

UniqueFd open_socket(const addrinfo& address) {
  UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check_errno(socket.value(), "socket", "meeting the other processes", ErrorKind::network);
  const timeval patience = {kPatience.count(), 0};
  ::setsockopt(socket.value(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

UniqueFd listen_at(const Endpoint& endpoint) {
  const Addresses addresses(endpoint);
  UniqueFd socket = open_socket(addresses.front());
  const int yes = 1;
  ::setsockopt(socket.value(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  check_errno(::bind(socket.value(), addresses.front().ai_addr, addresses.front().ai_addrlen), "bind",
              "listening at " + to_string(endpoint), ErrorKind::network);
  check_errno(::listen(socket.value(), SOMAXCONN), "listen", "listening at " + to_string(endpoint),
              ErrorKind::network);
  return socket;
}

bool send_line(int socket, const std::string& text) {
  const std::string line = text + "\n";
  return ::send(socket, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

std::string receive_line(int socket) {
  std::string line;
  char byte = 0;
  while (line.size() < kLongestGreeting && ::recv(socket, &byte, 1, 0) == 1 && byte != '\n')
    line.push_back(byte);
  return byte == '\n' ? line : "";
}

/// The greetings that others have called with.
class Callers {
 public:
  void add(std::string greeting) {
    const std::lock_guard lock(mutex_);
    heard_.insert(std::move(greeting));
    changed_.notify_all();
  }
  /// Whether `count` different callers come before the deadline.
  bool wait_for(std::size_t count, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return heard_.size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> heard_;
};

void answer_calls(int listening, const std::string& own, Callers& callers) {
  for (;;) {
    const UniqueFd call(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (!call) return;
    std::string heard = receive_line(call.value());
    if (send_line(call.value(), own) && !heard.empty()) callers.add(std::move(heard));
  }
}

/// Calls `endpoint` until somebody answers; empty when nobody does in time.
std::string call(const Endpoint& endpoint, const std::string& own, Clock::time_point deadline) {
  const Addresses addresses(endpoint);
  while (Clock::now() < deadline) {
    const UniqueFd socket = open_socket(addresses.front());
    if (::connect(socket.value(), addresses.front().ai_addr, addresses.front().ai_addrlen) == 0 &&
        send_line(socket.value(), own)) {
      std::string heard = receive_line(socket.value());
      if (!heard.empty()) return heard;
    }
    std::this_thread::sleep_for(kBetweenCalls);
  }
  return "";
}

int say(int fd, const std::string& text) {
  const std::string line = text + "\n";
  return ::write(fd, line.data(), line.size()) < 0 ? 1 : 0;
}

/// Calls every process of `role` but this one; false after a line that says which one is wrong.
bool meet(const Identity& identity, Role role, Clock::time_point deadline) {
  const std::vector<Endpoint>& endpoints = role == Role::server ? identity.servers : identity.trainers;
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    if (role == identity.role && static_cast<int>(rank) == identity.rank) continue;
    const std::string heard = call(endpoints[rank], greeting(identity), deadline);
    const std::string problem =
        heard.empty() ? "does not answer" : mismatch(heard, identity, role, static_cast<int>(rank));
    if (problem.empty()) continue;
    say(STDERR_FILENO, process_name(identity) + ": " + process_name(role, static_cast<int>(rank)) + " at " +
                           to_string(endpoints[rank]) + " " + problem);
    return false;
  }
  return true;
}

std::string job_text(const Identity& identity) {
  return identity.job_id + " " + identity.pod_name + " " + to_string(identity.servers) + " " +
         to_string(identity.trainers) + " ";
}

}  // namespace

std::string greeting(const Identity& identity) {
  return job_text(identity) + process_name(identity);
}

std::string mismatch(const std::string& heard, const Identity& identity, Role role, int rank) {
  const std::string job = job_text(identity), name = process_name(role, rank);
  if (heard == job + name) return "";
  if (heard.starts_with(job)) return "says that it is " + printable(heard.substr(job.size()));
  return "belongs to another job, or knows other processes: " + printable(heard);
}

int run_check_process(const Environ& environ) {
  const Identity identity = identity_from(environ);
  const auto deadline = Clock::now() + kPatience;
  Callers callers;
  const UniqueFd listening = listen_at(self_endpoint(identity));
  std::thread(answer_calls, listening.value(), greeting(identity), std::ref(callers)).detach();
  if (identity.role == Role::server) {
    for (;;) ::pause();
  }
  UniqueFd store;
  if (identity.rank == 0 && identity.mode != Mode::ps && identity.master != self_endpoint(identity))
    store = listen_at(identity.master);
  if (!meet(identity, Role::server, deadline) || !meet(identity, Role::trainer, deadline)) ::_exit(1);
  if (!callers.wait_for(identity.trainers.size() - 1, deadline)) {
    say(STDERR_FILENO, process_name(identity) + ": not every trainer has called");
    ::_exit(1);
  }
  const std::size_t others = identity.servers.size() + identity.trainers.size() - 1;
  say(STDOUT_FILENO, process_name(identity) + " at " + to_string(self_endpoint(identity)) + " has met " +
                         std::to_string(others) + (others == 1 ? " other" : " others") + ": OK");
  ::_exit(0);  // the answering thread is still there
}

}  // namespace fleetrun::launcher
