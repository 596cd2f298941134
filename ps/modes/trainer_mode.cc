#include "ps/modes/trainer_mode.h"

#include <algorithm>
#include <utility>

#include "ps/geo/geo_client.h"
#include "ps/modes/bounded_client.h"
#include "ps/modes/half_async_client.h"
#include "ps/modes/merging_client.h"

namespace fleetrun::ps {

std::vector<TableConfig> server_tables(Mode mode, const std::vector<TableConfig>& tables) {
  return mode == Mode::geo ? geo_tables(tables) : tables;
}

std::unique_ptr<Client> with_mode(std::unique_ptr<Client> servers, const TrainerMode& mode) {
  if (mode.max_ahead > 0 && (mode.mode == Mode::async || mode.mode == Mode::half_async)) {
    const bool has_rows = std::ranges::any_of(
        mode.tables, [](const TableConfig& table) { return table.kind == TableConfig::Kind::sparse; });
    servers = make_bounded_client(std::move(servers), mode.max_ahead, has_rows);
  }
  switch (mode.mode) {
    case Mode::geo:
      return make_geo_client(std::move(servers),
                             {.tables = mode.tables, .trainers = mode.trainers, .steps = mode.geo_steps});
    case Mode::half_async:
      return make_half_async_client(std::move(servers));
    case Mode::async:
      if (mode.merged > 1)
        return make_merging_client(std::move(servers), {.merged = mode.merged, .waiting = mode.waiting});
      return servers;
    case Mode::sync:
      return servers;
  }
  return servers;
}

}  // namespace fleetrun::ps
