// Says on standard error who was refused and why, once a second for each peer, however often it tries.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace fleetrun {

/// Threads: any.
class Rejections {
 public:
  explicit Rejections(std::string server) : server_(std::move(server)) {}

  /// `peer`: an address without its port, or a trainer. Memory is bounded, whoever comes.
  void note(const std::string& peer, const std::string& why);
  /// How many there were.
  std::uint64_t count() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Clock::time_point said;
    std::uint64_t unsaid = 0;
  };

  const std::string server_;
  mutable std::mutex mutex_;
  std::map<std::string, Peer> peers_;
  std::uint64_t count_ = 0;
};

}  // namespace fleetrun
