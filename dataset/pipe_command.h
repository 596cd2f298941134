// One data file through its pipe command: `bash -c COMMAND` with the file (unpacked, if it ends in .gz) as
// its standard input.
//
// What counts as failure, although all data may have been printed: an exit status other than 0, a signal, a
// stage of the command's own pipeline that fails (bash runs with pipefail; a stage that ends by SIGPIPE
// because a later one has read enough is no failure), and a background process that keeps the output open in
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

#include "dataset/byte_source.h"
#include "dataset/process_group.h"

namespace fleetrun::dataset {

struct PipeCommandOptions {
  std::string file = {};
  /// Empty: only unpack.
  std::string command = {};
  bool unpack = false;
  /// What the processes get, as "NAME=VALUE".
  std::vector<std::string> environment = {};
  int stop_fd = -1;
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
  /// Starts the processes with `input` as standard input. Throws: Error(spawn).
  PipeCommand(PipeCommandOptions options, UniqueFd input);
  std::size_t read(std::span<char> room) override;

 private:
  std::optional<std::size_t> read_now(std::span<char> room);
  void wait();
  void pass_on_errors();
  void judge() const;
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;

  PipeCommandOptions options_;
  UniqueFd output_;  // closed at the end of the data
  UniqueFd errors_;
  ProcessGroup processes_;
  std::optional<std::size_t> unpacker_;
  std::optional<std::size_t> command_;
  std::vector<ExitReason> reasons_;
  LastLines last_errors_;
};

}  // namespace fleetrun::dataset
