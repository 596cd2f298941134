// Who gets a row: counts the pushes of keys that have none (TableConfig::admission),
// for one shard of a table.
//
// count        exact: a small open-addressing table of {key, count}
// count_bloom  256 KiB per shard whatever comes: a key's four 16-bit cells lie in one cache line; its count
//              is the least of them, and only cells that are the least go up
// probability  nothing is kept
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// Threads: one at a time.
class Gatekeeper {
 public:
  explicit Gatekeeper(const Admission& admission) : admission_(admission) {}

  /// Whether a pull may make a row for the key: no push has to be counted for that.
  bool admits_on_pull(std::uint64_t key) const noexcept;
  /// Counts a push of a key without a row. True when the key is to get one now, with this push.
  bool admits_push(std::uint64_t key);
  /// A key that got a row otherwise (loaded) need not be counted any more.
  void forget(std::uint64_t key);

  /// Keys that are being counted exactly.
  std::uint64_t counted() const noexcept { return used_; }
  std::uint64_t bytes() const noexcept {
    return entries_.capacity() * sizeof(Entry) + cells_.capacity() * sizeof(std::uint16_t);
  }
  /// What a save holds, for merge(): pairs {key, count}, or the cells four to a word.
  std::vector<std::uint64_t> words() const;
  /// Adds what another gatekeeper of the same admission counted, where `is_mine` says so of a key. Cells add
  /// up for all keys: those of other servers' keys admit early at most.
  void merge(std::span<const std::uint64_t> words, const std::function<bool(std::uint64_t)>& is_mine);

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t count = 0;  // 0: empty
  };

  std::uint32_t& count_of(std::uint64_t key);
  std::uint32_t count_in_cells(std::uint64_t key);
  void grow();

  Admission admission_;
  std::vector<Entry> entries_;
  std::uint64_t used_ = 0;
  std::vector<std::uint16_t> cells_;
};

}  // namespace fleetrun::ps
