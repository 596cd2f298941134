// The addresses behind a host's name, without making the loop wait for a name server.
//
// Digits need nobody; a name is looked up by a thread of its own, which may well outlive whoever asked: a
// name server that does not answer holds it for half a minute,
// and ending the job does not wait for that. It then finds nobody to tell.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/net/socket_address.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct FoundAddresses {
  std::vector<SocketAddress> addresses;  // in the order in which they are to be tried
  std::string failure;                   // where there are none: "Name or service not known"
};

/// Nobody is told any more once it is destroyed.
class NameLookup {
 public:
  virtual ~NameLookup() = default;
};

/// Calls `found` once, on the loop, never from inside this function.
std::unique_ptr<NameLookup> look_up(boost::asio::io_context& loop, const Endpoint& endpoint,
                                    std::function<void(FoundAddresses)> found);

/// The same, and waits for it.
FoundAddresses look_up_now(const Endpoint& endpoint);

}  // namespace fleetrun::launcher
