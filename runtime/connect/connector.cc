#include "runtime/connect/connector.h"

#include <netdb.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/same_user.h"
#include "runtime/base/version.h"

namespace fleetrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerPatience{3};
constexpr std::chrono::milliseconds kTryAgain{100};

HandshakeSettings handshake_of(const ConnectorSettings& wanted, bool is_local) {
  HandshakeSettings settings;
  settings.side = Side::client;
  settings.secret = wanted.access.secret;
  settings.secret_source = wanted.access.source;
  settings.purpose = wanted.purpose;
  settings.version = FLEETRUN_VERSION;
  settings.peer = wanted.name;
  settings.is_local = is_local;
  return settings;
}

}  // namespace

Addresses look_up(const std::string& endpoint, std::string& why_not) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos)
    throw Error(ErrorKind::config, "the server's endpoint '" + endpoint + "' is not HOST:PORT");
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &found);
  if (result != 0) why_not = std::string("its name: ") + ::gai_strerror(result);
  return Addresses(found, ::freeaddrinfo);
}

const addrinfo& pick(const Addresses& addresses, std::size_t attempt) {
  std::size_t count = 0;
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) ++count;
  const addrinfo* address = addresses.get();
  for (std::size_t i = attempt % count; i > 0; --i) address = address->ai_next;
  return *address;
}

Connector::Connector(const std::string& endpoint, ConnectorSettings settings, std::size_t attempt)
    : Connector(std::string(), std::move(settings)) {
  std::string why_not;
  const Addresses found = look_up(endpoint, why_not);
  if (!found) {
    fail(why_not);
    return;
  }
  const addrinfo& address = pick(found, attempt);
  begin(address.ai_addr, address.ai_addrlen);
}

Connector::Connector(const sockaddr* address, socklen_t size, ConnectorSettings settings)
    : Connector(std::string(), std::move(settings)) {
  begin(address, size);
}

Connector::Connector(std::string reason, ConnectorSettings settings)
    : settings_(std::move(settings)), deadline_(Clock::now() + kAnswerPatience) {
  fail(std::move(reason));
}

void Connector::begin(const sockaddr* address, socklen_t size) {
  connection_.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection_) {
    fail(std::strerror(errno));
    return;
  }
  stage_ = Stage::connecting;
  is_local_ = address->sa_family == AF_UNIX;
  handshake_.emplace(handshake_of(settings_, is_local_));
  const int on = 1;
  if (!is_local_) ::setsockopt(connection_.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(connection_.value(), address, size) != 0 && errno != EINPROGRESS) fail(std::strerror(errno));
}

pollfd Connector::wanted() const noexcept {
  return {connection_.value(), static_cast<short>(stage_ == Stage::connecting ? POLLOUT : POLLIN), 0};
}

void Connector::fail(std::string reason) {
  stage_ = Stage::failed;
  reason_ = std::move(reason);
  connection_.reset();
}

void Connector::flush() {
  const std::string bytes = handshake_->output();
  if (!bytes.empty() && ::send(connection_.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
                            static_cast<ssize_t>(bytes.size()))
    fail(std::strerror(errno));
}

void Connector::advance() {
  if (stage_ == Stage::failed || stage_ == Stage::connected) return;
  pollfd ready = wanted();
  const int count = ::poll(&ready, 1, 0);
  if (count <= 0) {
    if (Clock::now() < deadline_) return;
    cut_off_ = stage_ == Stage::connecting;
    return fail(cut_off_ ? "no answer to a connection" : "it does not answer as a server of fleetrun's");
  }
  if (stage_ == Stage::proving) return receive();
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(connection_.value(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    cut_off_ = error != ECONNREFUSED;
    return fail(std::strerror(error));
  }
  if (is_local_ && !is_same_user(connection_.value()))
    return fail("another user's process has the name of this server's local socket");
  stage_ = Stage::proving;
  flush();
}

void Connector::receive() {
  char block[1024];
  const ssize_t count = ::recv(connection_.value(), block, sizeof block, MSG_PEEK);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return fail("it hung up before it proved the job's secret");
  try {
    const std::size_t taken = handshake_->receive({block, static_cast<std::size_t>(count)});
    // What is behind the handshake is for whoever gets the connection.
    static_cast<void>(::recv(connection_.value(), block, taken, 0));
  } catch (const Error& error) {
    const bool is_settled = error.kind() == ErrorKind::config;
    flush();
    // A port may belong to something else for a while; another secret stays another secret.
    if (!is_settled) return fail(error.what());
    throw Error(error.kind(), error.what(), settings_.secret_hint);
  }
  flush();
  if (stage_ == Stage::proving && handshake_->finished()) stage_ = Stage::connected;
}

Silence::Silence()
    : patience_(Environ::of_process().has("FLEETRUN_RUN") ? std::chrono::milliseconds(30'000)
                                                          : std::chrono::hours(24 * 365)) {}

void Silence::after(bool was_cut_off, Clock::time_point begun) {
  if (!was_cut_off)
    since_.reset();
  else if (!since_)
    since_ = begun;
}

bool Silence::is_hopeless() const {
  return since_ && Clock::now() - *since_ >= patience_;
}

std::string Silence::hint(const std::string& otherwise) const {
  if (!since_) return otherwise;
  return "a firewall may be between: open the ports of the job to its hosts; --port_range keeps it to some, "
         "and "
         "`fleetrun doctor` tries the ways";
}

SealedSocket connect_until(const std::string& endpoint, const ConnectorSettings& settings,
                           Clock::time_point deadline, const std::function<void()>& concern,
                           Silence silence) {
  std::string reason = "nobody answered";
  for (std::size_t attempt = 0;; ++attempt) {
    if (concern) concern();
    const auto begun = Clock::now();
    Connector connector(endpoint, settings, attempt);
    while (!connector.has_failed() && !connector.is_connected() && Clock::now() < deadline) {
      pollfd wanted = connector.wanted();
      const auto until = std::min(deadline, connector.deadline());
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      ::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
      connector.advance();
    }
    if (connector.is_connected()) return connector.take_connection();
    if (!connector.reason().empty()) reason = connector.reason();
    silence.after(connector.was_cut_off(), begun);
    if (silence.is_hopeless() || Clock::now() + kTryAgain >= deadline)
      throw Error(ErrorKind::network, settings.name + " cannot be reached: " + reason,
                  silence.hint("check that it runs, and that its endpoint can be reached from here"));
    // Nobody tells when a port begins to listen.
    std::this_thread::sleep_until(begun + kTryAgain);
  }
}

}  // namespace fleetrun
