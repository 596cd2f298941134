// A parameter server without its transport: tables, the meeting of trainers, save and load.
// ps/rpc/rpc_server.h serves it over gRPC; ps/memory/in_process.h calls it directly.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ps/table_config.h"

namespace fleetrun::ps {

struct ServerOptions {
  std::uint32_t rank = 0;
  std::uint32_t servers = 1;
  std::uint32_t trainers = 1;
  Mode mode = Mode::async;
  std::vector<TableConfig> tables;
};

}  // namespace fleetrun::ps
