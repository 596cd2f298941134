// Serves a parameter server over gRPC, and over shared memory to trainers on its host (ps/rpc/transport.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ps/rpc/access.h"
#include "ps/rpc/transport.h"
#include "ps/server/server.h"

namespace fleetrun::ps {

struct RpcServerOptions {
  /// fleetrun keeps a socket at the endpoint that does not listen (FLEETRUN_LISTEN);
  /// the server binds beside it.
  bool held_by_launcher = false;
  /// What connections have to prove.
  Access access = {};
  /// Beside TCP, which is always there.
  Transport transport = Transport::automatic;
  /// Where fleetrun reads this server's metrics (ps/watch/metrics_file.h); empty: nowhere.
  std::string metrics_file = {};
  /// Nobody is let in before listen(): what the server is started from is loaded first.
  bool listens_later = false;
};

class RpcServer {
 public:
  /// Binds `endpoint` ("host:port") and starts to serve (or, with listens_later, listen() does); logs
  /// "running server with rank id: R, endpoint: HOST:PORT" on stderr.
  /// Throws: Error(network) when the port is taken, naming it; Error(config) for options that cannot work.
  RpcServer(const ServerOptions& options, const std::string& endpoint, RpcServerOptions rpc = {});
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// Once, with listens_later; throws as the constructor does.
  void listen();

  /// "host:port" with the port that was bound; differs from what was asked for when that said port 0.
  const std::string& endpoint() const noexcept;

  /// Connections and calls that were refused because they did not prove the secret.
  std::uint64_t rejections() const;

  /// A new world of the job (ps/server/server.h). Threads: any.
  void update(const MembershipUpdate& membership_update);
  /// Requests of trainers that were taken for lost, all refused.
  std::uint64_t stale_requests() const noexcept;

  /// What it has done so far, as JSON (ps/server/stat_json.h).
  std::string stat() const;

  /// Restores what save() wrote, from this server's host, before listen() lets trainers in; as Server::load.
  std::string load(const std::string& directory, const std::vector<std::string>& only = {});

  /// Blocks until all trainers have said goodbye or stop() was called; calls in flight are finished first.
  /// Throws: Error(host) when it ended because the disk has failed to keep its log.
  void wait();
  /// May be called from any thread and from a signal handler (it is one write to an eventfd); wait() then
  /// returns.
  void stop() noexcept;
  /// Whether wait() would return at once.
  bool has_ended() const noexcept;

  /// Where the server can move to another process (ps/server/server.h).
  Server& server() noexcept;
  /// Server::hand_on(). Once it is handed on its connections end, and trainers find the other process at the
  /// same endpoint; all that is left is to destroy this.
  bool hand_on(std::uint64_t offer, const std::function<void()>& commit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
