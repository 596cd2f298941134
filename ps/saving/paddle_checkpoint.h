// Checkpoints of Paddle 2.6.2's parameter server, as it reads and writes them:
//
//   DIRECTORY/<table, 3 digits>/part-<server, 3 digits>-<shard, 5 digits>[.gz]   a sparse table,
//                                                                                ps/saving/paddle_row.h
//   DIRECTORY/<table, 3 digits>/part-<server, 3 digits>[.gz]                     dense parameters, one after
//                                                                                the other: a line per value,
//                                                                                then its state
//
// Paddle numbers tables in its own way, and keeps all dense parameters in one: sparse tables correspond in
// the order of their numbers, and the values of all dense tables follow each other as those
// of the program do.
#pragma once

#include <string>
#include <vector>

#include "ps/saving/part_loader.h"
#include "ps/saving/table_cut.h"

namespace fleetrun::ps {

/// Whether there is a checkpoint of Paddle's, and no save of ours.
bool is_paddle_checkpoint(const std::string& directory);

/// This server's share of it. Where Paddle keeps no count of a dense table's updates (Adam), it starts at 0
/// as there. Throws: Error(data) naming the file and the line; Error(config) when it is of other tables.
LoadedTables load_paddle_checkpoint(const std::string& directory, ServerPlace place,
                                    const std::vector<TableConfig>& tables);

/// Writes tables that one server holds all of, for `shards` shards (Paddle wants its own number of them, 1000
/// unless told otherwise). Not whole or not at all: Paddle's format says nowhere when it is. Throws:
/// Error(host) naming the file.
void save_paddle_checkpoint(const std::string& directory, const std::vector<TableConfig>& tables,
                            const TableCut& cut, std::uint32_t shards = 1000);

}  // namespace fleetrun::ps
