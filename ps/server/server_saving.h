// Saves and loads that are under way on a server (ps/server/server_saving.cc).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/saving/manifest.h"
#include "ps/saving/part_writer.h"
#include "ps/saving/remote_directory.h"
#include "ps/saving/table_cut.h"

namespace fleetrun::ps {

/// What a server has written of a save, and what is to happen to its rows once the save is durable.
struct SavedCut {
  std::uint32_t trainer = 0;
  std::uint64_t checkpoints = 0, standbys = 0;  // those of Server::State, when it was cut
  std::unique_ptr<TableCut> cut = nullptr;
  std::unique_ptr<RemoteDirectory> remote = nullptr;  // where it goes, if that is not on this host
  std::unique_ptr<PartWriter> writer = nullptr;       // none for a checkpoint of Paddle's
};

/// A save whose turn comes when the one under way ends.
struct WaitingSave {
  std::uint32_t trainer = 0;
  std::string directory;
  Respond respond;
};

/// What a trainer's load_prepare found, not committed yet.
struct WaitingLoad {
  Manifest manifest;
  std::shared_ptr<TableSet> tables;
  std::map<std::uint32_t, std::vector<std::uint64_t>> erased;
};

}  // namespace fleetrun::ps
