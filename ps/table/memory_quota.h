// A server's own limit of memory: it refuses what would make new rows, with a reason, before the kernel ends
// it for using more than its host or container has.
//
// FLEETRUN_PS_MEMORY_LIMIT says how much: bytes, or with K, M, G or T. Default: 95 % of what its container
// may have (cgroups of version 1 or 2); none where that is not limited.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// 0 for none. Throws: Error(config) for a value that is not an amount.
std::uint64_t memory_limit_of(const Environ& environ);

/// Bytes of this process that are in memory.
std::uint64_t resident_bytes();

/// Threads: any.
class MemoryQuota {
 public:
  /// How old a metric may be: reading it costs as much as a small request.
  static constexpr std::chrono::milliseconds kLook{10};

  /// `limit` 0: everything is allowed.
  MemoryQuota(std::uint64_t limit, std::string server, std::function<std::uint64_t()> used = resident_bytes)
      : limit_(limit), server_(std::move(server)), used_(std::move(used)) {}

  bool is_used_up();
  /// Throws: Error(host) that says how much was used.
  [[noreturn]] void refuse() const;

 private:
  std::uint64_t limit_;
  std::string server_;
  std::function<std::uint64_t()> used_;
  std::atomic<std::int64_t> looked_{0};  // steady clock, in milliseconds
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace fleetrun::ps
