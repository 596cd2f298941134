// Connects to a host by its name or address: to all the addresses that the name stands for, a little one
// after the other, and the first that answers is it (RFC 8305). A host with an IPv6 address that leads
// nowhere costs a quarter of a second that way, not minutes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// Nobody is told any more once it is destroyed.
class Connector {
 public:
  virtual ~Connector() = default;
};

struct ConnectFailure {
  std::string why;  // "Connection refused", "no answer within 5 s"
  int error = 0;    // the same as an errno; 0: there is none for it
};

/// `socket` is connected, or empty and `failure` says why.
using Connected = std::function<void(UniqueFd socket, const ConnectFailure& failure)>;

/// Calls `connected` once, on the loop, never from inside this function.
std::unique_ptr<Connector> connect_to(boost::asio::io_context& loop, const Endpoint& endpoint,
                                      std::chrono::milliseconds timeout, Connected connected);

}  // namespace fleetrun::launcher
