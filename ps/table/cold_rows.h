// Where the rows of one table lie that memory has no room for: what SparseTable asks for them, without saying
// who keeps them (ps/disk/rocksdb_rows.h does, on the server's disk).
// A row is in memory or here, never in both:
//
//   a key that is not in memory   take(): found rows leave here, and are the caller's from then on
//   a row that leaves memory      put(), and only when that has returned the row in memory is given up
//   a consistent cut              view() while all shards are locked, read later; a row that comes into
//                                 memory after that is still in the view,
//                                 and one that leaves memory after that is not
//
// What is kept here is worth nothing without the process that put it here: a server that starts again has its
// rows from a checkpoint and a log, cold ones and others alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// Rows one after the other, row_floats() each.
struct ColdBlock {
  std::vector<std::uint64_t> keys;
  std::vector<float> rows;
};

/// The rows that were cold when it was made, however many have come and gone since.
/// It holds their place on disk until it goes.
///
/// Threads: several may read at once.
class ColdView {
 public:
  virtual ~ColdView() = default;

  virtual std::uint64_t count(std::size_t shard) const noexcept = 0;
  /// The first `max` rows of a shard with keys of at least `from`, in key order; fewer only at the end.
  /// Throws: Error(host) naming the path.
  virtual ColdBlock read(std::size_t shard, std::uint64_t from, std::size_t max) const = 0;
};

/// Threads: take, put, erase and rewrite of one shard by one thread at a time (that which holds the shard's
/// lock), of different shards at once; the others from anywhere.
/// Throws: Error(host) naming the path, when the disk is full or fails. Nothing has changed then.
class ColdRows {
 public:
  enum class Fate { keep, change, erase };

  virtual ~ColdRows() = default;

  /// Floats of a row, as SparseTable::visit() shows it: statistics, values, state and steps.
  virtual std::size_t row_floats() const noexcept = 0;

  /// Looks for distinct keys; those that are here leave. Returns their positions in `keys`, rising, and their
  /// rows in `rows`, one after the other from the front. Have memory for them first: from now on they are
  /// nowhere else. Shape: rows[keys.size(), row_floats()]
  virtual std::vector<std::uint32_t> take(std::size_t shard, std::span<const std::uint64_t> keys,
                                          std::span<float> rows) = 0;
  /// Keeps rows whose keys are distinct and not here.
  /// Shape: rows[keys.size(), row_floats()]
  virtual void put(std::size_t shard, std::span<const std::uint64_t> keys, std::span<const float> rows) = 0;
  /// Forgets those of the keys that are here.
  virtual void erase(std::size_t shard, std::span<const std::uint64_t> keys) = 0;
  /// Shows each row of a shard, which `decide` may change, and does as it says. When the disk fails in
  /// between, some rows have been changed and others not.
  virtual void rewrite(std::size_t shard,
                       const std::function<Fate(std::uint64_t key, std::span<float> row)>& decide) = 0;

  virtual std::uint64_t count(std::size_t shard) const noexcept = 0;
  /// About what they take on disk.
  virtual std::uint64_t bytes_on_disk() const noexcept = 0;

  virtual std::unique_ptr<ColdView> view() const = 0;
};

/// Makes the place for the cold rows of each table of a server.
class ColdStore {
 public:
  virtual ~ColdStore() = default;

  /// An empty one, which nobody else uses; what it keeps goes when it goes.
  /// Throws: Error(host) naming the path.
  virtual std::unique_ptr<ColdRows> open(const TableConfig& table, std::size_t row_floats) = 0;
};

}  // namespace fleetrun::ps
