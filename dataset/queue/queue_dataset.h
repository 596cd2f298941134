// Streams batches out of text files: each file goes through its own pipe command, several reader threads
// parse, and each reader has a bounded queue of batches.
//
// Threads: start() by one owner, stop() by any thread; next(r, …) by one consumer thread per reader r. A
// dataset may be started again after it ended (an epoch each).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dataset/base/batch_source.h"
#include "dataset/pipes/byte_source.h"
#include "dataset/text/bad_lines.h"
#include "dataset/text/line_prefixes.h"

namespace fleetrun::dataset {

struct QueueDatasetOptions {
  std::vector<Slot> slots;
  /// What every line begins with, before the slots.
  LinePrefixes prefixes = {};
  PipeOptions pipe = {};
  /// A file as fleetrun-schema(5) describes it, or empty. With it the text, of the files or of the pipe
  /// command, is delimited text, and slots are found in the schema by their names.
  std::string schema = {};
  std::size_t batch_size = 1;
  /// Readers wanted; cut to the number of files.
  std::size_t threads = 1;
  std::vector<std::string> files;
  /// Whether an epoch of no files has one reader and no batch: of several trainers one may have none.
  bool allows_no_files = false;
  /// Batches that a reader may be ahead of its consumer.
  std::size_t queue_batches = 8;
  /// What a bad line does to an epoch.
  BadLinePolicy bad_lines = {};
  /// Whether a reader's last batch is left out when it is short.
  bool drop_last = false;
  /// Whether the pipe commands of the next epoch's first files start while an epoch ends. They end with the
  /// dataset when there is no next epoch.
  bool starts_next_epoch = false;
};

class QueueDataset : public BatchSource {
 public:
  /// Reads the schema. Throws: Error(config) for one that is wrong or lacks a slot; for no slots, none that
  /// is used, an empty name, a width or batch size below 1.
  explicit QueueDataset(QueueDatasetOptions options);
  ~QueueDataset() override;
  QueueDataset(const QueueDataset&) = delete;
  QueueDataset& operator=(const QueueDataset&) = delete;

  const QueueDatasetOptions& options() const noexcept;
  /// The used ones.
  const std::vector<Slot>& slots() const noexcept override;

  /// Checks that every file can be read and starts the readers. `in_turn`: reader r takes the files r, r +
  /// readers(), …, the same in every run, where a result must repeat itself.
  /// Throws: Error(data) for a file that is missing (all of them named), Error(config) for no files,
  /// unless that is allowed.
  void start(bool in_turn) override;

  /// Readers that start() made: min(threads, files), but one of no files. Unless in turn, files are taken in
  /// order by whichever reader is free, so with one reader the order is the list's.
  std::size_t readers() const noexcept override;
  std::uint64_t fingerprint() const override;

  /// Moves the next batch of this reader into `batch`; false after its last one. The last batch of each
  /// reader may be short, or is left out then (drop_last);
  /// a batch never mixes files of different readers. Throws: Error(data) naming FILE:LINE and the slot for a
  /// bad line; the file and the command's status or signal, with the last lines of its standard error, for a
  /// pipe command that fails. After an error the other readers stop.
  bool next(std::size_t reader, Batch& batch) override;

  /// Of each reader: bytes read, text parsed, and the wait for room in its queue.
  void draw_on(std::shared_ptr<Timeline> timeline) override;

  /// Ends the epoch at once: kills the pipe commands that are left, joins the readers. Idempotent.
  void stop() noexcept override;

  /// The bad lines that this epoch, or the last one, has passed over;
  /// at its end they are also a warning on standard error.
  BadLineReport bad_lines() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::dataset
