// What a process has of a server of another one, to go on with it: followed by its checkpoint and log
// (server_moving.cc), or held as its standby (server_held.cc).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ps/durable/log_tail.h"
#include "ps/server/server_state.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

struct FollowedServer::State {
  std::string directory;
  std::unique_ptr<Server::State> replica;
  std::optional<LogTail> tail;  // none of a standby
  std::uint64_t first_segment = 1;
  std::uint64_t checkpoint = 0, records = 0;
  UniqueFd lock;  // of the directory
};

}  // namespace fleetrun::ps
