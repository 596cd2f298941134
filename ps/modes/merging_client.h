// Asynchronous mode with merging: pushes that wait to be sent are added up into one,
// as Paddle's communicator does.
//
// Pushes queue for a thread that sends them, one message after the other. When it comes to the next it takes
// all that wait, up to a number, and sends their sum; when only one waits it is sent as it is, nobody waits
// for more. Where the queue is full, push_async waits for room.
#pragma once

#include <cstddef>
#include <memory>

#include "ps/client/client.h"

namespace fleetrun::ps {

struct MergingOptions {
  /// Pushes in one message, at most.
  std::size_t merged = 1;
  /// Pushes that wait, at most.
  std::size_t waiting = 16;
};

std::unique_ptr<Client> make_merging_client(std::unique_ptr<Client> servers, const MergingOptions& options);

}  // namespace fleetrun::ps
