// Where and how a server keeps what must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fleetrun::ps {

/// What an answered change is safe from. process: the end of the server's process, however sudden; what the
/// host's kernel has taken over is kept. power: that of the host, too;
/// each answer waits for the disk, together with others.
enum class LogSync { process, power };

/// What a server does where an earlier run has left something in its directory. refuse: an error says what is
/// there. resume: it goes on with the tables and with what it knows of each trainer's changes; the trainers
/// meet anew; where there is nothing it starts with empty tables, and says so. require: as resume, and there
/// must be something. replace: it removes that.
enum class FoundCheckpoint { refuse, resume, require, replace };

struct Durability {
  /// Where checkpoints and logs of all servers are; empty: none are kept.
  std::string directory = {};
  /// A checkpoint is made this long after the last one, and …
  std::chrono::milliseconds interval{std::chrono::minutes(1)};
  /// … when the log since then has this many bytes. 0: neither makes one.
  std::uint64_t log_bytes = std::uint64_t{256} << 20;
  LogSync sync = LogSync::process;
  /// A disk that has not taken what the log gives it for so long is reported.
  std::chrono::milliseconds disk_patience{std::chrono::seconds(5)};
  /// Tells runs apart. Two empty ones are the same. Texts that differ after their last '-' alone are attempts
  /// of one run, and what an earlier attempt has left is removed, but with resume.
  std::string run = {};
  /// The run in which an earlier process of this server has served, as its launcher knows; empty: none has.
  /// What that one had is not left out unsaid: a server that goes on in this run, or with resume, has it or
  /// does not start.
  std::string served = {};
  FoundCheckpoint found = FoundCheckpoint::refuse;
};

}  // namespace fleetrun::ps
