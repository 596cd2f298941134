// Serves the job's store (collective/store/store_state.h): in rank 0's process, from a thread of its own.
// Whoever connects has to prove the job's secret first.
#pragma once

#include <memory>
#include <string>

#include "runtime/connect/access.h"

namespace fleetrun::collective {

/// HandshakeSettings::purpose
inline constexpr const char* kStorePurpose = "collective store";

struct StoreServerOptions {
  std::string endpoint;
  /// Beside a socket that does not listen, by which fleetrun holds the port.
  bool shares_port = false;
  Access access = {};
  int size = 1;
  std::string attempt = {};
};

class StoreServer {
 public:
  /// Throws: Error(network) where it cannot listen.
  explicit StoreServer(StoreServerOptions options);
  /// Serves until all clients have gone, for a second at most.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// With the port that was bound.
  const std::string& endpoint() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::collective
