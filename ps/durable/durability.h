// Where and how a server keeps what must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fleetrun::ps {

/// What an answered change is safe from. process: the end of the server's process, however sudden; what the host's kernel
/// has taken over is kept. power: that of the host, too; each answer waits for the disk, together with others.
enum class LogSync { process, power };

struct Durability {
  /// Where checkpoints and logs of all servers are; empty: none are kept.
  std::string directory = {};
  /// A checkpoint is made this long after the last one, and …
  std::chrono::milliseconds interval{std::chrono::minutes(1)};
  /// … when the log since then has this many bytes. 0: neither makes one.
  std::uint64_t log_bytes = std::uint64_t{256} << 20;
  LogSync sync = LogSync::process;
  /// Tells runs apart: what a run with another text left in the directory is removed. Two empty ones are the same.
  std::string run = {};
};

}  // namespace fleetrun::ps
