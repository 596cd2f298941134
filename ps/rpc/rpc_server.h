// Serves a parameter server over gRPC.
#pragma once

#include <memory>
#include <string>

#include "ps/server.h"

namespace fleetrun::ps {

class RpcServer {
 public:
  /// Binds `endpoint` ("host:port") and starts to serve; logs
  /// "running server with rank id: R, endpoint: HOST:PORT" on stderr. `held_by_launcher`: fleetrun keeps a socket
  /// there that does not listen (FLEETRUN_LISTEN), and the server binds beside it.
  /// Throws: Error(network) when the port is taken, naming it; Error(config) for options that cannot work.
  RpcServer(const ServerOptions& options, const std::string& endpoint, bool held_by_launcher = false);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// "host:port" with the port that was bound; differs from what was asked for when that said port 0.
  const std::string& endpoint() const noexcept;

  /// Restores what save() wrote, from this server's host, before trainers come. Throws: Error(data).
  void load(const std::string& directory);

  /// Blocks until all trainers have said goodbye or stop() was called; calls in flight are finished first.
  void wait();
  /// May be called from any thread and from a signal handler (it is one write to an eventfd); wait() then
  /// returns.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
