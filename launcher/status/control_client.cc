#include "launcher/status/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <system_error>

#include "launcher/host/resource_usage.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kBusyFactor = 6;
constexpr std::chrono::seconds kStackTime{20};
constexpr const char* kGoneHint = "it may just have ended; fleetrun status shows what runs";

/// Waits until `events` are there. False: not in time.
bool wait_for(int fd, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd ready = {fd, events, 0};
    const int count = ::poll(&ready, 1, left > 0 ? static_cast<int>(left) : 0);
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

/// Whether who listens there is stopped, or cannot be seen from here.
bool may_be_stopped(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return true;
  const auto stat = proc_stat_of(peer.pid);
  return !stat || stat->state == 'T' || stat->state == 't';
}

void throw_refusal(const std::string& answer) {
  const Json json = read_json<Json>(answer);
  if (json.is_object() && json.value("ok", false)) return;
  if (!json.is_object() || !json.contains("error"))
    throw Error(ErrorKind::data, "the job answers " + printable(answer),
                "use the fleetrun that runs the job");
  throw Error(ErrorKind::usage, json.at("error").get<std::string>(), json.value("hint", std::string()));
}

Json part_of(const std::string& answer, const char* name) {
  const Json json = read_json<Json>(answer);
  if (!json.is_object() || !json.contains(name))
    throw Error(ErrorKind::data, std::string("the job's answer has no ") + name,
                "use the fleetrun that runs the job");
  return json.at(name);
}

}  // namespace

ControlClient::ControlClient(const JobEntry& entry)
    : who_("job " + printable(entry.job_id) + " (pod " + printable(entry.pod) + ")") {
  auto [socket, error] = connect_to(entry);
  if (error != 0)
    throw Error(ErrorKind::network, who_ + " does not answer: " + std::generic_category().message(error),
                kGoneHint);
  socket_ = std::move(socket);
}

std::string ControlClient::ask(const std::string& request, std::chrono::milliseconds patience) {
  send(request, patience);
  for (;;) {
    if (auto answer = next_line()) {
      throw_refusal(*answer);
      return *answer;
    }
    await(POLLIN, patience);
    if (!read_more()) throw Error(ErrorKind::network, who_ + " has gone", kGoneHint);
  }
}

void ControlClient::send(const std::string& request, std::chrono::milliseconds patience) {
  const std::string line = request + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(socket_.value(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    if (count >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) throw Error(ErrorKind::network, who_ + " has gone", kGoneHint);
    await(POLLOUT, patience);
  }
}

void ControlClient::await(short events, std::chrono::milliseconds patience) const {
  const auto began = Clock::now();
  if (wait_for(socket_.value(), events, began + patience)) return;
  const bool is_stopped = may_be_stopped(socket_.value());
  if (!is_stopped && wait_for(socket_.value(), events, began + kBusyFactor * patience)) return;
  throw Error(ErrorKind::timeout,
              who_ + " has not answered within " +
                  std::to_string((is_stopped ? 1 : kBusyFactor) * patience.count()) + " ms",
              is_stopped ? "its fleetrun may be stopped (SIGSTOP); kill -CONT wakes it"
                         : "its fleetrun runs, on a host that is very busy, or waits for a disk");
}

std::optional<std::string> ControlClient::next_line() {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

bool ControlClient::read_more() {
  char bytes[65536];
  const ssize_t count = ::recv(socket_.value(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count > 0) received_.append(bytes, static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void check_answer(const std::string& answer) {
  throw_refusal(answer);
}

std::string status_in(const std::string& answer) {
  return json_text(part_of(answer, "status"));
}

std::string stacks_of(const JobEntry& entry) {
  const Json stacks = part_of(ControlClient(entry).ask(R"({"request":"stacks"})", kStackTime), "stacks");
  return stacks.is_string() ? stacks.get<std::string>() : json_text(stacks);
}

}  // namespace fleetrun::launcher
