// System calls that change files, watched, made to fail, or the last thing that the process does. Linked into
// a test, it stands before the C library's; calls that do not name or write the watched directory pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::tests {

enum class FileFault { none, kill, no_space, io_error, short_write };

/// What was done to the files of the directory, in its order.
struct FileStep {
  enum class Kind { create, write, sync, rename, unlink, done };
  Kind kind = Kind::done;
  std::string path;
  std::string to;        // rename
  std::uint64_t at = 0;  // write
  std::string bytes;     // write
};

/// From now on: the `at`-th call (from 1) suffers `fault`, and every call is recorded.
void watch_files(const std::string& directory, FileFault fault, std::uint64_t at);
/// How many calls there were; stops watching.
std::uint64_t stop_watching_files();
/// Until it is told to go on, each sync of the directory's files waits: the disk takes nothing.
void hold_syncs();
/// Returns when one waits.
void await_held_sync();
void let_syncs_go_on();
/// Something that is not a call: the saver has been told that all is well.
void record_done();
const std::vector<FileStep>& file_steps();

}  // namespace fleetrun::tests
