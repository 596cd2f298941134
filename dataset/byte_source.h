// The bytes of one data file, as a reader gets them: straight from the file, or through a pipe command.
//
// Threads: one per source.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fleetrun::dataset {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills the start of `room` (not empty) and returns how many bytes; 0 at the end, and then all has gone
  /// well. Throws: Error(data) naming the file when it cannot be read, or when its command fails;
  /// StopRequested.
  virtual std::size_t read(std::span<char> room) = 0;
};

/// Leaves ByteSource::read() when the stop descriptor becomes readable.
struct StopRequested {};

struct ByteSourceOptions {
  std::string file = {};
  /// As QueueDatasetOptions::pipe_command.
  std::string command = {};
  /// What the command's processes get, as "NAME=VALUE".
  std::vector<std::string> environment = {};
  /// Borrowed; readable when reading is to end at once (a read of a plain file does not wait for it).
  int stop_fd = -1;
  /// How long a background process that the command left behind may hold its output open in silence.
  std::chrono::milliseconds linger{5000};
};

/// Opens the file and starts its command, if it needs one. Throws: Error(data) when the file cannot be
/// opened, Error(spawn) when no process can be made.
std::unique_ptr<ByteSource> open_byte_source(const ByteSourceOptions& options);

/// Throws: Error(data) naming every file that is missing, a directory, not a regular file, or not readable.
void check_files(const std::vector<std::string>& files);

}  // namespace fleetrun::dataset
