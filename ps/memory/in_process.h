// A Client whose servers live in this process: one-process training and tests. No sockets, no copies through
// a wire.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ps/client/client.h"
#include "ps/table/table_memory.h"

namespace fleetrun::ps {

/// `servers` parts, as a cluster would split the tables, and one client per trainer.
/// All parts share the memory.
std::vector<std::unique_ptr<Client>> make_in_process(std::uint32_t servers, std::uint32_t trainers, Mode mode,
                                                     const std::vector<TableConfig>& tables,
                                                     const TableMemory& memory = {});

/// The same for clients like `client`, each with a rank of its own.
std::vector<std::unique_ptr<Client>> make_in_process(std::uint32_t servers, const ClientOptions& client,
                                                     const TableMemory& memory = {});

}  // namespace fleetrun::ps
