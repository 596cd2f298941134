// Lets connections in to a server, by its endpoint and by the unix sockets of its host (ps/rpc/transport.h): whoever connects has to prove the job's secret (runtime/base/handshake) before a byte
// of it reaches gRPC. Strangers get no answer and cost a bounded number of descriptors for a few seconds: when too many
// are at the door, or descriptors run out, the one that has been there longest goes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ps/rpc/access.h"
#include "ps/rpc/refusals.h"
#include "ps/rpc/transport.h"
#include "runtime/base/handshake.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

struct Listener {
  UniqueFd socket;
  std::string endpoint;  // with the port that was bound
};
/// Listens on the one address that "host:port" names. `shares_port`: beside a socket that does not listen, by which
/// fleetrun holds the port. Throws: Error(network): "`who` cannot serve at …".
Listener listen_at(const std::string& endpoint, bool shares_port, const std::string& who);
/// Listens for the same host's processes beside a socket that listens at an endpoint. No socket when something else has
/// that name: the endpoint is enough.
UniqueFd listen_beside(int socket, Way way);

/// A connection that has proved the secret.
struct Guest {
  UniqueFd connection;  // does not block
  std::string early;    // what came right behind the proof
  SessionKeys keys;
};

/// One way in. `admit` is called from the doorkeeper's thread.
struct Door {
  UniqueFd socket;
  Way way = Way::tcp;
  std::function<void(Guest)> admit;
};

class Doorkeeper {
 public:
  /// Admits from a thread of its own, until it is destroyed. Borrows the refusals.
  Doorkeeper(std::vector<Door> doors, Access access, Refusals& refusals);
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
