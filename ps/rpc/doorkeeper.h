// Lets connections in to a server: whoever connects has to prove the job's secret (runtime/base/handshake) before a byte
// of it reaches gRPC. Strangers get no answer and cost a bounded number of descriptors for a few seconds: when too many
// are at the door, or descriptors run out, the one that has been there longest goes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ps/rpc/access.h"
#include "ps/rpc/refusals.h"
#include "runtime/base/handshake.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

/// What both sides say that their connection is for (HandshakeSettings::purpose).
inline constexpr const char* kPurpose = "parameter server";

struct Listener {
  UniqueFd socket;
  std::string endpoint;  // with the port that was bound
};
/// Listens on the one address that "host:port" names. `shares_port`: beside a socket that does not listen, by which
/// fleetrun holds the port. Throws: Error(network): "`who` cannot serve at …".
Listener listen_at(const std::string& endpoint, bool shares_port, const std::string& who);

/// A connection that has proved the secret.
struct Guest {
  UniqueFd connection;  // does not block
  std::string early;    // what came right behind the proof
  SessionKeys keys;
};

class Doorkeeper {
 public:
  /// Calls `admit` from a thread of its own, until it is destroyed. Borrows the refusals.
  Doorkeeper(UniqueFd socket, Access access, Refusals& refusals, std::function<void(Guest)> admit);
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
