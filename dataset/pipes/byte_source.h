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

#include "dataset/pipes/remote_file.h"

namespace fleetrun::dataset {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills the start of `room` (not empty) and returns how many bytes; 0 at the end, and then all has gone
  /// well. Throws: Error(data) naming the file when it cannot be read, has become another one since it was
  /// opened, or when its command fails; Error(timeout); StopRequested.
  virtual std::size_t read(std::span<char> room) = 0;
};

/// Leaves ByteSource::read() when the stop descriptor becomes readable.
struct StopRequested {};

/// What turns a file's bytes into text, and how long that may take.
struct PipeOptions {
  /// Run by `bash -c` with the file as standard input; "cat" and "" read the file directly.
  std::string command = "cat";
  /// Instead of `command`: a program and its arguments, without a shell.
  std::vector<std::string> argv = {};
  /// Files that are not on this host.
  RemoteFiles remote = {};
  /// How long the processes may print nothing while somebody waits for it; 0: any time.
  std::chrono::milliseconds timeout{0};
  /// How long a background process that the command left behind may hold its output open in silence.
  std::chrono::milliseconds linger{5000};
};

/// The pipe command as an error calls it; empty when the file itself is the text.
std::string command_text(const PipeOptions& pipe);

struct ByteSourceOptions {
  std::string file = {};
  PipeOptions pipe = {};
  /// What the processes get, as "NAME=VALUE".
  std::vector<std::string> environment = {};
  /// Borrowed; readable when reading is to end at once (a read of a plain file does not wait for it).
  int stop_fd = -1;
};

/// Opens the file and starts the processes that it needs: a download, a program that unpacks what ends in .gz
/// or .zst for a command (without one it is unpacked by the thread that reads), one for .bz2 and .xz where
/// there is no command, the command.
/// Throws: Error(data) when the file cannot be opened, Error(spawn) when no process can be made,
/// Error(config) for a remote file that nothing fetches.
std::unique_ptr<ByteSource> open_byte_source(const ByteSourceOptions& options);

/// The same bytes without a mark of UTF-8 at their beginning (EF BB BF), which programs of Windows write: it
/// is no part of the first value. What open_byte_source() opens is without it.
std::unique_ptr<ByteSource> without_mark(std::unique_ptr<ByteSource> source);

/// Throws: Error(data) naming every file of this host that is missing,
/// a directory, not a regular file, or not readable.
void check_files(const std::vector<std::string>& files);

}  // namespace fleetrun::dataset
