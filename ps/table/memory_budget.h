// How much memory the rows of those tables of a server may take together whose cold rows may leave it
// (TableConfig::on_disk).
//
// Whoever brings rows into memory counts them (took, gave) and, before the next request begins, makes room: a
// clock's hand goes over the tables, over the shards of each, and over the rows of each shard. Rows that were
// used since it passed them last stay for another round; the others leave. The hand stays where it stopped,
// so that every row has a whole round to be used in.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace fleetrun::ps {

/// A table whose rows can leave memory.
class Coolable {
 public:
  virtual ~Coolable() = default;

  virtual std::size_t shards() const noexcept = 0;
  /// Moves the shard's hand over up to `rows` of its rows. True when it has passed the last one and is at the
  /// first again. Throws: Error(host) when rows cannot leave; they are in memory then.
  virtual bool cool(std::size_t shard, std::size_t rows) = 0;
};

/// Threads: all calls may be made from several threads at once; cool() is called by one at a time.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes) : limit_(bytes) {}

  /// As long as it lives no row leaves memory, so that what was brought in is there to be changed. Not to be
  /// held by a thread that makes room.
  using Stay = std::shared_lock<std::shared_mutex>;

  void join(Coolable& table);
  /// From here on it is not asked to cool. Waits while it is.
  void leave(Coolable& table) noexcept;

  void took(std::uint64_t bytes) noexcept { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void gave(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const noexcept { return limit_; }

  /// Brings `used` below the limit, if rows can be moved. Costs nothing when it is there. Waits while another
  /// thread does it: requests go on as fast as the disk takes rows.
  /// Throws: as Coolable::cool.
  void make_room();
  Stay stay() { return Stay(moving_); }

 private:
  struct Hand {
    std::size_t table = 0;
    std::size_t shard = 0;
  };

  bool step();

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::shared_mutex moving_;  // guards what follows
  std::vector<Coolable*> tables_;
  Hand hand_;
};

}  // namespace fleetrun::ps
