// Waits until every server of this host accepts a connection. Trainers start after it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/endpoint.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

class ServerGate {
 public:
  virtual ~ServerGate() = default;
  /// Does not wait for this one any more: it has ended well.
  virtual void forget(const Endpoint& endpoint) = 0;
  /// Nobody wants to know any more: `on_done` is not called.
  virtual void stop() = 0;
};

/// Calls `on_done(true)` once all accept, or `on_done(false)` after `timeout`; never from within this call.
/// The gate has to live as long as the loop runs.
std::unique_ptr<ServerGate> watch_servers(boost::asio::io_context& loop, const std::vector<Endpoint>& servers,
                                          std::chrono::milliseconds timeout,
                                          std::function<void(bool all)> on_done);

}  // namespace fleetrun::launcher
