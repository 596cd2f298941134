// Tables on disk: which save of a directory is taken. ps/saving/manifest.h says what lies there,
// ps/saving/part_writer.h and part_loader.h write and read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ps/saving/part_loader.h"

namespace fleetrun::ps {

/// Where the tables of a model for inference lie, in its directory.
constexpr const char* kTablesBelowModel = "/tables";

/// Where the tables of `directory` lie: there, or below it when it holds a model and not tables themselves.
std::string directory_of_tables(const std::string& directory);

/// This server's share of the newest save in directory_of_tables(), by any number of servers, in new tables.
/// Where that one is damaged or not all there, the one before it is taken, and `fallen_back` says why. With
/// `wanted`, that save or none. `fetch`: of the pieces; the manifest is there. A checkpoint of Paddle 2.6.2
/// is known by itself (ps/saving/paddle_checkpoint.h).
/// Throws: Error(data) naming the file that is damaged or missing;
/// Error(config) when the save is of other tables.
LoadedTables load_tables(const std::string& directory, ServerPlace place,
                         const std::vector<TableConfig>& tables,
                         std::optional<std::uint64_t> wanted = std::nullopt, const FetchFile& fetch = {});

}  // namespace fleetrun::ps
