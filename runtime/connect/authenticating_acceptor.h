// Lets connections in to a server: whoever connects has to prove the job's secret (runtime/secure/handshake)
// before a byte of it reaches what serves there. Strangers get no answer and cost a bounded number of
// descriptors for a few seconds: when too many connections are not authenticated, or descriptors run out,
// the one that has been there longest goes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/connect/access.h"
#include "runtime/connect/rejections.h"
#include "runtime/connect/sealed_socket.h"

namespace fleetrun {

struct Listener {
  UniqueFd socket;
  std::string endpoint;  // with the port that was bound
};
/// Listens on the one address that "host:port" names. `shares_port`: beside a socket that does not listen, by
/// which fleetrun holds the port. Throws: Error(network): "`who` cannot serve at …".
Listener listen_at(const std::string& endpoint, bool shares_port, const std::string& who);

/// One way in. `admit` is called from the authenticating acceptor's thread.
struct AuthListener {
  UniqueFd socket;
  std::string purpose;                      // HandshakeSettings::purpose
  bool is_local = false;                    // a unix socket
  std::function<void(SealedSocket)> admit;  // who has proved the secret
};

class AuthenticatingAcceptor {
 public:
  /// Admits from a thread of its own, until it is destroyed. Borrows the rejections.
  AuthenticatingAcceptor(std::vector<AuthListener> auth_listeners, Access access, Rejections& rejections);
  ~AuthenticatingAcceptor();
  AuthenticatingAcceptor(const AuthenticatingAcceptor&) = delete;
  AuthenticatingAcceptor& operator=(const AuthenticatingAcceptor&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun
