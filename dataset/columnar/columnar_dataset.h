// Batches out of columnar files: what QueueDataset does for text, without pipes,
// parsing and threads of its own.
//
// An epoch is a list of blocks, file after file; readers take blocks, and a batch goes on from one block of
// its reader to the next. The consumer of a reader does the reading:
// the next block's bytes are on their way from the disk meanwhile.
//
// Threads: start() by one owner, stop() by any thread; next(r, …) by one consumer thread per reader r.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dataset/base/batch_source.h"

namespace fleetrun::dataset {

struct ColumnarDatasetOptions {
  /// What batches are to hold: slots of the files by name, in any order. Empty: all slots of the first file.
  std::vector<Slot> slots;
  std::vector<std::string> files;
  std::size_t batch_size = 1;
  /// Readers wanted; cut to the number of blocks.
  std::size_t threads = 1;
  /// Leaves out a last batch of a reader that is short.
  bool drop_last = false;
  /// Checksums are looked at whenever a block is read.
  bool verify = true;
};

class ColumnarDataset : public BatchSource {
 public:
  /// Opens the files. Throws: Error(data) naming a file that is not a columnar file, Error(config) for one
  /// that does not have the slots.
  explicit ColumnarDataset(ColumnarDatasetOptions options);
  ~ColumnarDataset() override;
  ColumnarDataset(const ColumnarDataset&) = delete;
  ColumnarDataset& operator=(const ColumnarDataset&) = delete;

  const std::vector<Slot>& slots() const noexcept override;
  /// Rows of all files.
  std::uint64_t rows() const noexcept;

  /// `in_turn`: reader r takes the blocks r, r + readers(), …; else whichever reader is free takes the next
  /// one, so that with one reader the order is that of the files.
  void start(bool in_turn) override;
  std::size_t readers() const noexcept override;
  std::uint64_t fingerprint() const override;
  /// Throws: Error(data) naming file, block and slot of what is damaged.
  bool next(std::size_t reader, Batch& batch) override;
  void stop() noexcept override;

 private:
  struct Part;
  struct Reader;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::dataset
