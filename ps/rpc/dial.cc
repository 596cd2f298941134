#include "ps/rpc/dial.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/version.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{3};

HandshakeSettings settings_of(const std::string& name, const Access& access, Way way) {
  HandshakeSettings settings;
  settings.side = Side::client;
  settings.secret = access.secret;
  settings.secret_source = access.source;
  settings.purpose = purpose_of(way);
  settings.version = FLEETRUN_VERSION;
  settings.peer = name;
  return settings;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// What `endpoint` stands for, or why nothing.
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

}  // namespace

Dial::Dial(const std::string& endpoint, const std::string& name, const Access& access, std::size_t attempt,
           Way way)
    : way_(way), deadline_(Clock::now() + kPatience) {
  handshake_.emplace(settings_of(name, access, way));
  const Addresses found = look_up(endpoint, reason_);
  if (!found) {
    fail(reason_);
    return;
  }
  std::size_t count = 0;
  for (const addrinfo* address = found.get(); address; address = address->ai_next) ++count;
  const addrinfo* address = found.get();
  for (std::size_t i = attempt % count; i > 0; --i) address = address->ai_next;
  if (way == Way::tcp) {
    begin(address->ai_addr, address->ai_addrlen);
    return;
  }
  const LocalAddress local = local_address(address->ai_addr, address->ai_addrlen, way);
  begin(reinterpret_cast<const sockaddr*>(&local.address), local.size);
}

void Dial::begin(const sockaddr* address, socklen_t size) {
  connection_.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection_) {
    fail(std::strerror(errno));
    return;
  }
  const int on = 1;
  if (way_ == Way::tcp) ::setsockopt(connection_.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(connection_.value(), address, size) != 0 && errno != EINPROGRESS) fail(std::strerror(errno));
}

pollfd Dial::wanted() const noexcept {
  return {connection_.value(), static_cast<short>(stage_ == Stage::connecting ? POLLOUT : POLLIN), 0};
}

void Dial::fail(std::string reason) {
  stage_ = Stage::failed;
  reason_ = std::move(reason);
  connection_.reset();
}

void Dial::flush() {
  const std::string bytes = handshake_->output();
  if (!bytes.empty() && ::send(connection_.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
                            static_cast<ssize_t>(bytes.size()))
    fail(std::strerror(errno));
}

void Dial::advance() {
  if (stage_ == Stage::failed || stage_ == Stage::connected) return;
  pollfd ready = wanted();
  const int count = ::poll(&ready, 1, 0);
  if (count <= 0) {
    if (Clock::now() >= deadline_)
      fail(stage_ == Stage::connecting ? "no answer to a connection"
                                       : "it does not answer as a server of fleetrun's");
    return;
  }
  if (stage_ == Stage::proving) return receive();
  if (stage_ == Stage::sharing) return receive_segment();
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(connection_.value(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return fail(std::strerror(error));
  if (way_ == Way::shared_memory && !is_same_user(connection_.value()))
    return fail("another user's process serves there, and memory is shared with none");
  stage_ = Stage::proving;
  flush();
}

void Dial::receive() {
  char block[1024];
  const ssize_t count = ::recv(connection_.value(), block, sizeof block, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return fail("it hung up before it proved the job's secret");
  try {
    handshake_->receive({block, static_cast<std::size_t>(count)});
  } catch (const Error& error) {
    const bool is_settled = error.kind() == ErrorKind::config;
    flush();
    // A port may belong to something else for a while; another secret stays another secret.
    if (!is_settled) return fail(error.what());
    throw Error(
        error.kind(), error.what(),
        "let one fleetrun start servers and trainers; by hand, give all of them the same secret: the file "
        "FLEETRUN_SECRET_FILE (mode 0600), else ~/.config/fleetrun/secret of their users");
  }
  flush();
  if (stage_ == Stage::proving && handshake_->finished())
    stage_ = way_ == Way::shared_memory ? Stage::sharing : Stage::connected;
}

void Dial::receive_segment() {
  try {
    auto files = receive_files(connection_.value());
    if (!files) return;
    segment_.emplace(ShmSegment::attach(std::move(*files)));
    stage_ = Stage::connected;
  } catch (const Error& error) {
    fail(error.what());
  }
}

}  // namespace fleetrun::ps
