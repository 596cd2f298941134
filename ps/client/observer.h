// Who looks on at servers without being a trainer: the Client of ps/client/client.h under the rank
// wire::kObserver. It may stat, get, rows, shrink and save; what only trainers do is refused with
// Error(config). Nobody waits for it, and it keeps no job alive. ps/rpc/connect.h makes one (observe()).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ps/base/server_channel.h"
#include "ps/client/client.h"

namespace fleetrun::ps {

struct Observer {
  std::unique_ptr<Client> client;
  /// As the servers have them, as far as an observer needs it: id, name, kind and width.
  std::vector<TableConfig> tables;
};

/// The options of an observer's hello.
ClientOptions observer_options();

/// `channels` in rank order; every server has accepted the hello of `options`.
/// Throws: Error as the first server sent it.
Observer make_observer(ClientOptions options, std::uint64_t incarnation,
                       std::vector<std::unique_ptr<Channel>> channels);

}  // namespace fleetrun::ps
