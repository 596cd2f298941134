// Geo mode, the trainer's side: which rows of a sparse table this trainer has, what the servers had in them
// when it last heard, and which of them it has changed since.
//
//   unknown ──claim──▶ awaited ──arrive, follow──▶ held ──touch──▶ held and touched ──take_changes──▶ held
//
// The trainer's own values lie in a SparseTable with the user's rule;
// here are the servers' values beside them.
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <span>
#include <vector>

#include "ps/table/key_index.h"
#include "ps/table/sparse_table.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class LocalRows {
 public:
  /// `local` holds the trainer's values; borrowed.
  explicit LocalRows(SparseTable& local) : local_(local), width_(local.config().width) {}

  /// Those of `keys` that are not held, each once; they are awaited now.
  std::vector<std::uint64_t> claim(std::span<const std::uint64_t> keys);
  /// values[keys, width] from the servers for claimed keys: they become the trainer's where none are held.
  void arrive(std::span<const std::uint64_t> keys, std::span<const float> values);
  /// values[keys, width] that the servers and the trainer have from now on; unknown keys are left out.
  void replace(std::span<const std::uint64_t> keys, std::span<const float> values);
  /// The trainer has changed these; keys that are not held are left out. How many were not touched before.
  std::size_t touch(std::span<const std::uint64_t> keys);

  struct Changes {
    std::vector<std::uint64_t> keys;
    std::vector<float> values;
  };
  /// (the trainer's - the servers') * share of every touched row, which counts as the servers' from now on. A
  /// row that is touched meanwhile is taken, or stays touched.
  Changes take_changes(float share);
  /// values[keys, width] that the servers have now. What they changed is added to the trainer's; awaited keys
  /// arrive, and unknown ones are left out.
  void follow(std::span<const std::uint64_t> keys, std::span<const float> values);
  std::vector<std::uint64_t> held_keys() const;

 private:
  enum Mark : std::uint8_t { kAwaited = 0, kHeld = 1, kTouched = 3 };
  void hold(std::uint32_t number, std::uint64_t key, const float* values);

  SparseTable& local_;
  std::size_t width_;
  // Shared by those that only find rows and mark them, which they do atomically.
  mutable std::shared_mutex mutex_;
  KeyIndex index_;
  std::vector<std::uint8_t> marks_;  // by number
  std::vector<float> server_;        // width_ values by number
};

}  // namespace fleetrun::ps
