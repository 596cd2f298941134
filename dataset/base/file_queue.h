// Which file a trainer reads next.
//
// Threads: one per queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::dataset {

class FileQueue {
 public:
  virtual ~FileQueue() = default;
  /// The next file, or none when all are done. Whoever asks has done with the file that the call before gave.
  virtual std::optional<std::string> next() = 0;
};

/// Files shared by all who make a queue of them with the same `claims`, a file that need not be there yet:
/// whoever is done takes the next one, so that a slow one has fewer files and the others do not wait for it.
///
/// Each file is done once. While it is being read its reader holds a lock of the kernel on one byte of
/// `claims`, which goes when the process dies, however it does; another one is given the file then, from its
/// beginning, so that what the dead one had read of it is read twice. At the end next() waits for the files
/// that others still hold: they are done, or come free and are given out. `claims` lies where all of them see
/// each other's locks: on one host, or on a network file system that has locks. It is for these files in this
/// order and for one epoch over them: another epoch has another one.
///
/// An `owner`, not 0 and another number for each who shares, comes back when its process dies, and goes on
/// where that was: the file that it had begun is kept for it, and is the first that it gets then. The others
/// wait.
///
/// Throws: Error(host) when a system call fails; Error(config) when `claims` is of other files.
std::unique_ptr<FileQueue> make_shared_queue(std::vector<std::string> files, const std::string& claims,
                                             std::uint16_t owner = 0);

}  // namespace fleetrun::dataset
