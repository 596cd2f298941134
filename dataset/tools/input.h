// What the commands that read data files have in common: the files, their slots, how they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/text/multi_slot_parser.h"
#include "runtime/base/argument_reader.h"

namespace fleetrun::dataset {

struct ToolInput {
  std::vector<std::string> files;
  std::vector<Slot> slots;
  std::string pipe_command = {};

  /// Takes a word that is a file, --slots or --pipe_command; false for another flag. Throws: Error(usage).
  bool take(ArgumentReader& words);
  /// Takes the slots from columnar files where none were given.
  /// Throws: Error(usage) where files or slots are missing, Error(data) naming the files that cannot be read.
  void check();
};

/// "NAME=VALUE" of all variables of this process.
std::vector<std::string> own_environment();

/// What input flags do, for the help of a command.
extern const char* const kInputHelp;

/// Rows that a pass over a file takes in one batch.
inline constexpr std::size_t kRowsAtOnce = 4096;

/// The rows of one file, in its order.
///
/// Threads: one.
class RowReader {
 public:
  virtual ~RowReader() = default;
  enum class Outcome {
    rows,  // the batch has as many as were wanted
    bad,   // fault() says why the line after the batch's rows is none
    end,   // the batch has the last rows, or none
  };
  /// Fills `batch` with up to `wanted` (at least 1) rows. Throws: Error(data) where the file cannot be read
  /// further, or its command fails.
  virtual Outcome next(Batch& batch, std::size_t wanted) = 0;
  virtual const LineFault& fault() const noexcept = 0;
};

/// Throws: Error(data), Error(spawn).
std::unique_ptr<RowReader> open_rows(const ToolInput& input, const std::string& file);

}  // namespace fleetrun::dataset
