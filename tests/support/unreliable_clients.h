// Clients of servers that are killed (tests/support/unreliable_servers.h), by channels that recover.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/client/channel_client.h"
#include "ps/client/recovering_channel.h"
#include "tests/support/unreliable_servers.h"

namespace fleetrun::tests {

/// A client of all of them, by channels that recover.
inline std::unique_ptr<ps::Client> connect_unreliably(
    const std::vector<std::unique_ptr<UnreliableServer>>& servers, const ps::ClientOptions& options) {
  const std::uint64_t incarnation = options.identity != 0 ? options.identity : ps::make_incarnation();
  std::vector<std::unique_ptr<ps::Channel>> channels;
  ps::Welcome welcome;
  for (std::uint32_t rank = 0; rank < servers.size(); ++rank) {
    UnreliableServer* server = servers[rank].get();
    ps::wire::Greeting first;
    const auto connect = [server, options, incarnation](std::function<void()> on_lost,
                                                        const std::atomic<bool>&, std::uint64_t answered) {
      ps::wire::Greeting again;
      auto channel = server->connect(options, incarnation, std::move(on_lost), again);
      if (again.next_change <= answered)
        throw Error(ErrorKind::data, "the server has forgotten change " + std::to_string(again.next_change));
      return channel;
    };
    channels.push_back(std::make_unique<ps::RecoveringChannel>(
        "server " + std::to_string(rank),
        [&](std::function<void()> on_lost) {
          return server->connect(options, incarnation, std::move(on_lost), first);
        },
        connect));
    welcome.add(rank, first);
  }
  return ps::make_channel_client(options, incarnation, std::move(channels), welcome);
}

}  // namespace fleetrun::tests
