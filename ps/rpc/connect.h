// A Client over gRPC, or over the memory that it shares with servers on its own host (ps/rpc/transport.h).
//
// A server that dies is noticed at once, one whose host is cut off or frozen, or that is stopped, within 15
// s. What is sent twice, because the server was started again in between, is applied once. Client and server
// prove the job's secret to each other before the first call; between hosts all that follows is sealed
// (ps/rpc/sealed_streams.h). No proxies, no compression.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ps/client/client.h"
#include "ps/client/observer.h"
#include "ps/rpc/access.h"
#include "ps/rpc/server_addresses.h"
#include "ps/rpc/transport.h"

namespace fleetrun::ps {

struct ConnectOptions {
  /// How long to wait for servers that do not answer yet; says on stderr whom it waits for after 3 s.
  std::chrono::milliseconds connect_timeout{std::chrono::minutes(5)};
  Access access = {};
  Transport transport = Transport::automatic;
  /// How long a server that is gone may take to come back, started again with what it had; meanwhile calls
  /// wait, and what it did not answer is sent again. 0: calls fail at once.
  std::chrono::milliseconds recover_within{0};
  /// A server that shows no sign of life for so long, because it is stopped or its host is cut off, is gone.
  std::chrono::milliseconds silence{15000};
  /// Where servers may move to another host (with recover_within): the endpoints that they are given, and
  /// where they are from then on.
  std::shared_ptr<ServerAddresses> addresses = nullptr;
};

/// Connects to all servers ("host:port", in rank order) and compares the tables with theirs.
/// Throws: Error(network) naming the servers that did not answer in time, Error(config) when tables, mode or
/// trainer counts disagree, or the secrets (both sides named).
std::unique_ptr<Client> connect(const std::vector<std::string>& endpoints, const ClientOptions& client,
                                const ConnectOptions& options = {});

/// The same for who looks on (ps/client/observer.h), which takes the tables as the servers have them. What it
/// only reads may take as long as the connection, too.
Observer observe(const std::vector<std::string>& endpoints, const ConnectOptions& options = {});

}  // namespace fleetrun::ps
