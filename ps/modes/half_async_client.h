// Half-asynchronous mode: the threads of one trainer step together and push their mean;
// trainers do not wait for each other.
//
// A thread's push is done when every thread of the epoch has pushed its step, or left the epoch, and the
// servers have applied the mean of what they pushed. The last one to come sends it;
// the others wait for that, not for a clock.
#pragma once

#include <memory>

#include "ps/client/client.h"

namespace fleetrun::ps {

/// begin_epoch says how many threads there are. Outside an epoch a push goes alone.
std::unique_ptr<Client> make_half_async_client(std::unique_ptr<Client> servers);

}  // namespace fleetrun::ps
