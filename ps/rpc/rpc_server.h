// Serves a parameter server over gRPC.
#pragma once

#include <memory>
#include <string>

#include "ps/server.h"

namespace fleetrun::ps {

class RpcServer {
 public:
  /// Binds `endpoint` ("host:port") and starts to serve; logs
  /// "running server with rank id: R, endpoint: HOST:PORT" on stderr.
  /// Throws: Error(network) when the port is taken, naming it.
  RpcServer(const ServerOptions& options, const std::string& endpoint);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// Restores what save() wrote, from this server's host, before trainers come. Throws: Error(data).
  void load(const std::string& directory);

  /// Blocks until all trainers have said goodbye or stop() was called; calls in flight are finished first.
  void wait();
  /// May be called from any thread, and by way of a self-pipe from a signal handler; wait() then returns.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
