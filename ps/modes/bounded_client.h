// Bounded staleness: a thread begins a step only when no other thread
// of any trainer is more than so many steps behind.
#pragma once

#include <cstdint>
#include <memory>

#include "ps/client/client.h"

namespace fleetrun::ps {

/// A step is a pull of rows for training, or of dense values in a job without sparse tables. Costs a call to
/// server 0 each step. Threads of an epoch are waited for from their first step until they leave it.
std::unique_ptr<Client> make_bounded_client(std::unique_ptr<Client> servers, std::uint64_t bound,
                                            bool has_rows);

}  // namespace fleetrun::ps
