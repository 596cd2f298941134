// What makes a client that talks to servers a trainer of a mode: servers apply what comes, except in sync
// mode; all else is the trainer's side.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ps/client/client.h"

namespace fleetrun::ps {

struct TrainerMode {
  Mode mode = Mode::async;
  std::uint32_t trainers = 1;
  /// With the user's rules.
  std::vector<TableConfig> tables = {};
  /// geo: pushes between two exchanges (ps/geo/geo_client.h).
  std::uint32_t geo_steps = 400;
  /// async: pushes in one message, and pushes that wait for one, at most (ps/modes/merging_client.h).
  std::uint32_t merged = 1;
  std::uint32_t waiting = 16;
  /// async and half_async: steps that a thread may be ahead of the slowest one of the job
  /// (ps/modes/bounded_client.h); 0: any.
  std::uint32_t max_ahead = 0;
};

/// The servers' tables of `tables`: in geo mode other ones than the trainers' (geo_tables()).
/// Throws: as geo_tables().
std::vector<TableConfig> server_tables(Mode mode, const std::vector<TableConfig>& tables);

/// `servers`, a client of server_tables(), as a trainer uses it.
std::unique_ptr<Client> with_mode(std::unique_ptr<Client> servers, const TrainerMode& mode);

}  // namespace fleetrun::ps
