// Where an epoch over data gets its batches from: text files through pipes, or examples in memory.
//
// Threads: start() by one owner, stop() by any thread; next(r, …) by one consumer thread per reader r. A
// source may be started again after it ended (an epoch each).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "dataset/base/batch.h"
#include "runtime/base/timeline.h"

namespace fleetrun::dataset {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// What each batch holds, in this order. Does not change once started.
  virtual const std::vector<Slot>& slots() const noexcept = 0;

  /// Begins an epoch. `in_turn`: each reader's batches are the same in every run, where a result must repeat
  /// itself. Throws: Error(data), Error(config) when there is nothing to read.
  virtual void start(bool in_turn) = 0;

  /// What an epoch begun in turn is over: the same number means the same batches in the same order for each
  /// reader, as long as the files are the same; 0: that is not known. After start().
  virtual std::uint64_t fingerprint() const { return 0; }

  /// Readers that start() made, at least 1.
  virtual std::size_t readers() const noexcept = 0;

  /// Moves the next batch of this reader into `batch`, whose memory is used again; false after its last one.
  /// The last batch of a reader may be short. Throws: Error(data); the other readers stop after an error.
  virtual bool next(std::size_t reader, Batch& batch) = 0;

  /// Where the next epochs draw what the source's own threads do; null: nowhere.
  /// Not while an epoch is under way.
  virtual void draw_on(std::shared_ptr<Timeline> timeline) { static_cast<void>(timeline); }

  /// Ends the epoch at once, readers that wait in next() included. Idempotent.
  virtual void stop() noexcept = 0;
};

}  // namespace fleetrun::dataset
