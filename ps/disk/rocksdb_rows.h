// Cold rows in RocksDB: one database per table, in a directory of its own (ps/disk/row_directory.h).
// RocksDB's headers are seen by rocksdb_rows.cc alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ps/table/cold_rows.h"

namespace fleetrun::ps {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct RocksdbStoreOptions {
  /// Where the tables' directories are made. Any number of servers may name the same.
  std::string directory;
  /// Whose they are, for whoever finds one: "job …, server 0".
  std::string owner;
  /// What all tables of the store together may have in memory for blocks, indexes, filters and rows that are
  /// being written. More than 1 MiB.
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;
};

/// Removes what dead servers left in the directory, and makes the store.
/// Throws: Error(host) naming the path.
std::shared_ptr<ColdStore> open_rocksdb_store(RocksdbStoreOptions options);

}  // namespace fleetrun::ps
