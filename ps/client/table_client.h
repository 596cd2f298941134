// What is asked of whole tables: by a script between its epochs, and by those who look on
// (ps/client/observer.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ps/base/stored_rows.h"
#include "ps/saving/manifest.h"

namespace fleetrun::ps {

class TableClient {
 public:
  virtual ~TableClient() = default;

  /// First values of a dense table; the optimizer state is reset.
  virtual void set_dense(std::uint32_t table, std::span<const float> values) = 0;
  /// Sets rows of a sparse table, trained elsewhere: rows[keys.size(), width], each key once. Their rule's
  /// state is that of new rows; keys that admission would not let in get rows, too. Not a step: in mode
  /// sync it waits for no other trainer. It goes in changes of kAssignedAtOnce floats. Throws: Error(config)
  /// for a key that is there twice, Error(data) for a value that is NaN, infinite or huge; nothing was
  /// assigned then.
  virtual void assign(std::uint32_t table, std::span<const std::uint64_t> keys,
                      std::span<const float> rows) = 0;
  static constexpr std::size_t kAssignedAtOnce = std::size_t{4} << 20;

  /// Every server writes (reads) its part of all tables below `directory` on its own host; whole or not at
  /// all. Trainers that save at the same time do so one after the other. load takes what any number of
  /// servers has saved, the save before the newest one where that is damaged; it returns what is wrong with
  /// the newest one then. A save beside pushes holds each of them on all servers or on none. Throws:
  /// Error(host) when a file cannot be written, Error(data) naming the file that is missing or damaged,
  /// Error(config) when a save is of other tables.
  virtual void save(const std::string& directory, SaveMode mode = SaveMode::all) = 0;
  virtual std::string load(const std::string& directory) = 0;
  /// A save of the rows that have changed since the export of that number, and of the keys whose rows
  /// have gone; since 0 of all rows. Returns the number of this one. load() takes them, in their order. Of a
  /// trainer that was started again and is catching up: nothing, and returns 0. Throws: as save;
  /// Error(config) when the servers know no such export, or the directory has a save.
  virtual std::uint64_t export_rows(const std::string& directory, std::uint64_t since) = 0;
  /// What one server holds, as a checkpoint that Paddle 2.6.2 loads (ps/saving/paddle_checkpoint.h), which
  /// load() takes too. Throws: as save; Error(config) with several servers.
  virtual void save_for_paddle(const std::string& directory, SaveMode mode) = 0;

  /// Rows of a sparse table over all servers.
  virtual std::uint64_t rows(std::uint32_t table) = 0;

  /// Rows as they are stored, each server's of those keys; none is made.
  /// Of a dense table, without keys, its values.
  virtual StoredRows get(std::uint32_t table, std::span<const std::uint64_t> keys) = 0;
  /// Ends a day of a sparse table whose accessor keeps statistics: shows and clicks decay, and what has
  /// expired is erased. Returns how many rows went; none of a server that had done it
  /// before it was killed and started again.
  virtual std::uint64_t shrink(std::uint32_t table) = 0;
  /// What each server has done so far, by rank: JSON as ps/server/stat_json.h says.
  virtual std::vector<std::string> stat() = 0;
};

}  // namespace fleetrun::ps
