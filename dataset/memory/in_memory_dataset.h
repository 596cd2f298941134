// Examples that are read from files once and kept in memory:
// shuffled there, and read by as many epochs as wanted.
//
//   load() ──→ examples in the order of their files ──→ shuffles, merges ──→ start(), next(), …
//                                                                            one epoch after the other
//
// The order after loading is that of the source's readers, one after the other, each in turn: the same in
// every run with the same files and threads. All that is random is decided
// by the seed, by the trainer's rank, and by how many random calls came before.
//
// Threads: load(), shuffles and start() by one owner; stop() by any thread; next(r, …) by one consumer thread
// per reader r. Nothing may change while an epoch is under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dataset/base/batch_source.h"
#include "dataset/memory/example_store.h"

namespace fleetrun::dataset {

class TrainerExchange;

/// Where global_shuffle() sends an example.
enum class Destination { random, line_id };

/// What merge_by_line_id() did.
struct MergeCounts {
  std::size_t merged = 0;      // examples that groups of them became
  std::size_t wrong_size = 0;  // dropped: their group has not merge_size examples
  std::size_t conflicts = 0;   // dropped: two of their group have values in one sparse slot
};

class InMemoryDataset : public BatchSource {
 public:
  /// trainer: the rank of the one that it belongs to; its orders are its own. global_shuffle() knows better.
  explicit InMemoryDataset(std::uint32_t trainer = 0);
  ~InMemoryDataset() override;
  InMemoryDataset(const InMemoryDataset&) = delete;
  InMemoryDataset& operator=(const InMemoryDataset&) = delete;

  // ---- Filling ----
  struct Load {
    /// Read once, in turn, to its end; batches of a thousand examples or so are best.
    std::shared_ptr<BatchSource> source;
    /// What its batches bring beside the slots.
    LinePrefixes prefixes = {};
    /// As Paddle does: zeros in sparse slots are left out, and a slot that has no others gets one 0.
    bool drop_zeros = false;
  };
  /// Reads all there is; what was in memory before goes first.
  /// Throws: as the source; nothing is in memory then.
  void load(const Load& what);
  /// The same in the background; wait_preload() returns when it is done, or throws what it ended with.
  void preload(const Load& what);
  void wait_preload();
  /// Ends a load that is under way at once: it throws Error(data).
  void stop_loading() noexcept;
  /// Also ends a load that is under way.
  void release() noexcept;

  // ---- Orders ----
  /// Of all that is random from here on.
  void set_seed(std::uint64_t seed) noexcept;
  void local_shuffle(std::size_t threads);
  /// Hands examples to the other trainers, so that each goes to one that chance or its line's id chooses, and
  /// shuffles what this one has then. All trainers call it.
  /// Throws: Error(network), Error(data); no examples are left here then.
  void global_shuffle(TrainerExchange& exchange, Destination destination, std::size_t threads);
  /// In the epochs that follow, these slots have the values that a random one of `candidates` examples has
  /// there. Each call begins with the values as they were read; none of the slots: they are back.
  void shuffle_slots(const std::vector<std::string>& slots, std::size_t candidates);
  /// Examples of one id become one: the sparse slots of all, of which each must be in one of them only
  /// (values that are all 0 do not count), and the last dense values that are not all 0. `merge_size` > 0:
  /// only groups of this size stay.
  MergeCounts merge_by_line_id(std::size_t merge_size);

  /// Examples, and what they take; 0 until a load in the background has been waited for.
  std::size_t rows() const noexcept;
  std::size_t bytes() const noexcept;
  bool is_loaded() const noexcept { return store_ != nullptr; }

  // ---- Epochs ----
  struct Reading {
    std::size_t batch_size = 1;
    std::size_t threads = 1;  // cut to the number of examples
    bool drop_last = false;   // a reader's short last batch is left out
  };
  void set_reading(Reading reading);
  const std::vector<Slot>& slots() const noexcept override { return slots_; }
  /// Throws: Error(config) when nothing has been loaded.
  void start(bool in_turn) override;
  std::size_t readers() const noexcept override { return cursors_.size(); }
  std::uint64_t fingerprint() const override;
  bool next(std::size_t reader, Batch& batch) override;
  void stop() noexcept override { stopped_ = true; }

 private:
  struct Cursor {
    std::size_t at = 0, end = 0;
  };
  struct SlotShuffle {
    std::vector<std::size_t> slots;
    std::vector<ExampleNumber> candidates;
    std::uint64_t seed = 0;
  };
  void begin_load(const Load& what);
  void run_load(const Load& what);
  std::uint64_t next_seed() noexcept;
  ExampleStore& need(const char* what) const;
  void keep(std::unique_ptr<ExampleStore> store);

  std::vector<Slot> slots_;
  std::uint64_t source_ = 0;  // the fingerprint of what was loaded
  std::unique_ptr<ExampleStore> store_;
  std::vector<ExampleNumber> order_;
  SlotShuffle slot_shuffle_;
  std::uint64_t seed_ = 0;
  std::uint32_t trainer_;
  std::uint64_t random_calls_ = 0;

  std::mutex loading_mutex_;
  std::shared_ptr<BatchSource> loading_;
  std::jthread preloading_;
  std::exception_ptr preload_error_;

  Reading reading_;
  std::vector<Cursor> cursors_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace fleetrun::dataset
