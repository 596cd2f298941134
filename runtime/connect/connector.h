// One attempt to connect to a server and to prove the job's secret to each other: the other side of an
// authenticating acceptor (runtime/connect/authenticating_acceptor.h). Does not block, except for looking up
// a name: the caller polls.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/unique_fd.h"
#include "runtime/connect/access.h"
#include "runtime/connect/sealed_socket.h"
#include "runtime/secure/handshake.h"

struct addrinfo;

namespace fleetrun {

struct ConnectorSettings {
  /// How errors call the server: "server 0 at 127.0.0.1:6180".
  std::string name;
  Access access = {};
  std::string purpose = {};  // HandshakeSettings::purpose
  /// What to do where the secrets differ.
  std::string secret_hint = {};
};

/// What "host:port" stands for. Nothing: `why_not` says why. Throws: Error(config) unless it is an endpoint.
using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
Addresses look_up(const std::string& endpoint, std::string& why_not);
/// One of them, in turn.
const addrinfo& pick(const Addresses& addresses, std::size_t attempt);

class Connector {
 public:
  /// Of an endpoint with several addresses attempt n tries the n-th.
  Connector(const std::string& endpoint, ConnectorSettings settings, std::size_t attempt);
  /// At a unix address nobody is met but processes of this user.
  Connector(const sockaddr* address, socklen_t size, ConnectorSettings settings);
  /// One that has failed.
  Connector(std::string reason, ConnectorSettings settings);

  /// What to wait for while it is neither connected nor failed.
  pollfd wanted() const noexcept;
  std::chrono::steady_clock::time_point deadline() const noexcept { return deadline_; }
  /// Goes on as far as it gets without waiting.
  /// Throws: Error(config) when the server has another secret, or another fleetrun, than this process.
  void advance();

  bool is_connected() const noexcept { return stage_ == Stage::connected; }
  bool has_failed() const noexcept { return stage_ == Stage::failed; }
  /// Why it failed; empty when nothing is worth saying (nobody listens there yet).
  const std::string& reason() const noexcept { return reason_; }
  /// Whether it failed because nothing of that host has answered, not even that nobody listens there.
  bool was_cut_off() const noexcept { return cut_off_; }
  void fail(std::string reason);

  int connection() const noexcept { return connection_.value(); }
  SealedSocket take_connection() { return {std::move(connection_), handshake_->take_records()}; }

 private:
  enum class Stage { connecting, proving, connected, failed };
  void begin(const sockaddr* address, socklen_t size);
  void receive();
  void flush();

  ConnectorSettings settings_;
  Stage stage_ = Stage::connecting;
  std::string reason_;
  bool cut_off_ = false;
  std::chrono::steady_clock::time_point deadline_;
  UniqueFd connection_;
  bool is_local_ = false;
  std::optional<Handshake> handshake_;
};

/// Attempts that are cut off, without an end. Where the launchers of the hosts have met, a firewall is
/// likelier than a host that is about to start: 30 s are enough then. Other hosts may take all the time that
/// there is.
class Silence {
 public:
  Silence();
  explicit Silence(std::chrono::milliseconds patience) : patience_(patience) {}
  /// An attempt, which began then, has failed.
  void after(bool was_cut_off, std::chrono::steady_clock::time_point begun);
  bool is_hopeless() const;
  /// What to do about it; where the last attempt was not cut off, `otherwise`.
  std::string hint(const std::string& otherwise) const;

 private:
  std::chrono::milliseconds patience_;
  std::optional<std::chrono::steady_clock::time_point> since_;
};

/// Tries to connect again and again, until it has; `concern` is called before each time, and may throw.
/// Throws: Error(network) with the last reason after `deadline`, or where there was only `silence`;
/// Error(config) as Connector does.
SealedSocket connect_until(const std::string& endpoint, const ConnectorSettings& settings,
                           std::chrono::steady_clock::time_point deadline,
                           const std::function<void()>& concern = {}, Silence silence = Silence());

}  // namespace fleetrun
