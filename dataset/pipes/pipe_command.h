// One data file through the processes that turn it into text, each with the output of the one before as its
// standard input: maybe a download, maybe gzip or zstd, maybe the pipe command,
// by `bash -c` or as a program of its own.
//
// What counts as failure, although all data may have been printed: an exit status other than 0, a signal, a
// stage of the command's own pipeline that fails (bash runs with pipefail; a stage that ends by SIGPIPE
// because a later one has read enough has not failed), and a background process that keeps the output open in
// silence after the command has ended. Standard error is passed on to ours; its last lines become part of the
// error.
//
// Threads: one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/pipes/byte_source.h"
#include "dataset/pipes/process_group.h"
#include "runtime/base/error.h"

namespace fleetrun::dataset {

/// One process, and how an error calls it.
struct PipeStage {
  enum class Kind { download, unpack, command, upload };
  Kind kind = Kind::command;
  std::vector<std::string> argv;
  std::string text;  // as the user wrote it
};

struct PipeCommandOptions {
  std::string file = {};
  /// At least one.
  std::vector<PipeStage> stages = {};
  /// What the processes get, as "NAME=VALUE".
  std::vector<std::string> environment = {};
  int stop_fd = -1;
  /// The longest silence on standard output that is not a failure while somebody reads; 0: any.
  std::chrono::milliseconds timeout{0};
  std::chrono::milliseconds linger{5000};
};

/// The last lines of a stream, whatever its length.
class LastLines {
 public:
  void add(std::string_view bytes);
  /// At most 10 lines and 2 KiB, indented below a heading; empty when there was nothing.
  std::string report() const;

 private:
  std::string tail_;
};

class PipeCommand : public ByteSource {
 public:
  /// Starts the processes; `input` is the standard input of the first one. Throws: Error(spawn).
  PipeCommand(PipeCommandOptions options, UniqueFd input);
  std::size_t read(std::span<char> room) override;

 private:
  std::optional<std::size_t> read_now(std::span<char> room);
  void wait(std::chrono::steady_clock::time_point silent_since);
  [[noreturn]] void fail_silent();
  void pass_on_errors();
  void judge() const;
  [[noreturn]] void fail(ErrorKind kind, const PipeStage& stage, const std::string& what,
                         const std::string& hint) const;

  PipeCommandOptions options_;
  UniqueFd output_;  // closed at the end of the data
  UniqueFd errors_;
  ProcessGroup processes_;  // one per stage, in their order
  std::vector<ExitReason> reasons_;
  LastLines last_errors_;
};

}  // namespace fleetrun::dataset
